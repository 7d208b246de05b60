"""Describe the documents in a row of a shard: their origins, and the beginnings of their texts.

Every part of `tokenized` has the sorted heads of its doc_ids (mapped: a bisection per part and
document), and their rows in the deduped part of the same name, whose other columns are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType, structs
from numpy.typing import NDArray

from assets.deduped.document_files import kept_documents, read_kept
from assets.mixed.phase_source_files import removed_of
from assets.sharded.flat_row_files import FlatShard
from assets.sharded.shard_files import MANIFEST_NAME
from corpus_loader.places.stage_names import DEDUPED, SHARDED, TOKENIZED, TOKENIZER
from resources.corpus import Corpus
from resources.store.kept_manifests import KeptManifests
from resources.store.published import PublishedArray
from resources.store.records import Manifest, PartRecord
from resources.store.store import StoreError, newest_first
from resources.tasks import GLOBAL

TEXT_TOKENS = 64  # decoded of each segment
TEXT_CHARS = 160
HEAD_HEX = 16  # digits of a doc_id that the sorted arrays hold, as an integer
ORIGIN = ("source", "origin", "id", "url", "lang", "license")


class RowDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Document in a row: its tokens there, and its origin if that is known."""

    doc_id: str
    position: int
    tokens: int
    start: int
    text: str | None
    source: str | UnsetType | None = UNSET
    origin: InputRow | UnsetType | None = UNSET
    id: str | UnsetType | None = UNSET
    url: str | UnsetType | None = UNSET
    lang: str | UnsetType | None = UNSET
    license: str | UnsetType | None = UNSET


class TokenPlace(msgspec.Struct, frozen=True):
    """Token of a row: its document (None: padding), and its place in that."""

    position: int
    id: int
    document: int | None
    index: int | UnsetType = UNSET


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """Row of a shard; `is_removed` is set if no phase that is mixed from now on draws it."""

    shard: str
    row: int
    num_tokens: int
    stored_tokens: int
    documents: list[RowDocument]
    token: TokenPlace | UnsetType = UNSET
    is_removed: bool | UnsetType = UNSET


class SampleRow(Row, frozen=True, kw_only=True):
    """Row that is a sample of a phase."""

    phase: str
    sample: int
    epoch: int
    seed: int
    data: str
    source: str
    source_epoch: int


def describe_row(corpus: Corpus, shard: FlatShard, row: int, token: int | None) -> Row:
    """Describe the documents of a row, in their order; `token` points at one of its tokens.

    Raises StoreError if the shard has no such row, or the row no such token.
    """
    tokens, spans = shard.read_row(row)
    if token is not None and not 0 <= token < tokens.size:
        raise StoreError(f"row {row:,} of {shard.stem} has {tokens.size:,} tokens: no {token:,}")
    doc_ids = [bytes(doc_id).hex() for doc_id in spans.doc_ids]
    folder = shard.stem.parent.parent.name  # of a shard that is not copied: its source
    names = sorted(corpus.settings.source_names(), key=lambda name: name != folder)
    known = origins(corpus, names, doc_ids)
    lengths = spans.lengths.tolist()
    places = list(accumulate(spans.stored.tolist(), initial=0))[:-1]
    of_documents = [tokens[start : start + n] for start, n in zip(places, lengths, strict=True)]
    texts = read_texts(corpus, shard, of_documents)
    columns = (doc_ids, places, lengths, spans.starts.tolist(), texts)
    documents = [
        RowDocument(
            doc_id=doc_id,
            position=position,
            tokens=length,
            start=start,
            text=text,
            **(structs.asdict(known[doc_id]) if doc_id in known else {}),
        )
        for doc_id, position, length, start, text in zip(*columns, strict=True)
    ]
    return Row(
        shard=str(shard.stem),
        row=row,
        num_tokens=sum(lengths),
        stored_tokens=tokens.size,
        documents=documents,
        token=UNSET if token is None else point_at(documents, token, int(tokens[token])),
    )


def point_at(documents: Sequence[RowDocument], token: int, token_id: int) -> TokenPlace:
    """Find the document of a token of a row, and the token's place in it."""
    for number, document in enumerate(documents):
        inside = token - document.position
        if 0 <= inside < document.tokens:
            return TokenPlace(token, token_id, number, document.start + inside)
    return TokenPlace(token, token_id, None)


def read_texts(
    corpus: Corpus, shard: FlatShard, segments: list[NDArray[Any]]
) -> list[str] | list[None]:
    """Decode the beginnings of segments; None for each if the shard's tokenizer is not there.

    A folder of shards, copied or not, names its tokenizer in manifest.json.
    """
    path = shard.stem.parent / MANIFEST_NAME
    folder = msgspec.json.decode(path.read_bytes()) if path.is_file() else {}
    tokenizer_json = tokenizer_of(corpus, folder.get("tokenizer_fingerprint"))
    if tokenizer_json is None:
        return [None] * len(segments)
    from tokenizers import Tokenizer

    marks = {folder.get("begin_of_document_id"), folder.get("end_of_document_id")}
    first = [
        [token for token in segment[:TEXT_TOKENS].tolist() if token not in marks]
        for segment in segments
    ]
    texts = Tokenizer.from_str(tokenizer_json).decode_batch(first, skip_special_tokens=False)
    return [text[:TEXT_CHARS] for text in texts]


def tokenizer_of(corpus: Corpus, fingerprint: str | None) -> str | None:
    """Return the tokenizer of a fingerprint as JSON, None if it is no longer there."""
    for manifest in newest_first(corpus.store.partition(TOKENIZER, GLOBAL)):
        part = manifest.parts[0]
        if part.stats.numbers["tokenizer_fingerprint"] == fingerprint:
            file = corpus.store.part_file(manifest, part, TOKENIZER)
            return file.checked().read_text(encoding="utf-8")
    return None


def is_removed(corpus: Corpus, stem: Path, row: int) -> bool:
    """Return whether a row of the newest shards is removed; `stem` is their path without suffix.

    Of a copied shard, or one that only an older manifest names, it is not known: False.
    """
    for source in corpus.settings.source_names():
        manifest = corpus.store.partition(SHARDED, source).newest_manifest()
        for part in manifest.parts if manifest else ():
            file = part.file("megatron.bin")
            if manifest is None or file is None:
                continue
            path = corpus.store.path_of(manifest, file).with_suffix("")
            if path.resolve() == stem.resolve():
                removed = removed_of(manifest).get(part.name)
                return removed is not None and row in removed.read(corpus.store.root)
    return False


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
        kept = KeptManifests(corpus.store, source)
        for _, manifest in kept.newest_first(TOKENIZED):
            made_of = kept.made_of(DEDUPED, DEDUPED, manifest.provenance.get(DEDUPED, ""))
            for part in manifest.parts if made_of else ():
                if not missing:
                    return known
                if made_of and (places := find(corpus, manifest, part, missing)):
                    known |= read_origins(corpus, made_of[1], places)
                    missing -= known.keys()
    return known


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


def read_origins(corpus: Corpus, deduped: Manifest, places: Sequence[Place]) -> dict[str, Origin]:
    """Return the origins of the documents that are indeed at places of one part."""
    part = next(part for part in deduped.parts if part.name == places[0].part.name)
    rows = [place.row for place in places]
    table = read_kept(kept_documents(corpus.store, deduped, part), ["doc_id", *ORIGIN])[rows]
    return {
        place.doc_id: msgspec.convert({key: row[key] for key in ORIGIN}, Origin)
        for row, place in zip(table.iter_rows(named=True), places, strict=True)
        if row["doc_id"] == place.doc_id
    }
