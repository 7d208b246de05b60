"""Find the origin of a document by its id, without reading texts.

Every part of `tokenized` has the sorted heads of its doc_ids (mapped: a bisection per part and
document), and their rows in the deduped part of the same name, whose other columns are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from assets.deduped.document_files import kept_documents, read_kept
from resources.corpus import Corpus
from resources.store.published import PublishedArray
from resources.store.records import Manifest, PartRecord
from resources.store.store import StoreError, newest_first

HEAD_HEX = 16  # digits of a doc_id that the sorted arrays hold, as an integer
ORIGIN = ("source", "origin", "id", "url", "lang", "license")


class InputRow(msgspec.Struct, frozen=True):
    """Input file, and a row of it."""

    file: str | None
    row: int | None


class Origin(msgspec.Struct, frozen=True):
    """Source, input row and own fields of a document: the columns ORIGIN."""

    source: str | None
    origin: InputRow | None
    id: str | None
    url: str | None
    lang: str | None
    license: str | None


@dataclass(frozen=True)
class Place:
    """Row of a deduped part that may hold a document (others may have its head)."""

    doc_id: str
    tokenized: Manifest
    part: PartRecord
    row: int


def origins(corpus: Corpus, sources: Iterable[str], doc_ids: Iterable[str]) -> dict[str, Origin]:
    """Return the origins of documents by doc_id; documents that are nowhere are left out."""
    known: dict[str, Origin] = {}
    missing = set(doc_ids)
    for source in sources:
        for manifest in newest_first(corpus.store.partition("tokenized", source)):
            deduped = made_of(corpus, manifest, "deduped")
            for part in manifest.parts if deduped else ():
                if not missing:
                    return known
                places = find(corpus, manifest, part, missing)
                if deduped and places:
                    known |= read_origins(corpus, deduped, places)
                    missing -= known.keys()
    return known


def made_of(corpus: Corpus, manifest: Manifest, stage: str) -> Manifest | None:
    """Return the manifest of an earlier stage that this one was made from; None if it is gone."""
    wanted = manifest.provenance.get(stage)
    folder = corpus.store.partition(stage, manifest.partition)
    manifests = (other for other in newest_first(folder) if other.fingerprint == wanted)
    return next(manifests, None)


def find(
    corpus: Corpus, tokenized: Manifest, part: PartRecord, doc_ids: Iterable[str]
) -> list[Place]:
    """Find rows of a part that may hold documents; StoreError if the part has no index."""
    file = part.file("doc_index")
    if file is None:
        raise StoreError(
            f"tokenized[{tokenized.partition}] has no index of its documents: it was written by an "
            f"older Tokenmill. Materialize `tokenized` for {tokenized.partition!r} again."
        )
    index = corpus.store.file_of(tokenized, file)
    heads = PublishedArray(index, np.uint64, file.rows)
    rows = PublishedArray(index, np.uint32, file.rows, 8 * file.rows)
    wanted = sorted(doc_ids)
    keys = np.array([int(doc_id[:HEAD_HEX], 16) for doc_id in wanted], np.uint64)
    first, last = (heads.mapped.searchsorted(keys, side) for side in ("left", "right"))
    heads.check(first, last)
    rows.check(first, last)
    return [
        Place(wanted[index], tokenized, part, int(rows.mapped[at]))
        for index in np.flatnonzero(first < last).tolist()
        for at in range(first[index], last[index])
    ]


def places_of(corpus: Corpus, source: str, doc_id: str) -> Iterator[Place]:
    """Yield rows that may hold a document, in all kept manifests of a source, the newest first."""
    for manifest in newest_first(corpus.store.partition("tokenized", source)):
        for part in manifest.parts:
            yield from find(corpus, manifest, part, [doc_id])


def read_origins(corpus: Corpus, deduped: Manifest, places: Sequence[Place]) -> dict[str, Origin]:
    """Return the origins of the documents that are indeed at places of one part."""
    if not places:
        return {}
    part = next(part for part in deduped.parts if part.name == places[0].part.name)
    rows = [place.row for place in places]
    table = read_kept(kept_documents(corpus.store, deduped, part), ["doc_id", *ORIGIN])[rows]
    return {
        place.doc_id: msgspec.convert({key: row[key] for key in ORIGIN}, Origin)
        for row, place in zip(table.iter_rows(named=True), places, strict=True)
        if row["doc_id"] == place.doc_id
    }
