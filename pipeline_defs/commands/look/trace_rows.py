"""What a row of a shard holds, for people: its documents, where each came from, how it begins."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import msgspec
import polars as pl
from numpy.typing import NDArray

from assets.sharded.flat_row_files import FlatShard
from assets.sharded.shard_files import MANIFEST_NAME
from pipeline_defs.commands.look.lineage import origins, places_of
from resources.corpus import Corpus
from resources.store.records import required_file
from resources.store.store import StoreError, newest_first
from resources.tasks import GLOBAL

TEXT_TOKENS = 64  # decoded of each piece
TEXT_CHARS = 160


def describe_row(corpus: Corpus, shard: FlatShard, row: int, token: int | None) -> dict[str, Any]:
    """The documents of a row, in their order; `token` points at one of its tokens.

    Raises StoreError if the shard has no such row, or the row no such token.
    """
    tokens, spans = shard.read_row(row)
    if token is not None and not 0 <= token < tokens.size:
        raise StoreError(f"row {row:,} of {shard.stem} has {tokens.size:,} tokens: no {token:,}")
    doc_ids = [bytes(each).hex() for each in spans.doc_ids]
    known = origins(corpus, sources_of(corpus, shard), doc_ids)
    edges = list(accumulate(spans.lengths.tolist(), initial=0))
    texts = read_texts(corpus, shard, [tokens[start:stop] for start, stop in pairwise(edges)])
    documents = [
        {
            "doc_id": doc_id,
            "position": position,
            "tokens": length,
            "start": start,
            "text": text,
            **known.get(doc_id, {}),
        }
        for doc_id, position, length, start, text in zip(
            doc_ids, edges[:-1], spans.lengths.tolist(), spans.starts.tolist(), texts, strict=True
        )
    ]
    found: dict[str, Any] = {
        "shard": str(shard.stem),
        "row": row,
        "num_tokens": edges[-1],
        "stored_tokens": tokens.size,
        "documents": documents,
    }
    if token is not None:
        found["token"] = point_at(corpus, documents, token, int(tokens[token]))
    return found


def point_at(
    corpus: Corpus, documents: list[dict[str, Any]], token: int, token_id: int
) -> dict[str, Any]:
    """Which document a token of a row is of, and where in it; of padding its place in the row.

    `byte` is where it starts in the document's UTF-8 text, if the tokenizer's offsets were kept.
    """
    at = {"position": token, "id": token_id}
    for number, document in enumerate(documents):
        inside = token - document["position"]
        if 0 <= inside < document["tokens"]:
            index = document["start"] + inside
            byte = byte_of(corpus, document, index, token_id)
            return at | {"document": number, "index": index, "byte": byte}
    return at | {"document": None}


def byte_of(corpus: Corpus, document: dict[str, Any], index: int, token_id: int) -> int | None:
    """Where a token starts in a document's text; None if that was not kept, or is gone.

    The newest `tokenized` may be of another tokenizer than the shard: the token must be the same.
    """
    if "source" not in document:
        return None
    for place in places_of(corpus, document["source"], document["doc_id"]):
        part = place.part
        path = corpus.store.path_of(place.tokenized, required_file(place.tokenized, part, "tokens"))
        rejected = part.stats.rows_in - part.stats.rows_kept  # deduped rows that are not there
        rows = pl.scan_ipc(path).slice(max(0, place.row - rejected), rejected + 1)
        if "offsets" in rows.collect_schema():
            mine = rows.filter(doc_id=place.doc_id).select(
                pl.col("tokens", "offsets").list.get(index, null_on_oob=True)
            )
            for found, byte in mine.collect().iter_rows():
                if found == token_id:
                    return int(byte)
    return None


def sources_of(corpus: Corpus, shard: FlatShard) -> list[str]:
    """Sources to look in: that of the shard's folder first."""
    names = corpus.settings.source_names()
    return sorted(names, key=lambda name: name != shard.stem.parent.parent.name)


def read_texts(
    corpus: Corpus, shard: FlatShard, pieces: list[NDArray[Any]]
) -> list[str] | list[None]:
    """How pieces of documents begin; None for each if the shard's tokenizer is not there.

    A folder of shards says in its manifest.json what tokenizer made them, wherever it is copied to.
    """
    path = shard.stem.parent / MANIFEST_NAME
    about = msgspec.json.decode(path.read_bytes()) if path.is_file() else {}
    tokenizer_json = tokenizer_of(corpus, about.get("tokenizer_fingerprint"))
    if tokenizer_json is None:
        return [None] * len(pieces)
    from tokenizers import Tokenizer

    marks = {about.get("begin_of_document_id"), about.get("end_of_document_id")}
    first = [
        [each for each in piece[:TEXT_TOKENS].tolist() if each not in marks] for piece in pieces
    ]
    texts = Tokenizer.from_str(tokenizer_json).decode_batch(first, skip_special_tokens=False)
    return [text[:TEXT_CHARS] for text in texts]


def tokenizer_of(corpus: Corpus, fingerprint: str | None) -> str | None:
    """The tokenizer of that fingerprint, None if it is no longer there."""
    for manifest in newest_first(corpus.store.partition("tokenizer", GLOBAL)):
        part = manifest.parts[0]
        if part.stats.numbers["tokenizer_fingerprint"] == fingerprint:
            path = corpus.store.path_of(manifest, required_file(manifest, part, "tokenizer"))
            return path.read_text(encoding="utf-8")
    return None
