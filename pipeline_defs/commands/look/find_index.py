"""Parts with texts, and the optional index of each for `corpus find`.

    <store>/raw/web/9f...-0000-<fp>.find-1.bin      beside the files of the part

It follows from the part's texts alone, stays while a kept manifest names the part, and goes with
it, or when a takedown finds a document there. No manifest names it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from assets.deduped.document_files import KeptDocuments, kept_documents, read_kept
from corpus_loader.places.stage_names import DEDUPED, FILTERED, RAW
from pipeline_defs.commands.look.gram_blocks import check_pages, documents_with, mark_blocks
from resources.corpus import Corpus
from resources.errors import check_name
from resources.store.disk import write_temporary
from resources.store.medium import medium_of
from resources.store.records import FIND_INDEX, PartRecord
from resources.store.scratch import place_of
from resources.store.store import Store, StoreError, part_stem
from resources.takedowns import Takedown, forbidden_in, task_name

TEXT_STAGES = (RAW, FILTERED, DEDUPED)


@dataclass(frozen=True)
class TextPart:
    """A part with texts."""

    source: str
    record: PartRecord
    documents: KeptDocuments
    index: Path
    has_index: bool

    def rows_with(self, strings: Sequence[bytes]) -> NDArray[np.bool_] | None:
        """Return which documents may have some strings; None if no index tells."""
        if not strings or not self.has_index or not medium_of(self.index.parent).bring(self.index):
            return None
        try:
            return documents_with(np.memmap(self.index, np.uint8, "r"), strings)
        except ValueError as error:
            raise damaged(self.index, error) from error

    def build_index(self) -> int:
        """Write the index; return its bytes."""
        content = mark_blocks(read_kept(self.documents, ["text"])["text"])
        folder = self.index.parent
        medium_of(folder).publish(write_temporary(folder, self.index.name, content), self.index)
        return len(content)


def parts_of(corpus: Corpus, stage: str, sources: Sequence[str]) -> list[TextPart]:
    """Return the newest parts of a stage, of all sources or some; StoreError for none."""
    names = corpus.settings.source_names()
    for source in sources:
        check_name("source", source, names)
    wanted = [name for name in names if name in sources or not sources]
    manifests = [m for name in wanted if (m := corpus.store.newest_or_none(stage, name))]
    if not manifests:
        of = f" of {', '.join(sources)}" if sources else ""
        raise StoreError(f"{stage} has no texts{of} in {corpus.store}. Run: corpus build")
    parts = []
    for each in manifests:
        folder = corpus.store.partition(stage, each.partition).folder
        there = {*medium_of(folder).names(folder)}
        for part in each.parts:
            documents = kept_documents(corpus.store, each, part)
            name = part_stem(part.name, part.fingerprint) + FIND_INDEX
            parts.append(TextPart(each.partition, part, documents, folder / name, name in there))
    return parts


def build_indexes(corpus: Corpus, stage: str, sources: Sequence[str]) -> str:
    """Index the parts that have no index, a part per core; return a line on it.

    Raises StoreError if a takedown found a document in them.
    """
    parts, began = parts_of(corpus, stage, sources), time.monotonic()
    for source in dict.fromkeys(part.source for part in parts):
        if found := forbidden_in(corpus.store, stage, corpus.store.newest(stage, source)):
            raise StoreError(f"{stage}[{source}] has {found}: no index of it. Run: corpus build")
    new = [part for part in parts if not part.has_index]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        size = sum(pool.map(TextPart.build_index, new))
    seconds = time.monotonic() - began
    return f"{len(new):,} of {len(parts):,} parts indexed: {size / 1e6:,.1f} MB in {seconds:.1f} s."


def check_index(path: Path) -> None:
    """Raise StoreError if an index is damaged."""
    try:
        check_pages(np.frombuffer(b"".join(medium_of(path.parent).blocks(path)), np.uint8))
    except ValueError as error:
        raise damaged(path, error) from error


def damaged(path: Path, error: ValueError) -> StoreError:
    """Return the error of an index that is not what was written."""
    return StoreError(
        f"{place_of(path)} is damaged: {error}. Remove it; `corpus find --build-index` makes it "
        "again."
    )


def remove_indexes(store: Store, takedowns: Iterable[Takedown]) -> None:
    """Remove the indexes of all parts in which takedowns found a document, of every fingerprint."""
    named = [of for each in takedowns for of in each.parts.items()]
    for source, tasks in named:
        for folder in (store.partition(stage, source).folder for stage in TEXT_STAGES):
            medium = medium_of(folder)
            indexes = [name for name in medium.names(folder) if name.endswith(FIND_INDEX)]
            medium.remove_all([folder / name for name in indexes if task_name(name) in tasks])
