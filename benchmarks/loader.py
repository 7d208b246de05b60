"""Samples a second of our loader and of others: litData, MosaicML, WebDataset, grain, a memmap.

    python benchmarks/loader.py STORE --phase general       (a phase of sequences of one length)

All read the same tokens, shuffled, in one process, in batches of 8; each in a fresh interpreter, in
turn, several rounds. The peers' data are written by their own writers, from the phase's samples.
Needs what requirements-loaders.lock has (which is no extra of ours: see requirements-loaders.in);
what is not installed is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from corpus_loader import CorpusLoader, LoaderOptions

BATCH = 8
WARM_UP = 100  # batches before the clock starts
SHARD_BYTES = 16 << 20


def write_memmap(tokens: np.ndarray, folder: Path) -> None:
    """One flat file."""
    tokens.tofile(folder / "tokens.bin")


def write_mds(tokens: np.ndarray, folder: Path) -> None:
    """MosaicML's shards, by its own writer."""
    import_mosaic()
    from streaming import MDSWriter

    encoding = {"tokens": f"ndarray:{tokens.dtype}:{tokens.shape[1]}"}
    with MDSWriter(out=str(folder), columns=encoding, size_limit=SHARD_BYTES) as writer:
        for row in tokens:
            writer.write({"tokens": row})


def write_litdata(tokens: np.ndarray, folder: Path) -> None:
    """litData's chunks of tokens, by its own writer."""
    from litdata.streaming.item_loader import TokensLoader
    from litdata.streaming.writer import BinaryWriter

    writer = BinaryWriter(
        str(folder), chunk_bytes=SHARD_BYTES, item_loader=TokensLoader(tokens.shape[1])
    )
    for index, row in enumerate(tokens):
        writer.add_item(index, row)
    writer.done()
    writer.merge()


def write_grain(tokens: np.ndarray, folder: Path) -> None:
    """One flat file, if grain is installed."""
    import grain  # noqa: F401

    write_memmap(tokens, folder)


def write_webdataset(tokens: np.ndarray, folder: Path) -> None:
    """Tar files of WebDataset, by its own writer."""
    import webdataset

    pattern = f"file:{folder}/%05d.tar"
    with webdataset.ShardWriter(pattern, maxsize=SHARD_BYTES, verbose=0) as writer:
        for index, row in enumerate(tokens):
            writer.write({"__key__": f"{index:09}", "tokens.npy": row})


def import_mosaic() -> Any:
    """MosaicML Streaming, which imports torchvision for datasets of pictures: not needed here."""
    import transformers.utils  # noqa: F401  looks for the real one: before there is a stand-in

    try:
        import torchvision  # noqa: F401
    except (ImportError, RuntimeError):
        for name, member in (("datasets", "VisionDataset"), ("transforms.functional", "to_tensor")):
            module = types.ModuleType(f"torchvision.{name}")
            setattr(module, member, type(member, (), {}))
            sys.modules[f"torchvision.{name}"] = module
        for name in ("torchvision", "torchvision.transforms"):
            sys.modules[name] = types.ModuleType(name)
    import streaming

    return streaming


def ours(store: Path, phase: str, dtype: Any) -> Iterator[Any]:
    """Our loader: numpy out."""
    options = LoaderOptions(dtype=dtype)
    loader = CorpusLoader(store, phase, batch_size=BATCH, options=options)
    while True:
        for batch in loader:
            yield batch.tokens


def ours_under_torch(store: Path, phase: str) -> Iterator[Any]:
    """Our dataset under our kind of torch's DataLoader, int64 out."""
    from corpus_loader.torch_dataset import CorpusDataLoader, CorpusDataset

    batches = CorpusDataLoader(CorpusDataset(CorpusLoader(store, phase, batch_size=BATCH)))
    while True:
        for batch in batches:
            yield batch["tokens"]


def plain_memmap(folder: Path, length: int, dtype: str) -> Iterator[Any]:
    """A map dataset of four lines under torch's DataLoader, int64 out."""
    from torch import from_numpy
    from torch.utils.data import DataLoader, Dataset

    tokens = np.memmap(folder / "tokens.bin", dtype, "r").reshape(-1, length)

    class Rows(Dataset):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return len(tokens)

        def __getitem__(self, index: int) -> Any:
            return from_numpy(tokens[index].astype("int64"))

    while True:
        yield from DataLoader(Rows(), batch_size=BATCH, shuffle=True)


def litdata_stream(folder: Path, length: int) -> Iterator[Any]:
    """litData's StreamingDataset with its TokensLoader."""
    from litdata import StreamingDataLoader, StreamingDataset, TokensLoader

    dataset = StreamingDataset(
        str(folder), item_loader=TokensLoader(block_size=length), shuffle=True, drop_last=False
    )
    while True:
        yield from StreamingDataLoader(dataset, batch_size=BATCH, num_workers=0)


def mosaic_stream(folder: Path) -> Iterator[Any]:
    """MosaicML's StreamingDataset, its default shuffle."""
    streaming = import_mosaic()
    from torch.utils.data import DataLoader

    streaming.base.util.clean_stale_shared_memory()
    dataset = streaming.StreamingDataset(local=str(folder), shuffle=True, batch_size=BATCH)
    while True:
        yield from DataLoader(dataset, batch_size=BATCH)


