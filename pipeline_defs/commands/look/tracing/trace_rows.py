"""Describe the documents in a row of a shard: origin and beginning of the text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
from msgspec import UNSET, UnsetType, structs
from numpy.typing import NDArray

from assets.mixed.phase_source_files import removed_of
from assets.sharded.flat_row_files import FlatShard
from assets.sharded.shard_files import MANIFEST_NAME
from pipeline_defs.commands.look.lineage import InputRow, origins, places_of
from resources.corpus import Corpus
from resources.store.store import StoreError, newest_first
from resources.tasks import GLOBAL

TEXT_TOKENS = 64  # decoded of each segment
TEXT_CHARS = 160


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
    """Token of a row: its document (None: padding), and its place in that.

    `byte` is its start in the document's UTF-8 text, if the tokenizer's offsets were kept.
    """

    position: int
    id: int
    document: int | None
    index: int | UnsetType = UNSET
    byte: int | UnsetType | None = UNSET


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
    known = origins(corpus, sources_of(corpus, shard), doc_ids)
    edges = list(accumulate(spans.lengths.tolist(), initial=0))
    texts = read_texts(corpus, shard, [tokens[start:stop] for start, stop in pairwise(edges)])
    columns = (doc_ids, edges[:-1], spans.lengths.tolist(), spans.starts.tolist(), texts)
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
        num_tokens=edges[-1],
        stored_tokens=tokens.size,
        documents=documents,
        token=UNSET if token is None else point_at(corpus, documents, token, int(tokens[token])),
    )


def point_at(
    corpus: Corpus, documents: Sequence[RowDocument], token: int, token_id: int
) -> TokenPlace:
    """Find the document of a token of a row, and the token's place in it."""
    for number, document in enumerate(documents):
        inside = token - document.position
        if 0 <= inside < document.tokens:
            index = document.start + inside
            byte = None
            if isinstance(document.source, str):
                byte = byte_of(corpus, document.source, document.doc_id, index, token_id)
            return TokenPlace(token, token_id, number, index, byte)
    return TokenPlace(token, token_id, None)


def byte_of(corpus: Corpus, source: str, doc_id: str, index: int, token_id: int) -> int | None:
    """Return the byte of a document's text at which a token starts; None if it is not known.

    The newest `tokenized` may be of another tokenizer than the shard: the token must be the same.
    """
    for place in places_of(corpus, source, doc_id):
        part = place.part
        tokens = corpus.store.part_file(place.tokenized, part, "tokens")
        rejected = part.stats.rows_in - part.stats.rows_kept  # deduped rows that are not there
        rows = pl.scan_ipc(tokens.checked()).slice(max(0, place.row - rejected), rejected + 1)
        if "offsets" in rows.collect_schema():
            mine = rows.filter(doc_id=place.doc_id).select(
                pl.col("tokens", "offsets").list.get(index, null_on_oob=True)
            )
            for other_id, byte in mine.collect().iter_rows():
                if other_id == token_id:
                    return int(byte)
    return None


def sources_of(corpus: Corpus, shard: FlatShard) -> list[str]:
    """Return the sources to search: that of the shard's folder first."""
    names = corpus.settings.source_names()
    return sorted(names, key=lambda name: name != shard.stem.parent.parent.name)


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
    for manifest in newest_first(corpus.store.partition("tokenizer", GLOBAL)):
        part = manifest.parts[0]
        if part.stats.numbers["tokenizer_fingerprint"] == fingerprint:
            file = corpus.store.part_file(manifest, part, "tokenizer")
            return file.checked().read_text(encoding="utf-8")
    return None


def is_removed(corpus: Corpus, stem: Path, row: int) -> bool:
    """Return whether a row of the newest shards is removed; `stem` is their path without suffix.

    Of a copied shard, or one that only an older manifest names, it is not known: False.
    """
    for source in corpus.settings.source_names():
        manifest = corpus.store.partition("sharded", source).newest_manifest()
        for part in manifest.parts if manifest else ():
            file = part.file("megatron.bin")
            if manifest is None or file is None:
                continue
            path = corpus.store.path_of(manifest, file).with_suffix("")
            if path.resolve() == stem.resolve():
                removed = removed_of(manifest).get(part.name)
                return removed is not None and row in removed.read(corpus.store.root)
    return False
