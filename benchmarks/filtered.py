"""The filtered stage, next to datatrove's same filters on the same documents.

    make .venv/installed-bench
    python benchmarks/filtered.py [folder of corpora] [--megabytes 64] [--documents 300]

Prints MB/s of UTF-8 text and documents/s per rule group and for the whole stage (read the part,
normalise, language, all rules, PII, word lists, write both tables), on one core and on two, and
datatrove's for Gopher quality, Gopher repetition, C4 and FineWeb on a sample of the documents. One
core: Polars and the engine have one thread and CPU time is measured; two: wall time of two
processes with a part each. Ratios are of one run on one machine.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ.setdefault("POLARS_MAX_THREADS", "1")
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import_module("pipeline_defs")  # what it tells Polars' allocator must come before polars

import polars as pl  # noqa: E402
from corpus_texts import read_texts  # noqa: E402

ALL_RULES: dict[str, Any] = {
    "presets": ["gopher-quality", "gopher-repetition", "c4-datatrove", "fineweb"],
    "pii": {},
    "rules": {"language": {}, "profanity": {}, "pii": {}},
}
ALONE: dict[str, dict[str, Any]] = {
    "normalise only": {"language": {"backend": "none"}, "rules": {"length": None}},
    "language": {"rules": {"length": None, "language": {}}},
    "gopher quality": {"language": {"backend": "none"}, "presets": ["gopher-quality"]},
    "gopher repetition": {"language": {"backend": "none"}, "presets": ["gopher-repetition"]},
    "c4": {"language": {"backend": "none"}, "presets": ["c4-datatrove"]},
    "fineweb": {"language": {"backend": "none"}, "presets": ["fineweb"]},
    "profanity": {"language": {"backend": "none"}, "rules": {"profanity": {}}},
    "pii": {"language": {"backend": "none"}, "pii": {}, "rules": {"pii": {}}},
    "all of these": ALL_RULES,
}
ROUNDS = 3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "sample_data")
    parser.add_argument("--megabytes", type=float, default=64)
    parser.add_argument("--documents", type=int, default=300, help="of datatrove's sample")
    options = parser.parse_args()
    texts = read_texts(options.folder, int(options.megabytes * 1e6))
    documents = pl.DataFrame({"doc_id": [f"{i:08d}" for i in range(texts.height)]}).hstack(texts)
    with tempfile.TemporaryDirectory() as scratch:
        measure(documents, Path(scratch), options.documents)


def measure(documents: pl.DataFrame, scratch: Path, sampled: int) -> None:
    """Print one line per rule group, then the whole stage, then datatrove."""
    size, count = float(documents["text"].str.len_bytes().sum()), documents.height
    print(f"{count} documents, {size / 1e6:.1f} MB of text\n")
    print(f"{'one core, CPU time':<34}{'MB/s':>8}{'docs/s':>10}")
    for name, given in ALONE.items():
        line(name, best_of(lambda given=given: filter_only(documents, given)), size, count)
    part = scratch / "part.parquet"
    documents.write_parquet(part, compression="zstd", compression_level=1)
    seconds = best_of(lambda: whole_stage(part, scratch / "one"))
    line("whole stage, with files", seconds, size, count)
    ours = count / seconds
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    wall = two_processes(part, scratch)
    line("two processes, wall", wall / 2, size, count)
    print(f"peak memory of the process: {peak:.0f} MB\n")
    theirs = datatrove_speed(documents.head(sampled))
    if theirs is not None:
        print(f"\nwhole stage / datatrove: {ours / theirs:.0f} times the documents per second")


def line(name: str, seconds: float, size: float, count: int) -> None:
    """One line of the table."""
    print(f"{name:<34}{size / 1e6 / seconds:>8.1f}{count / seconds:>10.0f}", flush=True)


def best_of(work: Callable[[], object]) -> float:
    """CPU seconds of the best of some rounds, after one that compiles."""
    work()
    spent = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return min(spent)


def filter_only(
    documents: pl.DataFrame, given: dict[str, Any]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The transform without files."""
    from assets.filtered.filter_documents import filter_documents
    from assets.filtered.filter_files import load_filter_data
    from resources.settings.filtering.filters import FilterConfig

    config = FilterConfig.model_validate(given)
    return filter_documents(documents, config, load_filter_data(config, ROOT))


def whole_stage(part: Path, folder: Path) -> None:
    """What the asset does for one part: read, filter, summarise, write, hash, publish."""
    from assets.filtered.asset import FilterInputs, filter_part
    from assets.filtered.filter_files import digests_of
    from resources.settings.filtering.filters import FilterConfig
    from resources.store.published import as_it_is
    from resources.tasks import Task

    config = FilterConfig.model_validate(ALL_RULES)
    inputs = FilterInputs(as_it_is(part), config, ROOT, digests_of(config, ROOT), None)
    filter_part(Task(folder, "filtered", "bench", "part", "0" * 32, 0, inputs))


def two_processes(part: Path, scratch: Path) -> float:
    """Wall seconds in which two processes filter the part once each, warmed up before."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        folders = [(part, scratch / "a"), (part, scratch / "b")]
        pool.starmap(whole_stage, folders * 2, 1)
        start = time.perf_counter()
        pool.starmap(whole_stage, folders * 2, 1)
        return (time.perf_counter() - start) / 2


def datatrove_speed(documents: pl.DataFrame) -> float | None:
    """Documents per CPU second of datatrove's four filters, each document through all of them."""
    try:
        from datatrove.data import Document
        from datatrove.pipeline import filters
        from datatrove_chain import passes
    except ImportError:
        print("datatrove is not installed: make .venv/installed-bench")
        return None
    steps = {
        "gopher quality": filters.GopherQualityFilter(),
        "gopher repetition": filters.GopherRepetitionFilter(),
        "c4": filters.C4QualityFilter(),
        "fineweb": filters.FineWebQualityFilter(),
    }
    steps["gopher quality"].filter(Document("warm up the tokenizer", "0"))
    size = float(documents["text"].str.len_bytes().sum())
    print(f"{'datatrove, one core':<34}{'MB/s':>8}{'docs/s':>10}")
    total = 0.0
    for name, step in steps.items():
        start = time.process_time()
        for row, text in enumerate(documents["text"]):
            passes(step, Document(text, str(row)))
        spent = time.process_time() - start
        total += spent
        line(name, spent, size, documents.height)
    line("all four", total, size, documents.height)
    return documents.height / total


if __name__ == "__main__":
    main()
