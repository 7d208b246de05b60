"""The tokenized stage, next to datatrove's DocumentTokenizer on the same documents.

    make .venv/installed-bench
    python benchmarks/tokenized.py [folder of corpora] [--megabytes 64] [--sample 4]
                                   [--tokenizer tokenizer.json] [--part documents.parquet ...]

Prints MB/s of UTF-8 text per core: for each encoder alone, and for the whole stage (read the part,
encode, check, write, hash, publish), in a fresh process (`first`) and once its caches are warm. The
reference encoder and datatrove, which needs it, get a sample of the documents. Everything runs on
one core, each measurement in a process of its own, in CPU time; what is loaded or imported before
the first document is not counted, but printed. Ratios are of one run on one machine.
Without --tokenizer one of 32,000 entries is trained on the first 20 MB.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ.setdefault("POLARS_MAX_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import_module("pipeline_defs")  # what it tells Polars' allocator must come before polars

import polars as pl  # noqa: E402
from corpus_texts import read_texts  # noqa: E402

ROUNDS = 3
END = "<|endoftext|>"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "sample_data")
    parser.add_argument("--megabytes", type=float, default=64)
    parser.add_argument("--sample", type=float, default=4, help="megabytes for slow encoders")
    parser.add_argument("--tokenizer", type=Path)
    parser.add_argument("--part", type=Path, nargs="*", help="documents of these Parquet files")
    options = parser.parse_args()
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    with tempfile.TemporaryDirectory() as scratch:
        documents = read_documents(options.folder, options.part)
        whole = write_part(documents, Path(scratch) / "whole", options.megabytes)
        sample = write_part(documents, Path(scratch) / "sample", options.sample)
        tokenizer = options.tokenizer or train(documents, Path(scratch))
        del documents
        measure(whole, sample, tokenizer)


def read_documents(folder: Path, parts: list[Path] | None) -> pl.DataFrame:
    """doc_id, text, lang of the documents, in an order that mixes the sources."""
    if parts:
        frames = [pl.read_parquet(path, columns=["doc_id", "text", "lang"]) for path in parts]
        return pl.concat(frames).sort("doc_id")
    texts = read_texts(folder).select("text", "lang")
    ids = [f"{row * 0x9E3779B97F4A7C15 % 2**64:016x}{row:016x}" for row in range(texts.height)]
    return pl.DataFrame({"doc_id": ids}).hstack(texts)


def write_part(documents: pl.DataFrame, folder: Path, megabytes: float) -> Path:
    """The first documents, up to a size, as a part of `deduped`, in a folder of its own."""
    folder.mkdir()
    sizes = documents["text"].str.len_bytes().cast(pl.Int64)
    part = documents.filter(sizes.cum_sum() <= megabytes * 1e6)
    path = folder / "documents.parquet"
    part.write_parquet(path, compression="zstd", compression_level=1)
    return path


def train(documents: pl.DataFrame, folder: Path) -> Path:
    """A tokenizer of 32,000 entries, trained on the first documents."""
    from assets.tokenized.tokenizer import train_bpe
    from resources.settings.tokenizer import TokenizerConfig

    sizes = documents["text"].str.len_bytes().cast(pl.Int64)
    texts = documents.filter(sizes.cum_sum() <= 20_000_000)["text"].to_list()
    path = folder / "tokenizer.json"
    path.write_text(train_bpe([texts], TokenizerConfig()), encoding="utf-8")
    return path


def measure(whole: Path, sample: Path, tokenizer: Path) -> None:
    """Print a line per encoder, then the whole stage, then datatrove."""
    texts = pl.read_parquet(whole)["text"]
    print(f"{len(texts)} documents, {text_size(whole):.1f} MB of text; {tokenizer}\n")
    print(f"{'one core':<34}{'MB':>6}{'start s':>9}{'first':>8}{'warm':>8}  MB/s; peak MB")
    for name, part in (("fastokens", whole), ("gigatoken", whole), ("tokenizers", sample)):
        line(f"{name} alone", part, in_new_process(encode_only, name, part, tokenizer))
    ours = line("whole stage", whole, in_new_process(whole_stage, whole, tokenizer))
    theirs = line("datatrove", sample, in_new_process(datatrove_stage, sample, tokenizer))
    if theirs:
        first, warm = (mine / other for mine, other in zip(ours, theirs, strict=True))
        print(f"\nwhole stage / datatrove: {first:.0f} times at first, {warm:.0f} times once warm")


def text_size(part: Path) -> float:
    """Megabytes of text of a part."""
    return float(pl.read_parquet(part, columns=["text"])["text"].str.len_bytes().sum()) / 1e6


def line(name: str, part: Path, found: Any) -> tuple[float, float]:
    """One line of the table; returns MB/s (first, warm)."""
    if found is None:
        print(f"{name:<34}  not installed: make .venv/installed-bench")
        return (0.0, 0.0)
    start, spent, peak = found
    size = text_size(part)
    first, warm = size / spent[0], size / min(spent[1:])
    numbers = f"{size:>6.0f}{start:>9.2f}{first:>8.1f}{warm:>8.1f}"
    print(f"{name:<34}{numbers}        {peak:.0f}", flush=True)
    return first, warm


def in_new_process(work: Callable[..., Any], *given: Any) -> Any:
    """(CPU seconds before the first document, of each round, peak memory in MB) of `work`, or None
    if a package is missing; in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, given)


