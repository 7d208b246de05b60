"""Every shard format next to its own project's writer, on the same rows.

    python benchmarks/formats.py [PARQUET_FOLDER] [MEGABYTES]

PARQUET_FOLDER: shards of a source (`corpus shards path --source web --format parquet`); else ids
are drawn by Zipf's law. They are cut into rows of 2,048 tokens, then into rows of 1 to 1,200. Both
writers get what their users have: ours the stage's frame, the other one array per row. CPU seconds
of one core; MB/s of token ids; bytes of all files per byte of ids. A writer that is not installed
is left out: mosaicml-streaming needs an environment of its own (requirements-loaders.lock).
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent.parent))
from assets.sharded.formats import FORMATS, ShardSchema
from assets.sharded.formats.flat_rows import flat_rows

LENGTH = 2048
MEAN_LENGTH = 600
REPEATS = 3
Row = NDArray[Any]


def parquet_rows(folder: Path, rows: Sequence[Row]) -> None:
    """Polars, as one calls it."""
    frame = pl.DataFrame({"tokens": pl.Series(rows, dtype=pl.List(pl.UInt16))})
    frame.write_parquet(folder / "rows.parquet", compression="zstd", compression_level=1)


def megatron_rows(folder: Path, rows: Sequence[Row]) -> None:
    """Megatron Core's IndexedDatasetBuilder."""
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

    builder = IndexedDatasetBuilder(str(folder / "rows.bin"), dtype=np.uint16)
    for row in rows:
        builder.add_document(row, [len(row)])
    builder.finalize(str(folder / "rows.idx"))


def mds_rows(folder: Path, rows: Sequence[Row]) -> None:
    """mosaicml-streaming's MDSWriter."""
    from streaming import MDSWriter

    same = len({len(row) for row in rows}) == 1
    encoding = "ndarray:uint16" + (f":{len(rows[0])}" if same else "")
    columns = {"tokens": encoding}
    with MDSWriter(out=str(folder / "mds"), columns=columns, size_limit=None) as writer:
        for row in rows:
            writer.write({"tokens": row})


def webdataset_rows(folder: Path, rows: Sequence[Row]) -> None:
    """WebDataset's TarWriter."""
    from webdataset import TarWriter

    with TarWriter(str(folder / "rows.tar"), mtime=0) as writer:
        for number, row in enumerate(rows):
            writer.write({"__key__": f"{number:08d}", "npy": row})


def litdata_rows(folder: Path, rows: Sequence[Row]) -> None:
    """litdata's BinaryWriter."""
    from litdata.streaming.writer import BinaryWriter

    writer = BinaryWriter(str(folder / "litdata"), chunk_bytes="1GB")
    for number, row in enumerate(rows):
        writer[number] = row
    writer.done()
    writer.merge()


def datatrove_rows(folder: Path, rows: Sequence[Row]) -> None:
    """datatrove's TokenizedFile."""
    from datatrove.pipeline.tokens.tokenizer import TokenizedFile

    file = TokenizedFile(str(folder), "rows.ds")
    for row in rows:
        file.write_bytes(row.tobytes())
    file.close()


def arrow_rows(folder: Path, rows: Sequence[Row]) -> None:
    """Hugging Face datasets: from_dict, save_to_disk."""
    import datasets

    datasets.disable_progress_bars()
    features = datasets.Features({"tokens": datasets.List(datasets.Value("uint16"))})
    made = datasets.Dataset.from_dict({"tokens": list(rows)}, features=features)
    made.save_to_disk(str(folder / "arrow"))


PEERS: dict[str, Callable[[Path, Sequence[Row]], None]] = {
    "parquet": parquet_rows,
    "megatron": megatron_rows,
    "mds": mds_rows,
    "webdataset": webdataset_rows,
    "litdata": litdata_rows,
    "datatrove": datatrove_rows,
    "arrow": arrow_rows,
}


def read_ids(folder: str | None, megabytes: int) -> Row:
    """Token ids, uint16."""
    count = megabytes * 500_000
    if folder is None:
        drawn = np.random.default_rng(0).zipf(1.2, count)
        return (drawn % 32_000).astype(np.uint16)
    rows = pl.scan_parquet(f"{folder}/*.parquet").select(pl.col("tokens").explode())
    return rows.head(count).collect()["tokens"].to_numpy()


def shard_of(ids: Row, lengths: NDArray[np.int64]) -> pl.DataFrame:
    """The ids as the rows of a shard, each of one document."""
    rows = np.split(ids[: lengths.sum()], np.cumsum(lengths)[:-1])
    spans = [[{"doc_id": f"{i:032x}", "start": 0, "length": len(r)}] for i, r in enumerate(rows)]
    span = pl.Struct({"doc_id": pl.String, "start": pl.UInt32, "length": pl.UInt32})
    return pl.DataFrame(
        {
            "num_tokens": pl.Series(lengths, dtype=pl.UInt32),
            "tokens": pl.Series(rows, dtype=pl.List(pl.UInt16)),
            "spans": pl.Series(spans, dtype=pl.List(span)),
        }
    )


def measure(write: Callable[[Path], object]) -> tuple[float, int]:
    """(CPU seconds, bytes written) of the fastest of a few runs."""
    best, size = float("inf"), 0
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            started = time.process_time()
            write(Path(folder))
            best = min(best, time.process_time() - started)
            files = [path for path in Path(folder).rglob("*") if path.is_file()]
            size = sum(path.stat().st_size for path in files)
    return best, size


def compare(name: str, shard: pl.DataFrame, about: ShardSchema) -> None:
    """One line: our writer and the peer's."""
    shard_format = FORMATS[name]
    flat = flat_rows(shard["tokens"])
    ids, rows = flat.content, np.split(flat.content, flat.starts[1:-1])

    def ours(folder: Path) -> None:
        names = [shard_format.file_name(0, suffix) for suffix in shard_format.suffixes]
        shard_format.write([folder / each for each in names], shard, about)

    seconds, size = measure(ours)
    line = f"{name:12}{ids.nbytes / 1e6 / seconds:8,.0f} MB/s{size / ids.nbytes:7.2f}"
    with suppress(KeyError, ImportError):
        seconds, size = measure(lambda folder: PEERS[name](folder, rows))
        line += f"{ids.nbytes / 1e6 / seconds:9,.0f} MB/s{size / ids.nbytes:7.2f}"
    print(line, flush=True)


def main() -> None:
    """Both kinds of rows, every format."""
    warnings.simplefilter("ignore")
    folder = sys.argv[1] if len(sys.argv) > 1 else None
    ids = read_ids(folder, int(sys.argv[2]) if len(sys.argv) > 2 else 32)
    drawn = np.random.default_rng(0).integers(1, 2 * MEAN_LENGTH, len(ids) // MEAN_LENGTH)
    varying = drawn[np.cumsum(drawn) <= len(ids)]
    for length, lengths in ((LENGTH, np.full(len(ids) // LENGTH, LENGTH)), (None, varying)):
        print(f"\nrows of {length or '1 to 1,199'} tokens{'ours':>9}{'the own writer':>33}")
        about = ShardSchema("uint16", length, 0, 50_000, "0" * 32)
        shard = shard_of(ids, lengths)
        for name in FORMATS:
            compare(name, shard, about)


if __name__ == "__main__":
    main()
