"""Tokens and speed by pattern: `tokenizer.pattern` and `digits`, on documents that trained none.

    make .venv/installed-bench
    python benchmarks/patterns.py [folder of corpora] [--train 10] [--megabytes 40] [--vocabulary N]

Each tokenizer is trained on the same first megabytes and encodes the next ones, on one core: the
least CPU time of four rounds that take turns. Prints MB/s next to that of GPT-2's pattern, and by
language bytes per token of GPT-2's and the share of tokens that the others save.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ.setdefault("POLARS_MAX_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("FASTOKENS_BPE_THREADS", "1")
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import_module("pipeline_defs")  # what it tells Polars' allocator must come before polars

import numpy as np  # noqa: E402
import polars as pl  # noqa: E402
from corpus_texts import read_texts  # noqa: E402

from assets.tokenized.encoders import Encoder, are_equal, make_encoders  # noqa: E402
from assets.tokenized.tokenizer import train_bpe  # noqa: E402
from resources.settings.tokenizer import TokenizerConfig  # noqa: E402

ROUNDS = 4
LEAST_BYTES = 200_000  # of a language that is shown
SPLITS: tuple[dict[str, Any], ...] = (
    *({"pattern": name} for name in ("gpt2", "llama3", "qwen", "gpt4o")),
    *({"pattern": name, "digits": digits} for name, digits in (("gpt4o", 1), ("gpt2", 3))),
    {"pattern": r"\p{L}+|\s+|\p{N}+|[^\s\p{L}\p{N}]+"},
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "sample_data")
    parser.add_argument("--train", type=float, default=10, help="megabytes that train")
    parser.add_argument("--megabytes", type=float, default=40, help="megabytes that are encoded")
    parser.add_argument("--vocabulary", type=int, default=32_000)
    options = parser.parse_args()
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    texts = read_texts(options.folder).with_columns(size=pl.col("text").str.len_bytes())
    megabytes = texts["size"].cast(pl.Int64).cum_sum() / 1e6
    trained = texts.filter(megabytes <= options.train)
    encoded = texts.filter(megabytes > options.train).filter(
        megabytes.filter(megabytes > options.train) <= options.train + options.megabytes
    )
    rows = encoded["text"].to_list()
    encoders, tokens = {}, encoded.select("lang", "size")
    for split in SPLITS:
        name = " ".join(map(str, split.values()))
        config = TokenizerConfig.model_validate({"vocab_size": options.vocabulary} | split)
        made = make_encoders(train_bpe([trained["text"]], config))
        assert are_equal(made.best, made.reference, rows[:200])
        encoders[name] = made.best
        tokens = tokens.with_columns(pl.Series(name, np.diff(made.best.encode(rows)[1])))
    print(f"{encoded['size'].sum() / 1e6:.1f} MB of {encoded.height:,} documents")
    show_speed(rows, encoders, encoded["size"].sum())
    show_tokens(tokens, list(encoders))


def show_speed(rows: list[str], encoders: dict[str, Encoder], size: int) -> None:
    """Print MB/s of each encoder, and the ratio to the first."""
    best = dict.fromkeys(encoders, float("inf"))
    for _ in range(ROUNDS):
        for name, encoder in encoders.items():
            start = time.process_time()
            encoder.encode(rows)
            best[name] = min(best[name], time.process_time() - start)
    first = next(iter(best.values()))
    for name, seconds in best.items():
        print(f"{name:<40} {size / seconds / 1e6:7.1f} MB/s  {first / seconds:5.2f}")


def show_tokens(tokens: pl.DataFrame, names: list[str]) -> None:
    """Print bytes per token of the first by language, and the share that the others save."""
    base, *others = names
    shown = tokens.filter(pl.col("size").sum().over("lang") >= LEAST_BYTES)
    sums = pl.concat(
        [
            tokens.select(pl.lit("all").alias("lang"), pl.all().exclude("lang").sum()),
            shown.group_by("lang").sum().sort("size", descending=True),
        ]
    )
    saved = [(100 - 100 * pl.col(name) / pl.col(base)).round(1).alias(name) for name in others]
    table = sums.select(
        "lang",
        "size",
        pl.col(base),
        (pl.col("size") / pl.col(base)).round(2).alias("bytes_per_token"),
        *saved,
    )
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=200):
        print(table)


if __name__ == "__main__":
    main()
