"""Deduplication: its speed on real text next to other tools, and its growth with the corpus.

    make .venv/installed-bench
    python benchmarks/deduped.py [folder of corpora] [--megabytes 64] [--documents 1000]
    python benchmarks/deduped.py --scale 1e5,1e6,1e7 [--scratch /tmp]

The first prints, for one core and in CPU time, what each stage does with real documents (default
config: word 5-grams, 14 bands of 8 rows), then what datatrove's four MinHash stages and
datasketch's MinHash LSH take with the same parameters for a sample of the same documents. Files are
read and written by all three.
The second takes synthetic signatures (synthetic_signatures.py), which have no texts to verify
candidates by (so preset datatrove): time, peak memory and disk of the index and of clustering, from
nothing and in a night that adds 1 % of documents. Memory is what the process holds (anonymous
pages), and with the mapped pages of files that happened to be resident.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ.setdefault("POLARS_MAX_THREADS", "2" if "--scale" in " ".join(sys.argv) else "1")
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import_module("pipeline_defs")  # what it tells Polars' allocator must come before polars

import polars as pl  # noqa: E402
from corpus_texts import read_texts  # noqa: E402
from dedup_peers import Found, datasketch_minhash, datatrove_minhash  # noqa: E402
from dedup_stages import STAGES, empty_corpus, publish_filtered, run_stage  # noqa: E402

PARTS, ROUNDS = 2, 3
BANDS, ROWS = 14, 8
NIGHTLY = 0.01
WARM_UP = 20_000
SCALED = ("band_index", "duplicates")
SAMPLE_SECONDS = 0.02


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "sample_data")
    parser.add_argument("--megabytes", type=float, default=64)
    parser.add_argument("--documents", type=int, default=1000, help="of the other tools' sample")
    parser.add_argument("--scale", help="numbers of synthetic documents, such as 1e5,1e6,1e7")
    parser.add_argument("--scratch", type=Path, help="where 600 bytes a document may lie")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        if options.scale is None:
            measure_text(options, Path(scratch))
        else:
            measure_scale([int(float(n)) for n in options.scale.split(",")], Path(scratch))


def measure_text(options: argparse.Namespace, scratch: Path) -> None:
    """Print speeds on real text, ours and others'."""
    texts = read_texts(options.folder, int(options.megabytes * 1e6))
    ids = pl.DataFrame({"doc_id": [f"{i:032x}" for i in range(texts.height)]})
    documents = ids.hstack(texts.with_columns(url=pl.lit("")))
    print(f"{'one core, CPU time':<34}{'seconds':>8}{'MB/s':>8}{'docs/s':>10}")
    ours = our_speed(documents, scratch)
    sample = documents.head(options.documents)
    print(f"\na sample of {sample.height} documents:")
    rates = {"ours": our_speed(sample, scratch)}
    try:
        found = datatrove_minhash(sample, scratch / "datatrove", BANDS, ROWS)
        rates["datatrove"] = print_found("datatrove", found, sample)
    except ImportError as error:
        print(f"datatrove: {error}; make .venv/installed-bench")
    found = datasketch_minhash(sample, BANDS, ROWS)
    rates["datasketch"] = print_found("datasketch", found, sample)
    print("\ndocuments per second, ours over theirs:")
    for name, rate in rates.items():
        if name != "ours":
            print(f"  {name}: {ours / rate:.0f} (on the sample alone: {rates['ours'] / rate:.0f})")


def our_speed(documents: pl.DataFrame, scratch: Path) -> float:
    """Documents per second of all stages; prints the best round of each."""
    spent: dict[str, list[float]] = {stage: [] for stage in STAGES}
    for _ in range(ROUNDS + 1):  # the first compiles and loads
        folder = Path(tempfile.mkdtemp(dir=scratch))
        corpus = empty_corpus(folder, ["text"], workers=1)
        publish_filtered(corpus, "text", documents, PARTS)
        for stage in STAGES:
            start = time.process_time()
            run_stage(corpus, stage)
            spent[stage].append(time.process_time() - start)
        shutil.rmtree(folder)
    for stage, seconds in spent.items():
        line(stage, min(seconds), documents)
    total = sum(min(seconds) for seconds in spent.values())
    line("all of deduplication", total, documents)
    return documents.height / total


