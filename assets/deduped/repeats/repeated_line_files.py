"""What each pass of `repeated` does to its part, or to the hashes with its prefix.

`repeated.py` plans them. Every pass reads files of the one before; a prefix takes
`dedup.memory_bytes` over SIMULTANEOUS at most.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl
import xxhash

from assets.deduped.clusters.removal_files import remaining
from assets.deduped.index.hash_prefixes import keys_with_prefix
from assets.deduped.repeats.repeated_lines import add_counts, collect_lines, count_lines, in_order
from assets.text.table_rows import count_bytes, rows_between
from resources.store.records import PartRecord, Stats
from resources.tasks import SIMULTANEOUS, Task


def count_part(task: Task) -> list[PartRecord]:
    """First pass: count the hashes of one part."""
    texts = texts_of(task)
    writer = task.writer()
    for unit, config in task.payload["configs"].items():
        writer.write_arrow(unit, count_lines(texts, config, unit))
    rows, num_bytes = len(texts), count_bytes(texts)
    return [writer.publish(Stats(rows, rows, bytes=num_bytes, text_bytes=num_bytes))]


def texts_of(task: Task) -> pl.Series:
    """Texts of a part's documents that stay: no copies, none that are contaminated."""
    return remaining(task.payload["path"], task.payload["removals"], ["doc_id", "text"])["text"]


def select(task: Task) -> list[PartRecord]:
    """Second pass: select the hashes of a prefix that enough documents have; digest each part's."""
    writer = task.writer()
    digests = [xxhash.xxh3_128() for _ in next(iter(task.payload["files"].values()))]
    for unit, paths in task.payload["files"].items():
        total = add_counts(slices(task, paths), held_bytes(task))
        enough = total.filter(pl.col("count") >= task.payload["thresholds"][unit]).select("hash")
        writer.write_arrow(unit, enough)
        for digest, table in zip(digests, slices(task, paths), strict=True):
            found = table.join(enough, on="hash", how="semi", maintain_order="left")
            digest.update(len(found).to_bytes(8, "little") + found["hash"].to_numpy().tobytes())
    extra = {"digests": [digest.hexdigest() for digest in digests]}
    return [writer.publish(Stats(numbers=extra))]


def slices(task: Task, paths: Iterable[Path]) -> Iterator[pl.DataFrame]:
    """The rows of tables sorted by hash that have the task's prefix; only they are read."""
    edges = keys_with_prefix(*task.payload["place"])
    for path in paths:
        yield rows_between(pl.read_ipc(path), "hash", edges)


def held_bytes(task: Task) -> int:
    """Bytes of tables to hold before they are added up: adding takes about four times as much."""
    return int(task.payload["memory_bytes"]) // (4 * SIMULTANEOUS)


def collect_part(task: Task) -> list[PartRecord]:
    """Third pass: count the texts of one part's lines whose hash was selected."""
    texts = texts_of(task)
    writer = task.writer()
    for unit, config in task.payload["configs"].items():
        own = pl.read_ipc(task.payload["own"][unit]).select("hash")
        found = [
            own.join(pl.read_ipc(path), on="hash", how="semi")["hash"]
            for path in task.payload["selected"][unit]
        ]
        collected = collect_lines(texts, pl.concat(found), config, unit)
        writer.write_arrow(unit, in_order(collected))
    return [writer.publish(Stats())]


def add_texts(task: Task) -> list[PartRecord]:
    """Fourth pass: list the texts of a prefix that enough documents have, whatever their hashes."""
    writer = task.writer()
    extra: dict[str, int] = {}
    for unit, paths in task.payload["files"].items():
        total = add_counts(slices(task, paths), held_bytes(task))
        enough = total.filter(pl.col("count") >= task.payload["thresholds"][unit])
        writer.write_arrow(unit, in_order(enough))
        num_chars = enough["text"].str.len_chars().cast(pl.Int64) * enough["count"]
        extra |= {f"repeated_{unit}": enough.height, f"repeated_{unit}_chars": int(num_chars.sum())}
    return [writer.publish(Stats(numbers=extra))]


def list_part(task: Task) -> list[PartRecord]:
    """Fifth pass: list (unit, text) of what is repeated and in this part, sorted.

    Equal lists are equal files: counts, which change with documents of other parts, are left out.
    """
    listed = []
    for unit, own in task.payload["own"].items():
        texts = pl.read_ipc(own).select(pl.lit(unit).alias("unit"), "hash", "text")
        for path in task.payload["totals"][unit]:
            found = texts.join(pl.read_ipc(path), on=["hash", "text"], how="semi")
            listed.append(found.drop("hash"))
    writer = task.writer()
    writer.write_parquet("repeated", pl.concat(listed).sort("unit", "text"))
    return [writer.publish(Stats())]
