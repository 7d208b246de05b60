"""Report on bucketing: numbers that add up over windows, and plots of lengths and padding."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import compress
from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl
from msgspec import UnsetType
from numpy.typing import NDArray

from assets.bucketed.bucketed_records import BucketedNumbers
from assets.bucketed.document_chunks import Int64s, Segments, padded
from assets.report.histograms import bin_of, counted
from resources.charts import Bars, as_markdown, histogram
from resources.settings.buckets import (
    VALIDATION,
    BucketConfig,
    BucketLayout,
    bucket_names,
    split_bucket,
    stored_lengths,
)

BINS = "tokens"  # a name that `bin_of` takes for a count: of a number + 1, half powers of two


class HeldOut(msgspec.Struct, frozen=True):
    """Documents, tokens and sequences held out of training; tokens are without padding."""

    documents: int
    tokens: int
    sequences: int


class Window(NamedTuple):
    """Documents of a window, cut into segments and arranged in sequences.

    num_tokens  tokens of each document
    segments    segments of the documents, and in `sequence` the sequence of each
    used        tokens of each sequence, without padding, and in `buckets` the bucket of each
    """

    num_tokens: Int64s
    segments: Segments
    sequence: NDArray[np.uint32]
    used: Int64s
    buckets: NDArray[np.uint16]


def count_window(window: Window, layout: BucketLayout) -> BucketedNumbers:
    """Count the sequences, padding, cuts and repeated tokens of one window.

    Buckets of a group other than 0 are left out if they have no sequence here.
    """
    config, names = layout.config, layout.names
    sequences = np.bincount(window.buckets, minlength=len(names))
    tokens = np.zeros(len(names), np.int64)
    np.add.at(tokens, window.buckets, window.used)
    padding = sequences * _padded_lengths(window, layout) - tokens
    stored = np.zeros(len(names), np.int64)
    sizes = padded(window.segments.lengths, config.pad_documents_to)
    np.add.at(stored, window.buckets[window.sequence], sizes)
    cuts = np.bincount(window.segments.documents, minlength=len(window.num_tokens)) > 1
    last = np.zeros(len(window.num_tokens), np.int64)
    ends = window.segments.starts + window.segments.lengths
    np.maximum.at(last, window.segments.documents, ends)
    truncated = window.num_tokens - last
    length = config.edges[-1] + 1 if config.mode == "buckets" else config.sequence_length
    has_one_length = config.mode in ("pack", "concat")  # a bucket is a group, then
    num_plain = len(bucket_names(config))
    shown = [index < num_plain or count > 0 for index, count in enumerate(sequences.tolist())]

    def by_bucket(counts: Int64s) -> dict[str, int]:
        return dict(compress(zip(names, counts.tolist(), strict=True), shown))

    return BucketedNumbers(
        bucket_sequences=by_bucket(sequences),
        bucket_tokens=by_bucket(tokens),
        bucket_padding=by_bucket(padding),
        padding_tokens=int(padding.sum()),
        least_padding=int((stored - tokens + -stored % length).sum()) if has_one_length else 0,
        documents_cut=int(cuts.sum()),
        fitting_documents_cut=int((cuts & (window.num_tokens <= length)).sum()),
        documents_reaching=int((window.num_tokens >= length).sum()),
        documents_truncated=int((truncated > 0).sum()),
        tokens_truncated=int(truncated.sum()),
        tokens_overlapped=int(tokens.sum() - last.sum()),
        document_spans=len(window.sequence),
        document_lengths=_binned(window.num_tokens),
        sequence_documents=_binned(np.bincount(window.sequence, minlength=len(window.used))),
    )


def _padded_lengths(window: Window, layout: BucketLayout) -> Int64s:
    """Return the length that each bucket is padded to: of an open bucket that of its longest."""
    config, num_groups = layout.config, 1 + len(layout.groups)
    if config.mode != "buckets":
        return np.array(stored_lengths(config) * num_groups, np.int64)
    lengths = np.array([*config.edges, 0] * num_groups, np.int64)
    for bucket in range(len(config.edges), len(lengths), len(config.edges) + 1):
        lengths[bucket] = window.used[window.buckets == bucket].max(initial=0)
    return lengths


def _binned(values: Int64s) -> dict[str, int]:
    return counted(bin_of(BINS, pl.Series(values)))


def bin_range(number: int) -> tuple[int, int]:
    """Return the least and the greatest whole number of a bin; bin 1, from 0.41 to 1, has none."""
    least, beyond = (math.ceil(2 ** (place / 2)) - 1 for place in (number, number + 1))
    return least, beyond - 1


def readable(counts: Mapping[str, int]) -> dict[str, int]:
    """Replace the numbers of a histogram's bins by ranges of whole numbers, `3-4`."""
    return {_bin_name(number): counts[str(number)] for number in sorted(map(int, counts))}


