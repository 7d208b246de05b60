"""Input files of tests, and what the readers make of them."""

import bz2
import gzip
import json
import lzma
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow as pa

from assets.raw.readers.documents import Chunk
from assets.raw.readers.formats import find_borders, is_cuttable, tell_format
from assets.raw.readers.input_file import InputFile, Slice
from assets.raw.readers.read_chunks import plan_slices, read_chunks
from resources.settings.sources import SourceConfig

MIB = 1 << 20


def zst(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lambda data: lzma.compress(data, preset=0),
    "zst": zst,
}


def write(folder: Path, name: str, data: bytes | str) -> InputFile:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return as_input(path)


def as_input(path: Path) -> InputFile:
    file_format, compression = tell_format(path.name)
    assert file_format is not None
    return InputFile(str(path), path.name, file_format, compression, path.stat().st_size, "")


def slices(file: InputFile, source: SourceConfig, part_bytes: int) -> list[Slice]:
    borders = find_borders(file, source, part_bytes) if is_cuttable(file, source) else []
    return plan_slices(file, part_bytes, borders)


def chunks(file: InputFile, part_bytes: int = MIB, **options: object) -> list[Chunk]:
    source = SourceConfig.model_validate({"name": "s", "where": "x", **options})
    pieces = slices(file, source, part_bytes)
    found = [c for piece in pieces for c in read_chunks(file, piece, source, part_bytes)]
    for c in found:
        left_out = c.skipped_by_filter + sum(c.left_out.values())
        assert c.rows_in == len(c.documents) + len(c.quarantine) + left_out
    return found


def read(file: InputFile, part_bytes: int = MIB, **options: object) -> Chunk:
    parts = chunks(file, part_bytes, **options)
    return Chunk(
        pl.concat([c.documents for c in parts]),
        pl.concat([c.quarantine for c in parts]),
        sum(c.rows_in for c in parts),
        sum(c.skipped_by_filter for c in parts),
        left_out=sum((Counter(c.left_out) for c in parts), Counter()),
        containers=_outcomes(parts),
        unread={name: reason for c in parts for name, reason in c.unread.items()},
        num_unread=sum(c.num_unread for c in parts),
    )


def _outcomes(parts: list[Chunk]) -> dict[str, Counter[str]]:
    outcomes: dict[str, Counter[str]] = {}
    for name, counts in (each for c in parts for each in c.containers.items()):
        outcomes.setdefault(name, Counter()).update(counts)
    return outcomes


def texts(chunk: Chunk) -> list[str]:
    return chunk.documents["text"].to_list()


def jsonl(*values: str) -> bytes:
    return b"".join(json.dumps({"text": value}).encode() + b"\n" for value in values)


def numbers(count: int, width: int = 1) -> list[str]:
    # Digits of a multiplicative sequence: compresses badly enough to be no bomb.
    return [f"{i:0{width}d} {i * 2654435761 % 2**64:020d}" for i in range(count)]