def rounds_of(start: float, work: Callable[[int], object]) -> tuple[float, list[float], float]:
    """What `in_new_process` gives back: `start` is when loading began."""
    spent = [time.process_time() - start]
    for number in range(ROUNDS):
        begin = time.process_time()
        work(number)
        spent.append(time.process_time() - begin)
    return spent[0], spent[1:], peak_megabytes()


def peak_megabytes() -> float:
    """Peak memory of this program; that of `getrusage` begins with what its parent had."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return float(status.partition("VmHWM:")[2].split()[0]) / 1e3


def encode_only(name: str, part: Path, tokenizer: Path) -> Any:
    """An encoder alone, in the stage's slices."""
    from assets.tokenized.encode_documents import slices_of

    start = time.process_time()
    encode = encoder_named(name, tokenizer.read_text(encoding="utf-8"))
    if encode is None:
        return None
    texts = pl.read_parquet(part)["text"]
    slices = list(slices_of(texts.str.len_bytes().to_numpy()))
    return rounds_of(start, lambda _: [encode(texts[rows]) for rows in slices])


def encoder_named(name: str, tokenizer_json: str) -> Callable[[pl.Series], object] | None:
    """A function that encodes a slice of texts; None if its package is missing."""
    from assets.tokenized.encoders import FastEncoder, ReferenceEncoder

    if name != "gigatoken":
        made = {"fastokens": FastEncoder, "tokenizers": ReferenceEncoder}[name](tokenizer_json)
        return lambda texts: made.encode(texts.to_list())
    try:
        from gigatoken.gigatoken_rs import load_hf_json
    except ImportError:
        return None
    content = json.loads(tokenizer_json) | {"added_tokens": [], "post_processor": None}
    rust = load_hf_json(json.dumps(content))
    return lambda texts: [rust.encode(text) for text in texts.cast(pl.Binary)]


def whole_stage(part: Path, tokenizer: Path) -> Any:
    """What the asset does for one part: read, encode, check, write, hash, publish."""
    from assets.deduped.document_files import KeptDocuments
    from assets.tokenized.asset import EncodeInputs, encode_part
    from assets.tokenized.encode_documents import TokenFormat, encode_documents
    from assets.tokenized.encoders import load_encoders
    from assets.tokenized.round_trip import round_trip
    from resources.store.published import as_it_is
    from resources.tasks import Task

    start = time.process_time()
    encoders = load_encoders(tokenizer.read_text(encoding="utf-8"))
    reference = encoders.reference.tokenizer
    form = TokenFormat(reference.get_vocab_size(), reference.token_to_id(END))
    one = pl.DataFrame({"doc_id": ["0" * 32], "text": ["a document"]})
    round_trip(one, encode_documents(one, encoders, form), encoders, form)  # loads numba: 1 s
    documents = KeptDocuments(as_it_is(part), None)
    inputs = EncodeInputs(documents, as_it_is(tokenizer), form, is_trained=False)
    with tempfile.TemporaryDirectory() as folder:
        return rounds_of(
            start,
            lambda number: encode_part(
                Task(Path(folder), "tokenized", "bench", f"part{number}", "0" * 32, 0, inputs)
            ),
        )


def datatrove_stage(part: Path, tokenizer: Path) -> Any:
    """Read Parquet, encode, write .ds, as its executor chains the steps; without its shuffle."""
    try:
        from datatrove.pipeline.readers import ParquetReader
        from datatrove.pipeline.tokens import DocumentTokenizer
        from loguru import logger
    except ImportError:
        return None
    logger.remove()
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        reader = ParquetReader(str(part.parent), id_key="doc_id")
        steps = [
            DocumentTokenizer(
                f"{folder}/{number}", str(tokenizer), eos_token=END, shuffle_documents=False
            )
            for number in range(ROUNDS)
        ]
        for step in steps:
            assert step.tokenizer is not None  # loads it
        return rounds_of(start, lambda number: steps[number].run(reader.run(None, 0, 1), 0, 1))


if __name__ == "__main__":
    main()