def _bin_name(number: int) -> str:
    least, greatest = bin_range(number)
    return f"{least:,}" if least == greatest else f"{least:,}-{greatest:,}"


def shares(numbers: BucketedNumbers, documents: int) -> dict[str, float]:
    """Return shares of padding among stored tokens and of cuts among documents, and mean documents.

    A batch of several buckets is padded further, to its longest sequence.
    """
    stored = sum(numbers.bucket_tokens.values()) + numbers.padding_tokens
    sequences = sum(numbers.bucket_sequences.values())
    return {
        "padding_share": numbers.padding_tokens / max(1, stored),
        "least_padding_share": numbers.least_padding / max(1, stored),
        "documents_cut_share": numbers.documents_cut / max(1, documents),
        "documents_per_sequence": numbers.document_spans / max(1, sequences),
    }


def held_out(numbers: BucketedNumbers) -> HeldOut | None:
    """Return what is held out of training; None without `holdout`."""
    documents = numbers.documents_held_out
    if isinstance(documents, UnsetType):
        return None
    tokens, sequences = (
        sum(count for name, count in of.items() if split_bucket(name)[1] == VALIDATION)
        for of in (numbers.bucket_tokens, numbers.bucket_sequences)
    )
    return HeldOut(documents, tokens, sequences)


def long_counts(numbers: BucketedNumbers) -> dict[str, int]:
    """Return the conversations longer than a sequence by what became of them; {} without any."""
    return numbers.long_conversations or {}


def report_markdown(numbers: BucketedNumbers, layout: BucketLayout) -> dict[str, str]:
    """Write Markdown by title: `buckets` (a table), `sequence_plots`, and `warnings` if any."""
    names = [name for name in layout.names if name in numbers.bucket_sequences]
    counts = numbers.bucket_sequences
    bars = tuple((n, numbers.bucket_tokens[n], f"{counts[n]:,} sequences") for n in names)
    plots = [
        as_markdown(Bars("tokens by bucket", bars), "buckets"),
        _histogram("documents by tokens", numbers.document_lengths),
        _histogram("sequences by documents in them", numbers.sequence_documents),
    ]
    markdown = {"buckets": bucket_table(numbers, names), "sequence_plots": "\n\n".join(plots)}
    if warnings := warnings_of(numbers, layout.config):
        markdown["warnings"] = "\n".join(f"* {warning}" for warning in warnings)
    return markdown


def bucket_table(numbers: BucketedNumbers, names: list[str]) -> str:
    """Write a Markdown table of the sequences, tokens and padding of each bucket."""
    head = ["| bucket | sequences | tokens | padding | share |", "|---|---:|---:|---:|---:|"]
    rows = []
    for name in names:
        tokens, padding = numbers.bucket_tokens[name], numbers.bucket_padding[name]
        share = padding / max(1, tokens + padding)
        sequences = numbers.bucket_sequences[name]
        rows.append(f"| {name} | {sequences:,} | {tokens:,} | {padding:,} | {share:.4%} |")
    return "\n".join([*head, *rows])


def warnings_of(numbers: BucketedNumbers, config: BucketConfig) -> list[str]:
    """Write a sentence if no document is as long as the longest sequence of the config."""
    if numbers.documents_reaching or not numbers.document_lengths:
        return []
    _, longest = bin_range(max(map(int, numbers.document_lengths)))
    if config.mode == "buckets":
        limit, change = f"{config.edges[-1] + 1} tokens (buckets.edges)", "lower edges"
    else:
        limit = f"{config.sequence_length} tokens (buckets.sequence_length)"
        change = "a shorter sequence_length"
    return [f"no document reaches {limit}: the longest has at most {longest:,}. Take {change}"]


def _histogram(title: str, counts: Mapping[str, int]) -> str:
    by_bin = {int(number): count for number, count in counts.items()}
    last = max(by_bin, default=0)
    bins = [(_bin_name(number), by_bin.get(number, 0)) for number in range(last + 1) if number != 1]
    return as_markdown(histogram(title, bins, "log scale"), title)
