"""datatrove's pipeline over Parquet files: filter, redact, deduplicate, tokenize, shuffle.

    .venv/bin/python benchmarks/datatrove_chain.py FOLDER --tokenizer tokenizer.json --workers 2

As its documentation shows it: an executor per stage, files between them. The filters run in the
order that is fastest on these documents: by seconds per document that they reject, of a sample.
Prints the wall seconds of each stage.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import polars as pl

sys.path.append(str(Path(__file__).resolve().parent))

from dedup_peers import hash_shingle

BANDS, ROWS = 14, 8
SAMPLE = 100  # documents to rank the filters with
TOKENS_IN_MEMORY = 100_000_000


def main() -> None:
    """Run every stage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="with input/*.parquet; gets the outputs")
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    for name, tasks, pipeline in stages(args.folder, args.tokenizer, args.workers):
        start = time.perf_counter()
        run(pipeline, tasks, min(tasks, args.workers), args.folder / "logs" / name)
        print(f"datatrove {name}: {time.perf_counter() - start:.1f} s", flush=True)


def run(pipeline: Sequence[Any], tasks: int, workers: int, logs: Path) -> None:
    """Run a stage with datatrove's local executor; its log is thrown away."""
    from datatrove.executor.local import LocalPipelineExecutor

    executor = LocalPipelineExecutor(
        list(pipeline), tasks=tasks, workers=workers, logging_dir=str(logs)
    )
    with open(os.devnull, "w") as nothing, redirect_stderr(nothing):
        executor.run()


def stages(folder: Path, tokenizer: Path, workers: int) -> list[tuple[str, int, Sequence[Any]]]:
    """Return name, number of tasks and steps of each stage, in order."""
    from datatrove.pipeline.dedup import (
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupFilter,
        MinhashDedupSignature,
    )
    from datatrove.pipeline.dedup.minhash import MinhashConfig
    from datatrove.pipeline.formatters import PIIFormatter
    from datatrove.pipeline.readers import ParquetReader
    from datatrove.pipeline.tokens import DocumentTokenizer, DocumentTokenizerMerger
    from datatrove.pipeline.writers import ParquetWriter

    def place(name: str) -> str:
        return str(folder / name)

    config = MinhashConfig(n_grams=5, num_buckets=BANDS, hashes_per_bucket=ROWS)
    sign = MinhashDedupSignature(place("signatures"), config)
    sign._hash_func = hash_shingle
    kept = ParquetReader(place("filtered"))
    filters = [ParquetReader(place("input")), *fastest_order(folder / "input"), PIIFormatter()]
    encode = DocumentTokenizer(
        place("tokens"), str(tokenizer), eos_token="<|endoftext|>", shuffle_documents=False
    )
    merge = DocumentTokenizerMerger(place("tokens"), place("merged"), "corpus", seed=1)
    buckets = MinhashDedupBuckets(place("signatures"), place("buckets"), config=config)
    clusters = MinhashDedupCluster(place("buckets"), place("removed"), config)
    remove = [kept, MinhashDedupFilter(place("removed")), ParquetWriter(place("deduped"))]
    return [
        ("filters", workers, [*filters, ParquetWriter(place("filtered"))]),
        ("signatures", workers, [kept, sign]),
        ("buckets", BANDS, [buckets]),
        ("clusters", 1, [clusters]),
        ("removal", workers, remove),
        ("tokenizer", workers, [ParquetReader(place("deduped")), encode]),
        ("merge", 1, [merge]),
    ]


def fastest_order(folder: Path) -> list[Any]:
    """Return the filters by the seconds that each takes to reject a document of a sample."""
    from datatrove.data import Document
    from datatrove.pipeline import filters

    every = pl.read_parquet(folder / "*.parquet", columns=["text"])["text"]
    texts = every.gather_every(max(1, len(every) // SAMPLE))
    steps = [
        filters.GopherQualityFilter(),
        filters.GopherRepetitionFilter(),
        filters.C4QualityFilter(),
        filters.FineWebQualityFilter(),
    ]
    price = {}
    for each in steps:
        each.filter(Document("warm up the tokenizer", "0"))
        start, rejected = time.process_time(), 0
        for text in texts:
            rejected += not passes(each, Document(text, "0"))
        price[each] = (time.process_time() - start) / max(1, rejected)
    return sorted(steps, key=lambda each: price[each])


def passes(step: Any, document: Any) -> bool:
    """Return whether datatrove keeps a document; it raises on some empty texts."""
    try:
        result = step.filter(document)
    except ZeroDivisionError:
        return False
    return result is True or (isinstance(result, tuple) and result[0])


if __name__ == "__main__":
    main()
