"""Ledgers of generations as files for another build: `corpus shards ledger`, `shards.ledger`.

FOLDER/web.json            the ledger, and the files beside it with their hashes
FOLDER/web.g0001.*.bin     identities and tokens in index order; which rows are gone
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from assets.sharded.generations import ABSENT, UNOWNED
from assets.sharded.ledger_files import (
    GenerationFiles,
    Ledger,
    PublishedLedger,
    array_kinds,
)
from resources.corpus import Corpus
from resources.settings.named_files import check_named_file, read_named_file
from resources.store.disk import xxh3_of
from resources.store.published import PublishedFile
from resources.store.records import to_json

MOST_LEDGER_BYTES = 256 << 20
MOST_ARRAY_BYTES = 1 << 40
AGAIN = "Export it again with `corpus shards ledger`."


class ExportedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file beside an exported ledger."""

    name: str
    bytes: int
    xxh3: str


class ExportedLedger(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A ledger and its files: two for each generation, in order."""

    ledger: Ledger
    files: tuple[ExportedFile, ...]


def export_ledger(folder: Path, source: str, found: PublishedLedger) -> list[Path]:
    """Write the ledger of a source into a folder; return what was written."""
    files, generations, paths = [], [], []
    for generation in found.ledger.generations:
        sequences, owners = found.files[generation.number].read()
        gone = np.where(owners < UNOWNED, np.uint32(UNOWNED), np.uint32(ABSENT))
        arrays = (sequences.ids, sequences.tokens), (gone,)
        for kind, of_kind in zip(array_kinds(generation.number), arrays, strict=True):
            path = folder / f"{source}.{kind}.bin"
            with open(path, "wb") as file:
                for array in of_kind:
                    file.write(np.ascontiguousarray(array).tobytes())
            files.append(ExportedFile(path.name, path.stat().st_size, xxh3_of(path)))
            paths.append(path)
        lost = generation.removed + generation.absent  # another build writes nothing of them
        generations.append(
            msgspec.structs.replace(
                generation, removed=0, absent=lost, removed_xxh3="", empty_shards=(), parts=()
            )
        )
    ledger = msgspec.structs.replace(found.ledger, parts=(), generations=tuple(generations))
    path = folder / f"{source}.json"
    path.write_bytes(to_json(ExportedLedger(ledger, tuple(files))))
    return [*paths, path]


def exported_ledger(corpus: Corpus, source: str, base: str) -> PublishedLedger | None:
    """Read the ledger of a source that `shards.ledger` names, None if it names none.

    Raises ValueError if it is damaged, or of shards that depend on something else.
    """
    if corpus.settings.shards.ledger is None:
        return None
    folder = corpus.config.parent / corpus.settings.shards.ledger
    path = folder / f"{source}.json"
    if folder.is_dir() and not path.exists():
        return None  # the source is newer than the ledger
    content = read_named_file(path, MOST_LEDGER_BYTES)
    try:
        exported = msgspec.json.decode(content, type=ExportedLedger)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"shards.ledger: {path} is no ledger ({error}). {AGAIN}") from error
    if exported.ledger.base != base:
        raise ValueError(
            f"shards.ledger: {path} is of shards with another tokenizer, other `buckets`, another "
            "seed or size of shards, or another version of the code. Take the pipeline.yaml and "
            "the tokenizer of that build, or leave the key out."
        )
    files = {}
    pairs = zip(exported.files[::2], exported.files[1::2], strict=True)
    for generation, pair in zip(exported.ledger.generations, pairs, strict=True):
        files[generation.number] = GenerationFiles(
            checked_array(folder, pair[0], 20 * generation.rows),
            checked_array(folder, pair[1], 4 * generation.rows),
            generation.rows,
        )
    return PublishedLedger(exported.ledger, files, {})


def checked_array(folder: Path, file: ExportedFile, num_bytes: int) -> PublishedFile:
    """Return a file beside an exported ledger; ValueError if it is not as exported."""
    path = folder / Path(file.name).name
    check_named_file(path, MOST_ARRAY_BYTES)
    if path.stat().st_size != num_bytes or xxh3_of(path) != file.xxh3:
        raise ValueError(f"shards.ledger: {path} changed since it was exported. {AGAIN}")
    return PublishedFile(path, file.bytes, file.xxh3)
