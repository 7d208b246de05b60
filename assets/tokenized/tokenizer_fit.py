"""Fit of the tokenizer to documents, compared with its fit to the sample that trained it.

Text that the tokenizer serves badly takes more tokens, so that training sees less of it per
sequence. Text like that of the sample (the same source, the same language in it) is compared with
it. Languages and kinds of text differ by nature (Chinese takes 3 bytes a token where English takes
4.5, in tokenizers that have learned both), so the limit is wider for text that was not in the
sample. It is wider for little text, too: documents differ.
Fertility is text per token: bytes and characters of a language over its tokens, without the ids
that mark the begin and end of a document. Vocabulary use counts every id that was stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.tokenized.kept_tokenizer import RETRAIN_COMMAND
from assets.tokenized.token_spellings import BYTE_TOKEN, UNKNOWN_TOKEN, count_kinds
from assets.tokenized.tokenized_records import LanguageCounts, TextFit, TokenizedNumbers
from resources.charts import Bars, Panels, as_markdown, histogram, with_limits

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
    bars = (
        (name, in_bytes, f"{in_bytes:.2f} bytes, {in_chars:.2f} chars")
        for name, (in_bytes, in_chars, _) in list(languages.items())[:SHOWN_LANGUAGES]
    )
    plot = as_markdown(Bars("bytes per token by language", tuple(bars)), "fertility")
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


def vocabulary_histogram(counts: NDArray[np.uint64]) -> Panels:
    """Return a histogram of ids by occurrences: never, then in powers of two."""
    powers = np.ceil(np.log2(counts.astype(np.float64) + 1)).astype(int)
    bins = np.bincount(powers, minlength=2)
    labels = ["never", *(f"{1 << power:,}" for power in range(bins.size - 1))]
    place = float(np.log2(RARE) + 1)
    marks = [(place, f"{RARE} times")] if place < bins.size else []
    columns = [(name, int(number)) for name, number in zip(labels, bins, strict=True)]
    axis = "ids by number of occurrences (log scale)"
    return with_limits(histogram("use of the vocabulary", columns, axis), marks)


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


ENOUGH_TOKENS = 5_000  # of a source; fewer are not compared
ENOUGH_SHARE = 0.01  # of a source's tokens, for a language in it
KNOWN_TOKENS = 1_000  # of the sample
NOISE = 10.0  # over the root of the tokens: 5,000 of another project's C++ differ by up to 20 %
LIKE_THE_SAMPLE = 0.15  # fewer bytes per token than the sample, of text that was in it
OTHER_TEXT = 0.30  # of text that was not
MORE_BYTE_TOKENS = 0.10  # of all tokens; languages of one document each move it by 0.05
MORE_UNKNOWN_TOKENS = 0.01
SHOWN_FAULTS = 5


@dataclass(frozen=True)
class Expected:
    """Fit that text is compared with, its name, and the share of bytes per token to fall short."""

    name: str
    fit: TextFit
    tolerance: float


def sum_fits(fits: Iterable[TextFit], source: str = "", language: str = "") -> TextFit:
    """Add up counts."""
    each = list(fits)
    return TextFit(
        source=source,
        language=language,
        text_bytes=sum(fit.text_bytes for fit in each),
        tokens=sum(fit.tokens for fit in each),
        unknown_tokens=sum(fit.unknown_tokens for fit in each),
        byte_tokens=sum(fit.byte_tokens for fit in each),
    )


def sum_by_language(fits: Iterable[TextFit]) -> list[TextFit]:
    """Add up counts of the same source and language; in the order of their first."""
    grouped: dict[tuple[str, str], list[TextFit]] = {}
    for each in fits:
        grouped.setdefault((each.source, each.language), []).append(each)
    return [sum_fits(group, *key) for key, group in grouped.items()]


def text_fits(by_source: Mapping[str, LanguageCounts]) -> list[TextFit]:
    """Return the fit of each language of each source that has tokens."""
    return [
        TextFit(
            source=source,
            language=language,
            text_bytes=counts.text_bytes_by_language[language],
            tokens=tokens,
            unknown_tokens=counts.unknown_tokens_by_language.get(language, 0),
            byte_tokens=counts.byte_tokens_by_language.get(language, 0),
        )
        for source, counts in by_source.items()
        for language, tokens in counts.text_tokens_by_language.items()
        if tokens
    ]


def warn_of_fit(
    served: Sequence[TextFit], sample: Sequence[TextFit], others: Sequence[TextFit]
) -> list[str]:
    """Write a sentence if a source, or a language in it, is served badly; all of one source.

    `sample` is the fit at training; without one, `others` are compared with: all other sources.
    """
    if not served:
        return []
    source, mean, everything = served[0].source, sum_fits(sample or others), sum_fits(served)
    faults = [fault(everything, expected_of(source, "", sample, mean))]
    for each in sorted(served, key=lambda each: (-each.tokens, each.language)):
        if each.tokens >= ENOUGH_SHARE * everything.tokens:
            found = fault(sum_fits([each]), expected_of(source, each.language, sample, mean))
            faults.append(found and f"{each.language!r:.40}: {found}")
    found_faults = [found for found in faults if found]
    if (more := len(found_faults) - SHOWN_FAULTS) > 0:
        found_faults[SHOWN_FAULTS:] = [f"and {more:,} more languages"]
    if not found_faults:
        return []
    line = f"the tokenizer serves source {source!r} badly: {'; '.join(found_faults)}"
    remedy = f". `{RETRAIN_COMMAND}` trains the next one on today's documents" if sample else ""
    return [line + remedy]


def expected_of(
    source: str, language: str, sample: Sequence[TextFit], mean: TextFit
) -> Expected | None:
    """Return what to compare a source, or a language in it, with; None without enough text.

    The same in the sample if that had enough of it; else the language in all of the sample; else
    the mean.
    """
    same = sum_fits(
        each for each in sample if each.source == source and language in ("", each.language)
    )
    if same.tokens >= KNOWN_TOKENS:
        return Expected("in the sample that trained it", same, LIKE_THE_SAMPLE)
    known = sum_fits(each for each in sample if each.language == language)
    if known.tokens >= KNOWN_TOKENS:
        return Expected("in other sources of its sample", known, OTHER_TEXT)
    name = "on average in its sample" if sample else "on average in the other sources"
    return Expected(name, mean, OTHER_TEXT) if mean.tokens >= KNOWN_TOKENS else None


def fault(fit: TextFit, expected: Expected | None) -> str:
    """Write how a fit falls short of what is expected; nothing if it does not."""
    if expected is None or fit.tokens < ENOUGH_TOKENS:
        return ""
    then, found = expected.fit, []
    noise = NOISE / min(fit.tokens, then.tokens) ** 0.5
    fewer = 1 - fit.bytes_per_token / then.bytes_per_token
    if fewer > expected.tolerance + noise:
        found.append(
            f"{fit.bytes_per_token:.2f} bytes per token, {fewer:.0%} fewer than "
            f"{then.bytes_per_token:.2f}"
        )
    for tokens, before, more, name in (
        (fit.byte_tokens, then.byte_tokens, MORE_BYTE_TOKENS, "single bytes of characters"),
        (fit.unknown_tokens, then.unknown_tokens, MORE_UNKNOWN_TOKENS, "unknown"),
    ):
        share, share_then = fit.share(tokens), then.share(before)
        if share > share_then + more + noise * share_then:
            found.append(f"{share:.1%} of the tokens are {name}, not {share_then:.1%}")
    return f"{', '.join(found)} {expected.name}" if found else ""
