"""Fit of the tokenizer to documents, compared with its fit to the sample that trained it.

Text that the tokenizer serves badly takes more tokens, so that training sees less of it per
sequence. Text like that of the sample (the same source, the same language in it) is compared with
it. Languages and kinds of text differ by nature (Chinese takes 3 bytes a token where English takes
4.5, in tokenizers that have learned both), so the limit is wider for text that was not in the
sample. It is wider for little text, too: documents differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from assets.tokenized.kept_tokenizer import RETRAIN_COMMAND
from assets.tokenized.tokenized_records import LanguageCounts, TextFit

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
