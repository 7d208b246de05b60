"""The readers of `raw` by format: CPU seconds per GB of text, from a file to Parquet parts.

    python benchmarks/raw.py [folder of corpora] [--megabytes 64] [--part-megabytes 16]

Documents of the folder are written once per format and read back: alone ("read"), by the careful
decoder alone ("careful", JSON lines only), and with their parts written as zstd-1 Parquet, flushed
and hashed ("published"). Polars has one thread. The best of ROUNDS counts; compare within one run.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import os
import resource
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

os.environ.setdefault("POLARS_MAX_THREADS", "1")
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import_module("pipeline_defs")  # what it tells Polars' allocator must come before polars

import polars as pl  # noqa: E402
import pyarrow as pa  # noqa: E402
from corpus_texts import read_texts  # noqa: E402

from assets.raw.readers import plain_lines, read_chunks  # noqa: E402
from assets.raw.readers.documents import Chunk  # noqa: E402
from assets.raw.readers.formats import find_borders, is_cuttable, tell_format  # noqa: E402
from assets.raw.readers.input_file import InputFile  # noqa: E402
from resources.settings.sources import SourceConfig  # noqa: E402
from resources.store.store import PartWriter, Store  # noqa: E402

ROUNDS = 3
SOURCE = SourceConfig.model_validate({"name": "s", "where": "x", "text_documents": "blank_line"})


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "sample_data")
    parser.add_argument("--megabytes", type=float, default=64)
    parser.add_argument("--part-megabytes", type=int, default=16)
    options = parser.parse_args()
    texts = read_texts(options.folder, int(options.megabytes * 1e6))["text"]
    gigabytes = float(texts.str.len_bytes().sum()) / 1e9
    part_bytes = options.part_megabytes << 20
    print(f"{len(texts):,} documents, {gigabytes * 1e3:.1f} MB of text: CPU seconds per GB\n")
    print(f"{'format':<12}{'read':>8}{'careful':>9}{'published':>11}")
    with tempfile.TemporaryDirectory() as scratch:
        for path in write_files(texts, Path(scratch)):
            file = input_file(path)
            read = best_of(lambda file=file: drain(chunks_of(file, part_bytes))) / gigabytes
            careful = carefully(file, part_bytes) / gigabytes if "jsonl" in path.name else None
            store = Store(Path(scratch) / "store")
            whole = best_of(lambda file=file, store=store: publish(file, part_bytes, store))
            shown = "" if careful is None else f"{careful:.1f}"
            print(f"{path.name:<12}{read:>8.1f}{shown:>9}{whole / gigabytes:>11.1f}", flush=True)


def write_files(texts: pl.Series, folder: Path) -> Iterator[Path]:
    """Write the documents in each format; yield the files."""
    records = [{"id": f"doc-{row}", "text": text} for row, text in enumerate(texts)]
    lines = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in records).encode()
    contents = {
        "a.jsonl": lines,
        "a.jsonl.gz": gzip.compress(lines, 6),
        "a.txt": "\n\n".join(texts).encode(),
    }
    for name, data in contents.items():
        (folder / name).write_bytes(data)
        yield folder / name
    with pa.CompressedOutputStream(str(folder / "a.jsonl.zst"), "zstd") as stream:
        stream.write(lines)
    yield folder / "a.jsonl.zst"
    with (folder / "a.csv").open("w", newline="", encoding="utf-8") as table:
        writer = csv.DictWriter(table, ["id", "text"])
        writer.writeheader()
        writer.writerows(records)
    yield folder / "a.csv"
    pl.DataFrame(records).write_parquet(folder / "a.parquet")
    yield folder / "a.parquet"
    yield from write_archives(texts, lines, folder)


def write_archives(texts: pl.Series, lines: bytes, folder: Path) -> Iterator[Path]:
    """Write the documents as Arrow, web archive, and archives of a member each or all in one."""
    pl.DataFrame({"text": texts}).write_ipc(folder / "a.arrow", compression="zstd")
    yield folder / "a.arrow"
    encoded = [text.encode() for text in texts]
    header = "WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: %d\r\n\r\n"
    records = [(header % len(data)).encode() + data + b"\r\n\r\n" for data in encoded]
    (folder / "a.wet").write_bytes(b"".join(records))
    (folder / "a.wet.gz").write_bytes(b"".join(map(gzip.compress, records)))
    yield folder / "a.wet"
    yield folder / "a.wet.gz"
    with tarfile.open(folder / "a.tar", "w") as archive:
        for number, data in enumerate(encoded):
            member = tarfile.TarInfo(f"{number:08d}.txt")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    yield folder / "a.tar"
    with zipfile.ZipFile(folder / "lines.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.jsonl", lines)
    yield folder / "lines.zip"
    for suffix in ("txt", "md"):
        with zipfile.ZipFile(folder / f"{suffix}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for number, data in enumerate(encoded):
                archive.writestr(f"{number:08d}.{suffix}", data)
        yield folder / f"{suffix}.zip"


def input_file(path: Path) -> InputFile:
    """Describe a file by its name."""
    file_format, compression = tell_format(path.name)
    if file_format is None:
        raise ValueError(f"{path.name} has no format; name it like a.jsonl.gz")
    return InputFile(str(path), path.name, file_format, compression, path.stat().st_size, "")


def chunks_of(file: InputFile, part_bytes: int) -> Iterator[Chunk]:
    """Read a file, slice by slice."""
    borders = find_borders(file, SOURCE, part_bytes) if is_cuttable(file, SOURCE) else []
    for file_slice in read_chunks.plan_slices(file, part_bytes, borders):
        yield from read_chunks.read_chunks(file, file_slice, SOURCE, part_bytes)


def drain(chunks: Iterator[Chunk]) -> None:
    """Read all chunks."""
    for _ in chunks:
        pass


def carefully(file: InputFile, part_bytes: int) -> float:
    """Measure the reading of JSON lines without the compiled reader."""
    least, plain_lines.LEAST_BYTES = plain_lines.LEAST_BYTES, sys.maxsize
    try:
        return best_of(lambda: drain(chunks_of(file, part_bytes)))
    finally:
        plain_lines.LEAST_BYTES = least


def publish(file: InputFile, part_bytes: int, store: Store) -> None:
    """Read a file and write its parts, without their records."""
    partition = store.partition("raw", "s")
    for number, chunk in enumerate(chunks_of(file, part_bytes)):
        writer = PartWriter(partition, f"part-{number}", "0" * 32)
        writer.write_parquet("documents", chunk.documents)
        writer.discard()


def best_of(work: Callable[[], None]) -> float:
    """Return the fewest CPU seconds of ROUNDS, after one that loads the kernels."""
    work()
    return min(cpu_of(work) for _ in range(ROUNDS))


def cpu_of(work: Callable[[], None]) -> float:
    """Return the CPU seconds of one call, of all threads."""
    start = resource.getrusage(resource.RUSAGE_SELF)
    work()
    stop = resource.getrusage(resource.RUSAGE_SELF)
    return stop.ru_utime + stop.ru_stime - start.ru_utime - start.ru_stime


if __name__ == "__main__":
    main()
