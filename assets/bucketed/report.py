"""What bucketing did, in numbers that add up over windows, and drawn: lengths, buckets, padding."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.bucketed.document_chunks import Int64s, Pieces
from assets.report.histograms import bin_of, counted
from assets.report.plots import as_markdown, bar_chart, histogram
from resources.settings.buckets import BucketConfig, bucket_names, stored_lengths

BINS = "tokens"  # a name that `bin_of` takes for a count: of a number + 1, half powers of two


class Made(NamedTuple):
    """What became of a window: tokens of each document, pieces and the sequence of each; tokens
    without padding and bucket of each sequence."""

    num_tokens: Int64s
    pieces: Pieces
    sequence: NDArray[np.uint32]
    used: Int64s
    buckets: NDArray[np.uint8]


def count_window(made: Made, config: BucketConfig) -> dict[str, Any]:
    """Counts of one window.

    `bucket_sequences`, `bucket_tokens` (without padding) and `bucket_padding` by bucket name;
    `documents_cut` are in more than one piece, `fitting_documents_cut` are so without being longer
    than a sequence, `documents_reaching` fill one; `least_padding` is what no way of packing could
    avoid; histograms `document_lengths` and `sequence_documents` by bin.
    """
    names = bucket_names(config)
    sequences = np.bincount(made.buckets, minlength=len(names))
    tokens = np.zeros(len(names), np.int64)
    np.add.at(tokens, made.buckets, made.used)
    padding = sequences * _padded_lengths(made, config) - tokens
    pieces = np.bincount(made.pieces.documents, minlength=len(made.num_tokens))
    last = np.zeros(len(made.num_tokens), np.int64)
    np.maximum.at(last, made.pieces.documents, made.pieces.starts + made.pieces.lengths)
    truncated = made.num_tokens - last
    length = config.edges[-1] + 1 if config.mode == "buckets" else config.sequence_length
    has_one_length = config.mode in ("pack", "concat")
    return {
        "bucket_sequences": dict(zip(names, sequences.tolist(), strict=True)),
        "bucket_tokens": dict(zip(names, tokens.tolist(), strict=True)),
        "bucket_padding": dict(zip(names, padding.tolist(), strict=True)),
        "padding_tokens": int(padding.sum()),
        "least_padding": int(-tokens.sum() % length) if has_one_length else 0,
        "documents_without_tokens": int((made.num_tokens == 0).sum()),
        "documents_cut": int((pieces > 1).sum()),
        "fitting_documents_cut": int(((pieces > 1) & (made.num_tokens <= length)).sum()),
        "documents_reaching": int((made.num_tokens >= length).sum()),
        "documents_truncated": int((truncated > 0).sum()),
        "tokens_truncated": int(truncated.sum()),
        "tokens_overlapped": int(tokens.sum() - last.sum()),
        "document_spans": len(made.sequence),
        "document_lengths": _binned(made.num_tokens),
        "sequence_documents": _binned(np.bincount(made.sequence, minlength=len(made.used))),
    }


def _padded_lengths(made: Made, config: BucketConfig) -> Int64s:
    """The length that a bucket's sequences are padded to; in the open one that of its longest."""
    if config.mode == "buckets":
        in_open = made.used[made.buckets == len(config.edges)]
        return np.array([*config.edges, in_open.max(initial=0)], np.int64)
    return np.array(stored_lengths(config), np.int64)


def _binned(values: Int64s) -> dict[str, int]:
    return counted(bin_of(BINS, pl.Series(values)))


def bin_range(number: int) -> tuple[int, int]:
    """The least and the greatest whole number of a bin; bin 1, from 0.41 to 1, has none."""
    least, beyond = (math.ceil(2 ** (each / 2)) - 1 for each in (number, number + 1))
    return least, beyond - 1


def readable(counts: Mapping[str, int]) -> dict[str, int]:
    """A histogram by ranges of whole numbers, `3-4`, instead of numbers of bins."""
    return {_bin_name(number): counts[str(number)] for number in sorted(map(int, counts))}


def _bin_name(number: int) -> str:
    least, greatest = bin_range(number)
    return f"{least:,}" if least == greatest else f"{least:,}-{greatest:,}"


def shares(extra: Mapping[str, Any], documents: int) -> dict[str, float]:
    """Padding as a share of all stored tokens, cut documents as a share of all, and documents in
    a sequence. A batch of several buckets is padded further, to its longest sequence."""
    stored = sum(extra["bucket_tokens"].values()) + extra["padding_tokens"]
    sequences = sum(extra["bucket_sequences"].values())
    return {
        "padding_share": extra["padding_tokens"] / max(1, stored),
        "least_padding_share": extra["least_padding"] / max(1, stored),
        "documents_cut_share": extra["documents_cut"] / max(1, documents),
        "documents_per_sequence": extra["document_spans"] / max(1, sequences),
    }


def report_markdown(extra: Mapping[str, Any], config: BucketConfig) -> dict[str, str]:
    """Markdown by title: `buckets` (a table), `sequence_plots`, and `warnings` if there are any."""
    sequences, tokens, padding = (
        extra[f"bucket_{measure}"] for measure in ("sequences", "tokens", "padding")
    )
    rows = [
        f"| {name} | {sequences[name]:,} | {tokens[name]:,} | {padding[name]:,} | "
        f"{padding[name] / max(1, tokens[name] + padding[name]):.4%} |"
        for name in bucket_names(config)
    ]
    bars = [
        (name, (float(tokens[name]),), f"{sequences[name]:,} sequences")
        for name in bucket_names(config)
    ]
    plots = [
        as_markdown(bar_chart("tokens by bucket", bars), "buckets"),
        _histogram("tokens of a document", extra["document_lengths"]),
        _histogram("documents in a sequence", extra["sequence_documents"]),
    ]
    warnings = warnings_of(extra, config)
    return {
        "buckets": "\n".join(
            [
                "| bucket | sequences | tokens | padding | share |",
                "|---|---:|---:|---:|---:|",
                *rows,
            ]
        ),
        "sequence_plots": "\n\n".join(plots),
        **({"warnings": "\n".join(f"* {text}" for text in warnings)} if warnings else {}),
    }


def warnings_of(extra: Mapping[str, Any], config: BucketConfig) -> list[str]:
    """What the numbers say against the config, as sentences."""
    if extra["documents_reaching"] or not extra["document_lengths"]:
        return []
    _, longest = bin_range(max(map(int, extra["document_lengths"])))
    if config.mode == "buckets":
        what, change = f"{config.edges[-1] + 1} tokens (buckets.edges)", "lower edges"
    else:
        what = f"{config.sequence_length} tokens (buckets.sequence_length)"
        change = "a shorter sequence_length"
    return [f"no document reaches {what}: the longest has at most {longest:,}. Take {change}"]


def _histogram(title: str, counts: Mapping[str, int]) -> str:
    by_bin = {int(number): count for number, count in counts.items()}
    last = max(by_bin, default=0)
    bins = [(_bin_name(number), by_bin.get(number, 0)) for number in range(last + 1) if number != 1]
    return as_markdown(histogram(title, bins, ()), title)