def print_found(name: str, found: Found, documents: pl.DataFrame) -> float:
    """Documents per second of another tool; prints its steps."""
    for step, seconds in found.seconds.items():
        line(f"{name}: {step}", seconds, documents)
    total = sum(found.seconds.values())
    line(f"{name}: all", total, documents)
    return documents.height / total


def line(name: str, seconds: float, documents: pl.DataFrame) -> None:
    """One line of the table."""
    megabytes = float(documents["text"].str.len_bytes().sum()) / 1e6
    rate = f"{megabytes / seconds:>8.1f}{documents.height / seconds:>10.0f}"
    print(f"{name:<34}{seconds:>8.3f}{rate}", flush=True)


def measure_scale(sizes: list[int], scratch: Path) -> None:
    """Print a Markdown table of the index and clustering of more and more documents."""
    print("| documents | run | step | wall s | CPU s | held MB | with maps MB | disk MB |")
    print("|---:|---|---|---:|---:|---:|---:|---:|")
    for size in sizes:
        folder = scratch / str(size)
        more = size + int(size * NIGHTLY)
        for run, documents in (("from nothing", size), ("+1 %", more), ("no change", more)):
            in_process(make_signed, folder, more, documents)
            for step, numbers in in_process(cluster, folder).items():
                disk = sum(f.stat().st_size for f in (folder / "store" / step).rglob("*.*"))
                cells = [numbers[name] for name in ("wall", "cpu", "held", "resident")]
                shown = " | ".join(f"{cell:.1f}" for cell in [*cells, disk / 1e6])
                print(f"| {size:,} | {run} | {step} | {shown} |", flush=True)
        signed = sum(f.stat().st_size for f in (folder / "store/signatures").rglob("*.*"))
        print(f"| {size:,} | | signatures (input) | | | | | {signed / 1e6:.1f} |")
        shutil.rmtree(folder)


def in_process(work: Any, folder: Path, *arguments: Any) -> Any:
    """What a function writes to a file, run in a fresh process: memory starts anew."""
    report = folder.parent / "report.json"
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=work, args=(folder, report, *arguments))
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError(f"{work.__name__} ended with {process.exitcode}: see above")
    return json.loads(report.read_text())


def make_signed(folder: Path, report: Path, total: int, documents: int) -> None:
    """Publish the synthetic documents of a run that are not there yet."""
    from synthetic_signatures import SOURCES, layout, publish_documents

    corpus = empty_corpus(folder, SOURCES, workers=2, preset="datatrove")
    publish_documents(corpus, layout(total), documents)
    report.write_text("{}")


def cluster(folder: Path, report: Path) -> None:
    """Build index and clusters; report time and peak memory of each."""
    from synthetic_signatures import SOURCES

    warm_up()
    corpus = empty_corpus(folder, SOURCES, workers=2, preset="datatrove")
    measured = {}
    for step in SCALED:
        peaks = {"RssAnon": 0, "VmRSS": 0}
        done = threading.Event()
        watcher = threading.Thread(target=watch_memory, args=(peaks, done))
        watcher.start()
        wall, cpu = time.perf_counter(), time.process_time()
        run_stage(corpus, step)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        done.set()
        watcher.join()
        held, resident = peaks["RssAnon"] / 1e3, peaks["VmRSS"] / 1e3
        measured[step] = {"wall": wall, "cpu": cpu, "held": held, "resident": resident}
    report.write_text(json.dumps(measured))


def warm_up() -> None:
    """Load all kernels."""
    from synthetic_signatures import SOURCES, layout, publish_documents

    with tempfile.TemporaryDirectory() as scratch:
        corpus = empty_corpus(Path(scratch), SOURCES, workers=2, preset="datatrove")
        publish_documents(corpus, layout(WARM_UP), WARM_UP)
        for step in SCALED:
            run_stage(corpus, step)


def watch_memory(peaks: dict[str, int], done: threading.Event) -> None:
    """Keep the highest values of /proc/self/status, in kB, until told to stop."""
    while not done.wait(SAMPLE_SECONDS):
        status = Path("/proc/self/status").read_text()
        for name in peaks:
            now = int(status.partition(f"{name}:")[2].split(maxsplit=1)[0])
            peaks[name] = max(peaks[name], now)


if __name__ == "__main__":
    main()
