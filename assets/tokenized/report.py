"""Fit of the tokenizer to a source: counts that add up over parts, and plots of them.

Fertility is text per token: bytes and characters of a language over its tokens, without the ids
that mark the begin and end of a document. Vocabulary use counts every id that was stored.
"""

from collections.abc import Mapping
from html import escape

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.report.plots import as_markdown, bar_chart, histogram
from assets.tokenized.token_spellings import BYTE_TOKEN, UNKNOWN_TOKEN, count_kinds
from assets.tokenized.tokenized_records import LanguageCounts, TokenizedNumbers

RARE = 10  # an id used less often has hardly been learned
SHOWN_LANGUAGES = 15
SHOWN_FAILURES = 5
UNKNOWN = "unknown"


def language_counts(
    documents: pl.DataFrame, encoded: pl.DataFrame, marks: int | pl.Series, kinds: NDArray[np.uint8]
) -> LanguageCounts:
    """Count characters, and by language bytes, characters and tokens without marks.

    In: documents with doc_id, text, lang; encoded with doc_id, tokens, `marks` of them
    not of the text (Int64, if documents differ); the kind of each id. A document without tokens
    counts with its text.
    """
    of_kind = count_kinds(encoded["tokens"], kinds)
    lengths = encoded.select(
        "doc_id",
        tokens=pl.col("tokens").list.len().cast(pl.Int64) - marks,
        unknown=pl.Series(of_kind[UNKNOWN_TOKEN]),
        byte=pl.Series(of_kind[BYTE_TOKEN]),
    )
    by_language = (
        documents.join(lengths, on="doc_id", how="left")
        .group_by(lang=pl.col("lang").fill_null(UNKNOWN))
        .agg(
            text_bytes=pl.col("text").str.len_bytes().cast(pl.Int64).sum(),
            text_chars=pl.col("text").str.len_chars().cast(pl.Int64).sum(),
            text_tokens=pl.col("tokens").sum(),
            unknown=pl.col("unknown").sum(),
            byte=pl.col("byte").sum(),
        )
        .sort("lang")
    )
    names = by_language["lang"].to_list()
    in_bytes, in_chars, in_tokens = (
        dict(zip(names, by_language[column].to_list(), strict=True))
        for column in ("text_bytes", "text_chars", "text_tokens")
    )
    unknown, byte = (
        {name: count for name, count in zip(names, by_language[column], strict=True) if count}
        for column in ("unknown", "byte")
    )
    return LanguageCounts(sum(in_chars.values()), in_bytes, in_chars, in_tokens, unknown, byte)


def fertility(counts: LanguageCounts) -> dict[str, tuple[float, float, int]]:
    """Return (bytes per token, characters per token, tokens) by language, most tokens first."""
    by_language = {
        name: (
            counts.text_bytes_by_language[name] / tokens,
            counts.text_chars_by_language[name] / tokens,
            tokens,
        )
        for name, tokens in counts.text_tokens_by_language.items()
        if tokens
    }
    return dict(sorted(by_language.items(), key=lambda item: (-item[1][2], item[0])))


def totals(counts: LanguageCounts) -> tuple[float, float, int]:
    """Return (bytes per token, characters per token, tokens) of all languages; 0 without any."""
    in_bytes = sum(counts.text_bytes_by_language.values())
    in_chars = sum(counts.text_chars_by_language.values())
    tokens = sum(counts.text_tokens_by_language.values())
    return in_bytes / max(1, tokens), in_chars / max(1, tokens), tokens


def vocabulary_numbers(counts: NDArray[np.uint64]) -> dict[str, float]:
    """Share of the vocabulary's ids that occur, and number of those that occur never or rarely."""
    used = int(np.count_nonzero(counts))
    return {
        "vocabulary_used_share": used / max(1, counts.size),
        "vocabulary_unused": counts.size - used,
        "vocabulary_used_rarely": int(np.count_nonzero((counts > 0) & (counts < RARE))),
    }


def report_markdown(counts: LanguageCounts, used: NDArray[np.uint64]) -> dict[str, str]:
    """Write Markdown by title: `fertility` of a source's languages, and `vocabulary` use."""
    languages = fertility(counts)
    bars = [
        (name, (in_bytes, in_chars), f"{in_bytes:.2f} bytes, {in_chars:.2f} chars")
        for name, (in_bytes, in_chars, _) in list(languages.items())[:SHOWN_LANGUAGES]
    ]
    plot = as_markdown(bar_chart("text per token by language", bars), "fertility")
    return {
        "fertility": f"{plot}\n\n{fertility_table('language', languages)}",
        "vocabulary": as_markdown(vocabulary_histogram(used), "vocabulary"),
    }


def fertility_by_source(by_source: Mapping[str, LanguageCounts]) -> str:
    """Write a Markdown table of sources, from the counts of each."""
    return fertility_table("source", {name: totals(counts) for name, counts in by_source.items()})


def fertility_table(name_header: str, rows: Mapping[str, tuple[float, float, int]]) -> str:
    """Write a Markdown table of (bytes per token, characters per token, tokens) by name."""
    lines = [
        f"| {escape(name)} | {in_bytes:.3f} | {in_chars:.3f} | {tokens:,} |"
        for name, (in_bytes, in_chars, tokens) in rows.items()
    ]
    head = [
        f"| {name_header} | bytes per token | characters per token | tokens |",
        "|---|---:|---:|---:|",
    ]
    return "\n".join([*head, *lines])


def vocabulary_histogram(counts: NDArray[np.uint64]) -> str:
    """Draw a histogram of ids by occurrences: never, then in powers of two."""
    powers = np.ceil(np.log2(counts.astype(np.float64) + 1)).astype(int)
    bins = np.bincount(powers, minlength=2)
    labels = ["never", *(f"{1 << power:,}" for power in range(bins.size - 1))]
    place = float(np.log2(RARE) + 1)
    marks = [(place, f"{RARE} times")] if place < bins.size else []
    return histogram(
        "ids by how often they occur",
        [(name, int(number)) for name, number in zip(labels, bins, strict=True)],
        marks,
    )


def round_trip_markdown(numbers: TokenizedNumbers) -> str:
    """Describe the result of the round-trip check, with the first documents that failed."""
    checked, failures = numbers.round_trip_documents, numbers.round_trip_failures
    if not failures:
        return f"All of {checked:,} documents compared decode to their text."
    first = [escape(doc_id) for doc_id in list(numbers.round_trip_failed)[:SHOWN_FAILURES]]
    return (
        f"{failures:,} of {checked:,} documents compared do not decode to their text, the first: "
        + ", ".join(first)
    )
