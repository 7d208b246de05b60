"""What the tests of mixing share: sources as `sharded` leaves them, and phases over them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from builders import open_corpus, write_corpus
from msgspec import convert, structs
from numpy.typing import NDArray

from assets.mixed.phase_source_files import REMOVED_FILE, lengths_of_rows
from assets.sharded.shard_files import (
    INDEX,
    RemovedRows,
    ShardSet,
    add_shard,
    shard_name,
    shard_schema,
)
from assets.sharded.shard_index_files import ShardsOrigin, publish_index
from assets.sharded.sharded_records import ShardedNumbers
from assets.tokenized.tokenized_records import TokenFacts
from resources.store.records import Manifest, Stats, add_stats, fingerprint_of
from resources.store.store import PartWriter, Store

LENGTH = 8
BUCKETS = {"mode": "pack", "sequence_length": LENGTH}
WEIGHTED = {"weights": {"prose": 3, "notes": 1}, "tokens": 96, "batch_samples": 4}
ABOUT = {
    "token_dtype": "uint16",
    "vocab_size": 1000,
    "end_of_document": "<|endoftext|>",
    "end_of_document_id": 0,
    "begin_of_document_id": None,
    "tokenizer_fingerprint": "f" * 32,
}
MADE_OF = {
    "begin_of_document": None,
    "deduped": "d" * 32,
    "tokenized": "c" * 32,
    "bucketed": "b" * 32,
}


def shard(first: int, lengths: list[int], stored: int | None = LENGTH) -> pl.DataFrame:
    """Rows whose tokens are all `first + row`; two documents in each but the shortest."""
    rows = []
    for row, length in enumerate(lengths):
        tokens = [first + row] * length + [0] * ((stored or length) - length)
        pieces = [(0, 1), (7, length - 1)] if length > 1 else [(0, length)]
        spans = [
            {"doc_id": f"{first + row:031x}{number}", "start": start, "length": size}
            for number, (start, size) in enumerate(pieces)
        ]
        rows.append((length, tokens, spans))
    span = pl.Struct({"doc_id": pl.String, "start": pl.UInt32, "length": pl.UInt32})
    schema = {"num_tokens": pl.UInt32, "tokens": pl.List(pl.UInt16), "spans": pl.List(span)}
    return pl.DataFrame(rows, schema=schema, orient="row")


def write_sharded(
    store: Store,
    source: str,
    shards: list[pl.DataFrame],
    bucket: str = str(LENGTH),
    formats: tuple[str, ...] = ("megatron",),
    **about: Any,
) -> None:
    """A `sharded` partition as that stage leaves it."""
    said = ABOUT | about
    length = int(bucket) if bucket.isdigit() else None
    data = fingerprint_of(source, said, [frame.to_dicts() for frame in shards])
    schema = shard_schema(convert(said, TokenFacts), length)
    together = ShardSet(formats, data, schema)  # type: ignore[arg-type]
    origin = ShardsOrigin(
        **said, stage="sharded", partition=source, fingerprint=data, code_version="2", config={}
    )
    folder = store.partition("sharded", source)
    records = []
    for number, frame in enumerate(shards):
        writer = PartWriter(folder, shard_name(number), data)
        stats = add_shard(writer, together, number, frame)
        numbers = ShardedNumbers(**structs.asdict(stats.numbers), shards={bucket: 1})
        records.append(writer.publish(structs.replace(stats, numbers=numbers)))
    records.append(publish_index(PartWriter(folder, INDEX, data), together, records, origin))
    stats = add_stats(record.stats for record in records)
    provenance = MADE_OF | said
    folder.commit(Manifest("sharded", source, data, "2", {}, tuple(records), stats, provenance))


def remove_rows(store: Store, source: str, removed: dict[str, list[int]]) -> None:
    """Mark rows of shards, by the names of their parts, as a night of `sharded` does."""
    manifest = store.newest("sharded", source)
    *shards, index = manifest.parts
    gone = {part.name: sorted(removed[part.name]) for part in shards if part.name in removed}
    fingerprint = fingerprint_of(manifest.fingerprint, gone)
    folder = store.partition("sharded", source)
    writer = PartWriter(folder, INDEX, fingerprint)
    writer.keep_files(file for file in index.files if file.kind != REMOVED_FILE)
    temporary, _ = writer.new_file(REMOVED_FILE, "rows")
    np.array([row for rows in gone.values() for row in rows], "<u4").tofile(temporary)
    writer.add_file(REMOVED_FILE, temporary, f"removed-{fingerprint[:8]}.rows", 0)
    tokens = {name: int(row_tokens(store, source, name)[rows].sum()) for name, rows in gone.items()}
    counts = {name: len(rows) for name, rows in gone.items()}
    numbers = RemovedRows(removed_rows=counts, removed_tokens=tokens)
    record = writer.publish(Stats(numbers=numbers))
    folder.commit(structs.replace(manifest, fingerprint=fingerprint, parts=(*shards, record)))


def row_tokens(store: Store, source: str, name: str) -> NDArray[np.int64]:
    """Tokens of the rows of a shard, without padding."""
    manifest = store.newest("sharded", source)
    part = next(part for part in manifest.parts if part.name == name)
    kinds = [file for kind in ("megatron.spans", "parquet.parquet") if (file := part.file(kind))]
    path = store.path_of(manifest, kinds[0])
    if path.suffix == ".parquet":
        return pl.read_parquet(path)["num_tokens"].cast(pl.Int64).to_numpy()
    return lengths_of_rows(path, part.stats.rows_kept).astype(np.int64)


PROSE = [shard(100, [8] * 6), shard(200, [8] * 4)]


def corpus_with(folder: Path, main: dict[str, Any], late: dict[str, Any] | None = None) -> Any:
    """Sources prose (10 rows in 2 shards) and notes (4 rows, one of them short), two phases."""
    phases = [{"name": "main"} | main, {"name": "late"} | (late or {"budgets": {"prose": 8}})]
    corpus = open_corpus(write_corpus(folder, buckets=BUCKETS, phases=phases))
    write_sharded(corpus.store, "prose", PROSE)
    write_sharded(corpus.store, "notes", [shard(300, [8, 8, 8, 4])])
    return corpus


def change(corpus: Any, main: dict[str, Any]) -> Any:
    """The same shards under another phase `main`."""
    phases = [{"name": "main"} | main, {"name": "late", "budgets": {"prose": 8}}]
    return open_corpus(write_corpus(corpus.config.parent, buckets=BUCKETS, phases=phases))
