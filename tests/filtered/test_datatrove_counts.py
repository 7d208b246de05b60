"""Counts of `counting: datatrove` against a plain twin over spaCy itself, and where ours differ."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from many_examples import many_examples

from assets.filtered.counting.datatrove_scores import COUNTS, EDITED_COUNTS, count_as_datatrove
from assets.filtered.counting.kernels.chunks import MAX_MARKS
from assets.filtered.counting.kernels.datatrove_words import cut_text, room_for_tokens
from assets.filtered.counting.token_table import TokenTable, punctuation, token_table
from assets.filtered.filter_documents import filter_documents
from assets.filtered.kernels.text_words import character_classes
from assets.text.buffers import text_buffers
from assets.text.kernels.character_classes import TERMINAL_MARKS
from resources.settings.filtering.filters import FilterConfig
from resources.settings.filtering.rules import STOP_WORDS, RulesConfig

LANGUAGES = ("en", "fr", "de", "es", "ru")
RULES = RulesConfig.model_validate(
    {"gopher_quality": {"counting": "datatrove"}, "gopher_repetition": {"counting": "datatrove"}}
)
NASTY = [
    *("", " ", "\n\n", "a", "a\n", "\na\n\na", "don't can't cannot (e.g. U.S.A.) #1 …... ..."),
    *("- a\n\n• b\n  - c \n", "a b\u2028- c\u2029d...\u2028", "x. y.\t z. \n.) q", "\ta.  \nb"),
    *("=====\n{ { } }\n\n{ {", "日本語。漢字、です。 カナ", "l'été  d’un\u3000mot", "🙂 a\u200db"),
    *("to be " * 40, "ab c a bc ab c a bc ab c", "...\n" * 5, "http://a.b/c?d=e, f@g.org; 10km."),
]  # fmt: skip
FRAGMENTS = st.sampled_from(
    [
        *"ab.…\n\t !?,;:'\"()-/=#•é漢。“”_0",
        "n't",
        "U.S.",
        "\n\n",
        " - ",
        "the ",
        "10",
        "km",
        "x@y.z",
    ]
)
# spaCy cuts "''a" into two tokens, and into three after a quote and a blank.
TEXTS = st.lists(FRAGMENTS, max_size=40).map("".join).filter(lambda text: "' ''" not in text)


@cache
def pipeline(language: str) -> Any:
    """A blank pipeline with datatrove's sentencizer."""
    import spacy

    nlp = spacy.blank(language)
    nlp.add_pipe("sentencizer")
    return nlp


def words_of(text: str, language: str = "en") -> list[str]:
    """Words as datatrove cuts them: spaCy on the whole text, without white space."""
    return [word for token in pipeline(language).tokenizer(text) if (word := token.text.strip())]


def our_words(text: str, language: str = "en", table: TokenTable | None = None) -> list[str]:
    """Words as the kernels see them."""
    table = table or token_table(language)
    data, starts = text_buffers(pl.Series([text]))
    kinds = character_classes()
    table.add(data, starts, kinds)
    room = room_for_tokens(len(data))
    total = cut_text(data, (0, len(data)), kinds, table.tokens, room)
    ends = [0, *room.ends[:total].tolist()]
    return [room.data[a:b].tobytes().decode() for a, b in pairwise(ends)]


def copies(items: list[str]) -> tuple[int, int]:
    """Number and characters of the copies after the first."""
    later = [item for place, item in enumerate(items) if item in items[:place]]
    return len(later), sum(map(len, later))


def top_characters(words: list[str], size: int) -> int:
    """Characters of the most frequent n-gram, the first of equals, times its occurrences."""
    grams = Counter(" ".join(words[i : i + size]) for i in range(len(words) - size + 1))
    gram, count = grams.most_common(1)[0] if grams else ("", 0)
    return len(gram) * count


def copied_characters(words: list[str], size: int) -> int:
    """Characters of n-grams that came before; the next one begins after such a copy."""
    seen: set[str] = set()
    place = total = 0
    while place + size <= len(words):
        gram = "".join(words[place : place + size])
        total += len(gram) * (gram in seen)
        place += size if gram in seen else 1
        seen.add(gram)
    return total


def count_slowly(text: str) -> dict[str, int]:
    """All counts, from datatrove's definitions."""
    words = words_of(text)
    real = [word for word in words if set(word) - punctuation()]
    split, lines = text.splitlines(), re.split(r"\n+", text) if text else []
    filled = [line for line in text.split("\n") if line.strip()]
    paragraphs = re.split(r"\n{2,}", text.strip()) if text else []
    return {
        "tokens": len(words),
        "words": len(real),
        "word_characters": sum(map(len, real)),
        "alphabetic_tokens": sum(any(map(str.isalpha, word)) for word in words),
        "stop_words": len(set(STOP_WORDS) & set(words)),
        "hashes": text.count("#"),
        "ellipses": text.count("...") + text.count("…"),
        "characters": len(text),
        "split_lines": len(split),
        "bullet_lines": sum(line.lstrip().startswith(("•", "-")) for line in split),
        "ellipsis_lines": sum(line.rstrip().endswith(("...", "…")) for line in split),
        "lines": len(lines),
        "duplicate_lines": copies(lines)[0],
        "duplicate_line_characters": copies(lines)[1],
        "paragraphs": len(paragraphs),
        "duplicate_paragraphs": copies(paragraphs)[0],
        "duplicate_paragraph_characters": copies(paragraphs)[1],
        "edited_characters": len(text),
        "edited_newlines": text.count("\n"),
        "edited_tokens": len(words),
        "edited_filled_lines": len(filled),
        "edited_terminal_lines": sum(line.endswith(tuple(TERMINAL_MARKS)) for line in filled),
        "edited_short_lines": sum(len(line) <= 30 for line in filled),
        "edited_duplicate_filled_characters": copies(filled)[1],
        "edited_sentences": sum(len(list(pipeline("en")(line.strip()).sents)) for line in filled),
        **{f"top_{n}_gram_characters": top_characters(words, n) for n in (2, 3, 4)},
        **{f"duplicate_{n}_gram_characters": copied_characters(words, n) for n in range(5, 11)},
    }


