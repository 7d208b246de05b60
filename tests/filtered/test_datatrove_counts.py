"""Counts of `counting: datatrove` against a plain twin, and where ours differ."""

from prelude import Any, Counter, given, np, pairwise, pl, pytest, re, settings, st
from tables import cases

from assets.filtered.datatrove_scores import COUNTS, EDITED_COUNTS, count_as_datatrove
from assets.filtered.filter_documents import filter_documents
from assets.filtered.kernels.datatrove_words import (
    CONTROLS,
    MARKS,
    TokenCount,
    count_tokens,
    token_classes,
)
from assets.text.buffers import text_buffers
from assets.text.kernels.character_classes import TERMINAL_MARKS
from resources.settings.filtering.filters import FilterConfig
from resources.settings.filtering.rules import STOP_WORDS, RulesConfig

RULES = RulesConfig.model_validate(
    {"gopher_quality": {"counting": "datatrove"}, "gopher_repetition": {"counting": "datatrove"}}
)
MARKS_ALONE = {*MARKS, *CONTROLS, *TERMINAL_MARKS}
FRAGMENTS = st.sampled_from(
    [*"ab.…\n\t !?,;:'\"()-/=#•é漢。“”_0", "n't", "U.S.", "\n\n", " - ", "the ", "10", "x@y.z"]
)
TEXTS = st.lists(FRAGMENTS, max_size=40).map("".join)


def count_words(text: str, *, keeps_hyphens: bool = False) -> tuple[list[str], list[int]]:
    """Words as the kernel sees them, and its counts."""
    data, _ = text_buffers(pl.Series([text]))
    words = np.empty(len(data), np.uint64), np.empty(len(data), np.int64)
    counts = np.zeros(len(TokenCount), np.int64)
    tables = token_classes()[int(keeps_hyphens)], np.empty(0, np.uint64)
    total = count_tokens(data, (np.uint64(0), np.uint64(len(data))), tables, words, counts)
    letters, ends = "".join(text.split()), [0, *words[1][:total].tolist()]
    return [letters[a:b] for a, b in pairwise(ends)], counts.tolist()


def our_words(text: str) -> list[str]:
    return count_words(text)[0]


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
    words = our_words(text)
    real = [word for word in words if set(word) - MARKS_ALONE]
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
        **{f"top_{n}_gram_characters": top_characters(words, n) for n in (2, 3, 4)},
        **{f"duplicate_{n}_gram_characters": copied_characters(words, n) for n in range(5, 11)},
    }


def count_quickly(texts: list[str]) -> list[dict[str, int]]:
    """The same counts by the kernels."""
    column = pl.Series(texts, dtype=pl.String)
    langs = pl.Series([None] * len(texts), dtype=pl.String)
    counts = count_as_datatrove(column, langs, RULES)
    counts = counts.hstack(count_as_datatrove(column, langs, RULES, edited=True))
    assert set(counts.columns) == COUNTS | EDITED_COUNTS
    counts = counts.drop("datatrove_edited_sentences")
    return counts.rename(lambda name: name.removeprefix("datatrove_")).to_dicts()


@pytest.mark.slow
@settings(max_examples=50)
@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_counts_equal_the_reference(texts: list[str]) -> None:
    assert count_quickly(texts) == [count_slowly(text) for text in texts]


@given(TEXTS | st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_words_are_all_of_the_text_but_white_space(text: str) -> None:
    assert "".join(our_words(text)) == "".join(text.split())
    assert all(our_words(text))


@cases("""
    text | words
    '"Hello, (world)!"' | '" Hello , ( world ) ! "'
    isn't it's l’eau O'Brien's | isn 't it 's l ’eau O 'Brien 's
    well-known covid-19 1990-95 a--b -x | well - known covid-19 1990 - 95 a -- b -x
    3.5 1,000 a,b x/y and/or 1/2 | 3.5 1,000 a , b x / y and / or 1/2
    Wait... so …… end.Next a.b | Wait ... so … … end . Next a.b
    the U.S. e.g. A. NASA. etc. | the U.S. e.g. A. NASA . etc .
    +1 +x 50% 5$ $5 x=1 y==z | +1 + x 50 % 5 $ $ 5 x=1 y==z
    foo(bar) [1] #tag a_b me@x.org | foo(bar ) [ 1 ] # tag a_b me@x.org
    漢字、です。 ☃a☃ | 漢字、です 。 ☃ a ☃
    .5 . .. ?! | .5 . .. ? !
""")
def test_words_are_cut_by_a_plain_rule(text: str, words: str) -> None:
    assert our_words(text) == words.split()


def test_words_with_hyphens_are_one_in_german() -> None:
    found = count_words("E-Mail-Adresse – ja", keeps_hyphens=True)[0]
    assert found == ["E-Mail-Adresse", "–", "ja"]
    assert len(MARKS_ALONE) == 281  # as many as datatrove has


@cases(r"""
    text                     | sentences
    ""                       | 0
    One. Two! Three          | 3
    "One.\nTwo.\n\nThree."   | 3
    # punctuation after an end belongs to the sentence
    He said “Go.” Then left. | 2
    Robert A. Magnuson       | 1
""")
def test_sentences_begin_after_end_marks(text: str, sentences: int) -> None:
    assert count_words(text)[1][TokenCount.SENTENCES] == sentences


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


def test_stop_words_count_as_written() -> None:
    given = {"gopher_quality": {"counting": "datatrove", "stop_words": ["der", "E-Mail"]}}
    texts, langs = pl.Series(["der Der der", "E-Mail", "E-Mail"]), pl.Series([None, "de-AT", "en"])
    counts = count_as_datatrove(texts, langs, RulesConfig.model_validate(given))

    assert counts["datatrove_stop_words"].to_list() == [1, 1, 0]
