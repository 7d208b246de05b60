"""Scores as datatrove 0.10 counts them, and the pass over the text that provides their counts."""

from __future__ import annotations

import numpy as np
import polars as pl

from assets.text.buffers import text_buffers
from assets.text.table_rows import table_of
from resources.settings.filtering.rules import GopherQualityRules, RulesConfig


def _per(count: str, total: str) -> pl.Expr:
    """Divide; nothing of nothing is 0."""
    return pl.col(f"datatrove_{count}") / pl.col(f"datatrove_{total}").clip(lower_bound=1)


def _count(name: str) -> pl.Expr:
    return pl.col(f"datatrove_{name}")


# "edited_" counts the text that the line corrections leave.
SCORES: dict[str, pl.Expr] = {
    "word_count": _count("words"),
    "mean_word_length": _per("word_characters", "words"),
    "hash_ratio": _per("hashes", "tokens"),
    "ellipsis_ratio": _per("ellipses", "tokens"),
    "bullet_line_share": _per("bullet_lines", "split_lines"),
    "ellipsis_line_share": _per("ellipsis_lines", "split_lines"),
    "alphabetic_word_share": _per("alphabetic_tokens", "tokens"),
    "stop_word_count": _count("stop_words"),
    "duplicate_line_share": _per("duplicate_lines", "lines"),
    "duplicate_paragraph_share": _per("duplicate_paragraphs", "paragraphs"),
    "duplicate_line_char_share": _per("duplicate_line_characters", "characters"),
    "duplicate_paragraph_char_share": _per("duplicate_paragraph_characters", "characters"),
    **{
        f"{name}_gram_char_share": _per(f"{name}_gram_characters", "characters")
        for name in (*(f"top_{n}" for n in (2, 3, 4)), *(f"duplicate_{n}" for n in range(5, 11)))
    },
    "sentence_count": _count("edited_sentences"),
    "terminal_line_share": _per("edited_terminal_lines", "edited_filled_lines"),
    "short_line_share": _per("edited_short_lines", "edited_filled_lines"),
    "duplicate_char_share": _count("edited_duplicate_filled_characters")
    / (_count("edited_characters") - _count("edited_newlines")).clip(lower_bound=1),
    "list_ratio": _per("edited_newlines", "edited_tokens"),
}
_ROOTS = {root for score in SCORES.values() for root in score.meta.root_names()}
EDITED_COUNTS = {root for root in _ROOTS if root.startswith("datatrove_edited_")}
COUNTS = _ROOTS - EDITED_COUNTS


def count_as_datatrove(
    texts: pl.Series, langs: pl.Series, rules: RulesConfig, *, edited: bool = False
) -> pl.DataFrame:
    """Return the Int64 columns of COUNTS, or with `edited` EDITED_COUNTS; one row per text.

    `langs`: the languages of the texts, null where unknown.
    """
    from assets.filtered.kernels.datatrove_texts import LineKind, Tables, count_texts
    from assets.filtered.kernels.datatrove_words import HYPHENATED, TokenCount, token_classes
    from assets.filtered.kernels.ngrams import NGRAM_COUNTS
    from assets.filtered.kernels.sign_masks import character_classes
    from assets.filtered.kernels.text_scores import blocks

    names = [count.name.lower() for count in (*TokenCount, *LineKind)]
    names += ["ellipses", *NGRAM_COUNTS]
    counts = np.zeros((len(texts), len(names)), np.int64)
    data, starts = text_buffers(texts.rechunk())
    repetition = rules.gopher_repetition
    has_ngrams = not edited and repetition is not None and repetition.counting == "datatrove"
    stop_words = _stop_words((rules.gopher_quality or GopherQualityRules()).stop_words)
    tables = Tables(character_classes(), token_classes(), stop_words, has_ngrams)
    code = langs.str.to_lowercase().str.extract(r"^([^-_]+)")
    keeps_hyphens = code.is_in(HYPHENATED).fill_null(False).cast(pl.Int64).to_numpy()
    for rows in blocks(np.diff(starts)):
        own_starts = starts[rows.start : rows.stop + 1]
        count_texts(data, own_starts, keeps_hyphens[rows], tables, counts[rows])
    prefix = "datatrove_edited_" if edited else "datatrove_"
    frame = table_of(counts, [prefix + name for name in names])
    return frame.select(sorted(EDITED_COUNTS if edited else COUNTS))


def _stop_words(words: tuple[str, ...]) -> np.ndarray:
    """Return the hashes of the different words, uint64, sorted."""
    from assets.text.kernels.hashing import hash_bytes

    encoded = [np.frombuffer(word.encode(), np.uint8) for word in dict.fromkeys(words)]
    hashes = [hash_bytes(word, np.uint64(0), np.uint64(len(word))) for word in encoded]
    return np.sort(np.array(hashes, np.uint64))
