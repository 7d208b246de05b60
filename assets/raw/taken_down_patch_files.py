"""Patches whose record a takedown means: the text goes, and the patch stays without it.

The part of such a record is named in the takedown, if it was ever published. A patch that is still
there keeps the bytes that it replaces, which may have the text as well, out of the corpus.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from assets.raw.patch import Patch
from assets.raw.places.patch_files import (
    PatchFile,
    patch_paths,
    read_patch_file,
    replace_patches,
)
from assets.raw.taken_down_files import Wanted, is_place_wanted, is_raw_wanted
from resources.corpus import Corpus

NO_RECORD = '{"taken_down":true}'  # has no text, so that it is in quarantine


def patches_meant(corpus: Corpus, wanted: Wanted) -> dict[Path, PatchFile]:
    """Return the files with a patch that is meant, as they are without its record."""
    found: dict[Path, PatchFile] = {}
    for path in patch_paths(corpus.store.root):
        before, source = read_patch_file(path), path.parent.name
        after = PatchFile(tuple(without_record(each, source, wanted) for each in before.patches))
        if after != before:
            found[path] = after
    return found


def without_record(patch: Patch, source: str, wanted: Wanted) -> Patch:
    """Return a patch, without its record if that is meant."""
    is_meant = is_place_wanted(source, patch.file, f"row {patch.row}", wanted) or is_raw_wanted(
        patch.record.encode(), wanted
    )
    return msgspec.structs.replace(patch, record=NO_RECORD) if is_meant else patch


def forget_patches(corpus: Corpus, wanted: Wanted) -> int:
    """Remove the records of patches that are meant from the store; return the number of files."""
    meant = patches_meant(corpus, wanted)
    for path, after in meant.items():
        replace_patches(path, after)
    return len(meant)


def lost_its_record(patch: Patch) -> bool:
    """Return whether a takedown removed the record of a patch."""
    return patch.record == NO_RECORD
