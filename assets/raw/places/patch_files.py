"""Patches of records in quarantine, in files of the store that only takedowns change.

A patch is the text that takes the place of a record that is no document. It belongs to the bytes
that quarantine shows of the record: it never meets another record that has come to the same place,
and follows its own to another place in the file.

<store>/_patches/<source>/00000001.json is part of the corpus, as the ledger is: a build from
nothing with the same patches gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from assets.raw.readers.input_file import InputFile, Slice
from assets.raw.readers.input_record import Patch
from corpus_loader.seal import sealed, unsealed
from resources.corpus import Corpus
from resources.store.disk import make_folder, write_temporary
from resources.store.inventory import PATCHES
from resources.store.medium import medium_of
from resources.store.records import to_line
from resources.store.scratch import place_of
from resources.store.store import StoreError


class PatchFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Patches that were added together."""

    patches: tuple[Patch, ...]


def folder_of(corpus: Corpus, source: str) -> Path:
    """Return the folder of a source's patches."""
    return corpus.store.root / PATCHES / source


def patch_paths(root: Path) -> list[Path]:
    """Return the files of patches that a store has, of all sources, in the order of coming."""
    folders = [root / PATCHES / source for source in medium_of(root).names(root / PATCHES)]
    return [path for folder in folders for path in paths_in(folder)]


def paths_in(folder: Path) -> list[Path]:
    """Return the files of patches of a source, in the order of coming."""
    names = medium_of(folder).names(folder)
    # A killed command may have left a temporary file.
    return [folder / name for name in names if name.removesuffix(".json").isdecimal()]


def read_patches(corpus: Corpus, source: str) -> list[Patch]:
    """Return the patches of a source in the order in which they were added."""
    paths = paths_in(folder_of(corpus, source))
    return [patch for path in paths for patch in read_patch_file(path).patches]


def read_patch_file(path: Path) -> PatchFile:
    """Read patches that were added together; StoreError if their file is damaged."""
    try:
        return msgspec.json.decode(unsealed(medium_of(path.parent).read(path)), type=PatchFile)
    except (msgspec.MsgspecError, ValueError) as error:
        raise StoreError(
            f"{place_of(path)}: no file of patches: {error}. Bring it back from a copy of the "
            "store, or remove it and replay its patches again."
        ) from error


def add_patches(corpus: Corpus, source: str, patches: Sequence[Patch]) -> None:
    """Add a file of patches; StoreError if another process added one meanwhile."""
    folder = folder_of(corpus, source)
    number = max((int(path.stem) for path in paths_in(folder)), default=0) + 1
    path = folder / f"{number:08d}.json"
    make_folder(folder)
    if not medium_of(corpus.store.root).create(path, sealed(to_line(PatchFile((*patches,))))):
        raise StoreError(
            f"{place_of(path)} was written by another process meanwhile. Replay again."
        )


def replace_patches(path: Path, patches: PatchFile) -> None:
    """Write a file of patches again."""
    medium = medium_of(path.parent)
    make_folder(path.parent)
    medium.publish(write_temporary(path.parent, path.name, sealed(to_line(patches))), path)
    medium.sync(path.parent)


def patches_among(
    patches: Iterable[Patch], files: Sequence[InputFile], cut: Slice | None
) -> tuple[Patch, ...]:
    """Return the patches of records of some files, or of a slice of one.

    Where a slice has no numbers of its rows, all patches of the file are its own.
    """
    names = {file.name: file for file in files}
    return tuple(patch for patch in patches if patch.file in names and may_hold(cut, names, patch))


def may_hold(cut: Slice | None, files: dict[str, InputFile], patch: Patch) -> bool:
    """Return whether the record of a patch may be in a slice of its file, or was there.

    Its record is not looked for in other slices: to add a patch would read these again.
    """
    if cut is None or cut.unit in ("stream", "row_groups", "row_group"):
        return True
    if files[patch.file].format == "jsonl":
        return cut.start <= patch.row < cut.stop
    first, end = cut.span.first.row, cut.span.end.row
    return first <= patch.row and (patch.row < end or not end)


def named_patches(patches: Sequence[Patch]) -> list[Sequence[Patch]]:
    """Return what patches add to a fingerprint: nothing where there are none."""
    return [patches] if patches else []