def webdataset_stream(folder: Path) -> Iterator[Any]:
    """WebDataset, with a shuffle of files and a buffer of 1,000 samples, as its documentation."""
    import webdataset

    files = [f"file:{path}" for path in sorted(folder.glob("*.tar"))]
    dataset = webdataset.WebDataset(files, shardshuffle=len(files)).shuffle(1000).decode()
    while True:
        yield from dataset.to_tuple("tokens.npy").batched(BATCH)


def grain_stream(folder: Path, length: int, dtype: str) -> Iterator[Any]:
    """grain's MapDataset over the memory-mapped file: it has a global shuffle of its own."""
    import grain

    tokens = np.memmap(folder / "tokens.bin", dtype, "r").reshape(-1, length)
    dataset = grain.MapDataset.source(tokens).shuffle(seed=0).repeat()
    yield from dataset.batch(BATCH).to_iter_dataset()


def measure(batches: Iterator[Any], seconds: float) -> float:
    """Samples a second, once warm."""
    for _ in range(WARM_UP):
        next(batches)
    count, start = 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < seconds:
        next(batches)
        count += BATCH
    return count / spent


def first_batch(store: Path, phase: str) -> float:
    """Seconds to a first batch: from before the imports, in a Python that has started."""
    code = (
        "import time; start = time.perf_counter(); from corpus_loader import CorpusLoader; "
        f"next(iter(CorpusLoader({str(store)!r}, {phase!r}, batch_size={BATCH}))); "
        "print(time.perf_counter() - start)"
    )
    return float(run_python(["-c", code]))


def run_python(arguments: list[str]) -> str:
    """The last line that a Python of its own prints."""
    root = str(Path(__file__).resolve().parent.parent)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *arguments],
        env=os.environ | {"PYTHONPATH": root, "LITDATA_DISABLE_VERSION_CHECK": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.strip().splitlines()[-1]


def readers(options: argparse.Namespace, about: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """Everything that can be measured, by name."""
    folder, length = options.folder, about.get("length", 0)
    return {
        "ours, as stored": lambda: ours(options.store, options.phase, "stored"),
        "ours, int64": lambda: ours(options.store, options.phase, "int64"),
        "ours, torch's DataLoader": lambda: ours_under_torch(options.store, options.phase),
        "plain memmap, int64": lambda: plain_memmap(folder / "memmap", length, about["dtype"]),
        "litdata": lambda: litdata_stream(folder / "litdata", length),
        "mosaicml": lambda: mosaic_stream(folder / "mosaicml"),
        "webdataset": lambda: webdataset_stream(folder / "webdataset"),
        "grain": lambda: grain_stream(folder / "grain", length, about["dtype"]),
    }


GIVE_INT64 = ("ours, int64", "ours, torch's DataLoader", "plain memmap, int64")  # others: uint16
WRITERS = {
    "memmap": write_memmap,
    "litdata": write_litdata,
    "mosaicml": write_mds,
    "webdataset": write_webdataset,
    "grain": write_grain,
}


def write_peers(options: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """Write the phase's samples in the peers' formats; what the tokens are, and who is left out."""
    whole = LoaderOptions(drop_last=False)
    loader = CorpusLoader(options.store, options.phase, batch_size=1024, options=whole)
    batches = islice(loader, -(-options.samples // 1024))
    tokens = np.concatenate([batch.tokens for batch in batches])[: options.samples]
    missing = []
    for name, write in WRITERS.items():
        (options.folder / name).mkdir()
        try:
            write(tokens, options.folder / name)
        except ImportError as error:
            missing.append(name)
            sys.stderr.write(f"{name} is left out: {error}\n")
    return {"length": tokens.shape[1], "dtype": str(tokens.dtype), "samples": len(tokens)}, missing


def main() -> None:
    """Write, measure in turn, print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("store", type=Path)
    parser.add_argument("--phase", default="general")
    parser.add_argument("--samples", type=int, default=40_000, help="for the peers, at most")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    parser.add_argument("--about", type=json.loads, default={}, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.store = options.store.absolute()
    if options.only:
        print(measure(readers(options, options.about)[options.only](), options.seconds))
        return
    with tempfile.TemporaryDirectory() as folder:
        options.folder = Path(folder)
        about, missing = write_peers(options)
        print(f"{about['samples']:,} samples of {about['length']} tokens, batches of {BATCH}")
        names = [name for name in readers(options, about) if name.split()[0] not in missing]
        shared = [str(options.store), "--phase", options.phase, "--folder", folder]
        shared += ["--seconds", str(options.seconds), "--about", json.dumps(about)]
        rates: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(options.rounds):
            for name in names:
                rates[name].append(float(run_python([__file__, *shared, "--only", name])))
    medians = {name: float(np.median(rates[name])) for name in names}
    for name, median in medians.items():
        own = "ours, int64" if name in GIVE_INT64 else "ours, as stored"
        ratio = f"{own} / this: {medians[own] / median:.1f}"
        print(f"{name:26} {median:12,.0f} samples/s   {ratio}")
    starts = [first_batch(options.store, options.phase) for _ in range(options.rounds)]
    print(f"first batch after {np.median(starts):.3f} s, imports included")


if __name__ == "__main__":
    main()