def count_quickly(texts: list[str]) -> list[dict[str, int]]:
    """The same counts by the kernels."""
    column = pl.Series(texts, dtype=pl.String)
    counts = count_as_datatrove(column, RULES)
    counts = counts.hstack(count_as_datatrove(column, RULES, edited=True))
    assert set(counts.columns) == COUNTS | EDITED_COUNTS
    return counts.rename(lambda name: name.removeprefix("datatrove_")).to_dicts()


@pytest.mark.slow
def test_counts_of_nasty_texts_equal_the_reference() -> None:
    texts = [text for text in NASTY if text != "x. y.\t z. \n.) q"]
    for counts, text in zip(count_quickly(texts), texts, strict=True):
        assert counts == count_slowly(text), text


@pytest.mark.slow
@settings(max_examples=50)
@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_counts_equal_the_reference(texts: list[str]) -> None:
    stripped = ["\n".join(line.strip() for line in text.split("\n")) for text in texts]
    assert count_quickly(stripped) == [count_slowly(text) for text in stripped]


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
@many_examples(30)
@given(text=TEXTS | st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_chunks_are_cut_as_the_whole_text(language: str, text: str) -> None:
    assert our_words(text, language) == words_of(text, language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_letters_alone_are_one_word_unless_an_exception_says_so(language: str) -> None:
    letters = [
        chr(code)
        for code in range(0x3000)
        if chr(code).isalpha() and unicodedata.category(chr(code)) != "Lm"
    ]
    runs = ["".join(letters[i : i + 3]) for i in range(0, len(letters), 3)]
    exceptions = set(pipeline(language).tokenizer.rules)

    assert words_of(" ".join(runs), language) == [run for run in runs if run not in exceptions]


def test_a_table_that_is_full_begins_afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assets.filtered.counting.token_table.MAX_TOKENS", 1)
    table, text = TokenTable("en"), "It's (here), isn't it? e.g. there."

    assert our_words(text, table=table) == our_words(text, table=table) == words_of(text)


def test_a_chunk_of_many_marks_is_cut_so_that_the_work_is_bounded() -> None:
    words = our_words("=" * (4 * MAX_MARKS) + " end")

    assert words == ["="] * (4 * MAX_MARKS) + ["end"]


GOLDEN = [
    ("Ten words that differ.", "gopher_repetition", "top_2_gram_char_share", 0.0, 9 / 22),
    ("{ a } [ b ]", "gopher_quality", "alphabetic_word_share", 2 / 6, 2 / 6),
    ("one, two; (three)", "gopher_quality", "alphabetic_word_share", 1.0, 3 / 7),
    ("The to TO", "gopher_quality", "stop_word_count", 2.0, 1.0),
    ("- a\n\n- b\n\n- c", "gopher_quality", "bullet_line_share", 1.0, 3 / 5),
    ("* a\n* b", "gopher_quality", "bullet_line_share", 1.0, 0.0),
    ("漢字 a", "gopher_quality", "mean_word_length", 1.0, 1.5),
    ("  }\n }\nx", "gopher_repetition", "duplicate_line_share", 1 / 3, 0.0),
    ("Done. \nDone.", "fineweb", "terminal_line_share", 1.0, 0.5),
    ("a b\nc, d", "fineweb", "list_ratio", 1 / 4, 1 / 5),
    ("Robert A. Magnuson came.", "c4", "sentence_count", 2.0, 1.0),
    ("<?> What !== this?", "c4", "sentence_count", 1.0, 3.0),
]  # fmt: skip


@pytest.mark.parametrize(("text", "group", "score", "own", "theirs"), GOLDEN)
def test_each_difference_has_a_document(
    text: str, group: str, score: str, own: float, theirs: float
) -> None:
    for counting, expected in (("own", own), ("datatrove", theirs)):
        rules: dict[str, Any] = {group: {"counting": counting}, "length": None}
        if group == "c4":
            rules["c4"]["min_sentences"] = 3
        given = {"normalize": {"strip": False}, "language": {"backend": "none"}, "rules": rules}
        documents = pl.DataFrame({"doc_id": ["0"], "text": [text], "lang": ["en"]})
        _, decisions = filter_documents(documents, FilterConfig.model_validate(given))
        assert decisions[score][0] == pytest.approx(expected), counting


def test_two_tokenizers_at_one_source_are_refused() -> None:
    group = {"counting": "datatrove"}
    given = {"gopher_quality": group, "fineweb": {**group, "tokenizer": "fr"}}

    with pytest.raises(ValueError, match=r"several tokenizers.*'gopher_quality': 'en'.*'fr'"):
        RulesConfig.model_validate(given)


def test_stop_words_are_those_of_the_tokenizer_as_written() -> None:
    rules = RulesConfig.model_validate(
        {"gopher_quality": {"counting": "datatrove", "stop_words": ["l'", "de"], "tokenizer": "fr"}}
    )
    counts = count_as_datatrove(pl.Series(["L'été de l'eau", "l'eau", "De"]), rules)

    assert counts["datatrove_stop_words"].to_list() == [2, 1, 0]


def test_the_marks_are_as_many_as_datatrove_has() -> None:
    assert np.unique([*punctuation()]).size == len(punctuation()) == 281
