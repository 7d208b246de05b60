"""Fit of the tokenizer to a source: counts that add up over parts, and plots of them.

Fertility is text per token: bytes and characters of a language over its tokens, without the ids
that mark the begin and end of a document. Vocabulary use counts every id that was stored.
"""

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.report.plots import as_markdown, bar_chart, histogram

RARE = 10  # an id used less often has hardly been learned
SHOWN_LANGUAGES = 15
SHOWN_FAILURES = 5
UNKNOWN = "unknown"


def text_numbers(documents: pl.DataFrame, encoded: pl.DataFrame, num_marks: int) -> dict[str, Any]:
    """Count characters, and by language bytes, characters and tokens without marks.

    In: documents with doc_id, text, lang; encoded with doc_id, tokens, `num_marks` of them marks. A
    document without tokens counts with its text.
    """
    lengths = encoded.select(
        "doc_id", tokens=pl.col("tokens").list.len().cast(pl.Int64) - num_marks
    )
    by_language = (
        documents.join(lengths, on="doc_id", how="left")
        .group_by(lang=pl.col("lang").fill_null(UNKNOWN))
        .agg(
            text_bytes=pl.col("text").str.len_bytes().cast(pl.Int64).sum(),
            text_chars=pl.col("text").str.len_chars().cast(pl.Int64).sum(),
            text_tokens=pl.col("tokens").sum(),
        )
        .sort("lang")
    )
    names = by_language["lang"].to_list()
    columns = by_language.select(pl.exclude("lang")).to_dict(as_series=False)
    counts = {
        f"{name}_by_language": dict(zip(names, values, strict=True))
        for name, values in columns.items()
    }
    return {"text_chars": sum(columns["text_chars"]), **counts}


def fertility(counts: Mapping[str, Any]) -> dict[str, tuple[float, float, int]]:
    """Return (bytes per token, characters per token, tokens) by language, most tokens first."""
    tokens: Mapping[str, int] = counts.get("text_tokens_by_language", {})
    by_language = {
        name: (
            counts["text_bytes_by_language"][name] / number,
            counts["text_chars_by_language"][name] / number,
            number,
        )
        for name, number in tokens.items()
        if number
    }
    return dict(sorted(by_language.items(), key=lambda item: (-item[1][2], item[0])))


def totals(counts: Mapping[str, Any]) -> tuple[float, float, int]:
    """Return (bytes per token, characters per token, tokens) of all languages; 0 without any."""
    sums = [
        sum(counts.get(f"text_{name}_by_language", {}).values())
        for name in ("bytes", "chars", "tokens")
    ]
    return sums[0] / max(1, sums[2]), sums[1] / max(1, sums[2]), sums[2]


def vocabulary_numbers(counts: NDArray[np.uint64]) -> dict[str, float]:
    """Share of the vocabulary's ids that occur, and number of those that occur never or rarely."""
    used = int(np.count_nonzero(counts))
    return {
        "vocabulary_used_share": used / max(1, counts.size),
        "vocabulary_unused": counts.size - used,
        "vocabulary_used_rarely": int(np.count_nonzero((counts > 0) & (counts < RARE))),
    }


def report_markdown(counts: Mapping[str, Any], used: NDArray[np.uint64]) -> dict[str, str]:
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


def fertility_by_source(by_source: Mapping[str, Mapping[str, Any]]) -> str:
    """Write a Markdown table of sources, from the counts of `text_numbers` of each."""
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


def round_trip_markdown(counts: Mapping[str, Any]) -> str:
    """Describe the result of the round-trip check, with the first documents that failed."""
    checked, failures = (counts.get(f"round_trip_{name}", 0) for name in ("documents", "failures"))
    if not failures:
        return f"All of {checked:,} documents compared decode to their text."
    return (
        f"{failures:,} of {checked:,} documents compared do not decode to their text, the first: "
        + ", ".join(escape(doc_id) for doc_id in list(counts["round_trip_failed"])[:SHOWN_FAILURES])
    )
