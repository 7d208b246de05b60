"""Every rule at its threshold and just beyond it, and every score against a plain Python twin."""

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from assets.transforms.kernels.text_scores import (
    BULLETS,
    TERMINAL_MARKS,
    Count,
    count_text,
)
from assets.transforms.rules import SCORES, Rule, RulesConfig, rules_for, score_documents

EVERY_RULE: dict[str, object] = {
    "length": {"max_chars": 1_000_000},
    "gopher_quality": {},
    "gopher_repetition": {},
    "c4": {"javascript": True, "policy": True},
    "fineweb": {},
    "code": {},
    "language": {"allowed": ["en"]},
}
# rule, field, threshold, kept text, its score, rejected text, its score
CASES = [
    ("length.too_short", "min_chars", 2, "éa", 2, "é", 1),
    ("length.too_long", "max_chars", 2, "éa", 2, "éaa", 3),
    ("gopher_quality.too_few_words", "min_words", 3, "a b\nc", 3, "a\u3000b", 2),
    ("gopher_quality.too_many_words", "max_words", 2, "a b ", 2, " a b c", 3),
    ("gopher_quality.words_too_short", "min_mean_word_length", 2.0, "aa éé", 2.0, "a éé", 1.5),
    ("gopher_quality.words_too_long", "max_mean_word_length", 2.0, "a bbb", 2.0, "aa bbb", 2.5),
    (
        "gopher_quality.too_many_hashes",
        "max_hash_ratio",
        0.1,
        "a " * 9 + "#b",
        0.1,
        "a " * 9 + "##b",
        0.2,
    ),
    (
        "gopher_quality.too_many_ellipses",
        "max_ellipsis_ratio",
        0.1,
        "a " * 9 + "b...",
        0.1,
        "a… " + "a " * 8 + "b...",
        0.2,
    ),
    (
        "gopher_quality.too_many_bullet_lines",
        "max_bullet_lines",
        0.5,
        "  * a\nb\n",
        0.5,
        "- a\n• b\nc\n● d",
        0.75,
    ),
    (
        "gopher_quality.too_many_ellipsis_lines",
        "max_ellipsis_lines",
        0.5,
        "a...  \n\nb",
        0.5,
        "a…\nb ...\nc",
        2 / 3,
    ),
    (
        "gopher_quality.too_few_alphabetic_words",
        "min_alphabetic_words",
        0.8,
        "a é 漢 4d 5",
        0.8,
        "a é 漢 4 5",
        0.6,
    ),
    (
        "gopher_quality.too_few_stop_words",
        "min_stop_words",
        2,
        "The end, of",
        2,
        "the the bathe",
        1,
    ),
    (
        "gopher_repetition.duplicate_lines",
        "max_duplicate_lines",
        0.3,
        "a\n" * 4 + "b\nc\nd\ne\nf\ng",
        0.3,
        "a\na",
        0.5,
    ),
    (
        "gopher_repetition.duplicate_paragraphs",
        "max_duplicate_paragraphs",
        0.5,
        "a\nb\n\na\nb",
        0.5,
        "a\n\na\n \na",
        2 / 3,
    ),
    (
        "gopher_repetition.duplicate_line_text",
        "max_duplicate_line_chars",
        0.2,
        "ab\ncdef\nab",
        0.2,
        "ab\ncde\nab",
        2 / 9,
    ),
    (
        "gopher_repetition.duplicate_paragraph_text",
        "max_duplicate_paragraph_chars",
        0.2,
        "ab\n\ncé\n\nab",
        0.2,
        "a\nb\n\na\nb",
        2 / 8,
    ),
    ("c4.lorem_ipsum", "lorem_ipsum", True, "lorem and ipsum", 0, "Lorem Ipsum", 1),
    ("c4.curly_bracket", "curly_bracket", True, "a }", 0, "a {{", 2),
    ("c4.javascript", "javascript", True, "java script", 0, "Enable JavaScript!", 1),
    ("c4.policy", "policy", True, "a policy", 0, "Privacy Policy, and Terms of Use", 2),
    (
        "fineweb.too_few_finished_lines",
        "min_terminal_punctuation_lines",
        0.5,
        "a.\nb",
        0.5,
        "“a。”\nb\nc",
        1 / 3,
    ),
    (
        "fineweb.too_many_short_lines",
        "max_short_lines",
        0.5,
        f"{'é' * 31}\n {'é' * 30} ",
        0.5,
        "a\n\nb",
        1.0,
    ),
    ("fineweb.list_like", "max_list_ratio", 0.5, "a b\n", 0.5, "a b\n\n", 1.0),
    ("code.line_too_long", "max_line_length", 3, "a\n é \n", 3, "a\n  é ", 4),
    ("code.mean_line_too_long", "max_mean_line_length", 2.0, "abcd\n\n", 2.0, "abcd\né", 2.5),
    ("code.too_few_alphanumerics", "min_alphanumeric", 0.5, "é4()", 0.5, "é (", 1 / 3),
]
NASTY = [
    *("", " ", "\n", "\n\n \n", "a", "a\n", "word", "🙂🙂", "🙂 🙂\n👩\u200d🔬"),
    *("שלום עולם\nשלום עולם",),
    *("日本語。\n日本語。\n\n\u3000日本語。\u3000", "a\x00b\x00", "\u0301\u0308", "..."),
    *("…\n..", "\u2028a", "𝒜𝟘 \U0010ffff"),
    *("x" * 1_000_000, "a\n\na\n\n\nb\na", "é" * 31),
]  # fmt: skip


def documents(*texts: str, lang: str | None = "en", score: float | None = 0.9) -> pl.DataFrame:
    schema = {"text": pl.String, "lang": pl.String, "lang_score": pl.Float32}
    return pl.DataFrame([(text, lang, score) for text in texts], schema=schema, orient="row")


def only_rule(group: str, field: str, threshold: object) -> Rule:
    fields = dict(getattr(RulesConfig.model_validate(EVERY_RULE), group))
    off = {name: False if isinstance(value, bool) else None for name, value in fields.items()}
    groups = {"length": None, group: {**off, field: threshold}}
    (rule,) = rules_for(RulesConfig.model_validate(groups))
    return rule


@pytest.mark.parametrize(
    ("name", "field", "threshold", "kept", "kept_score", "bad", "bad_score"), CASES
)
def test_rule_breaks_just_beyond_its_threshold(
    name: str,
    field: str,
    threshold: object,
    kept: str,
    kept_score: float,
    bad: str,
    bad_score: float,
) -> None:
    rule = only_rule(name.split(".")[0], field, threshold)

    scores = score_documents(documents(kept, bad), [rule])

    assert rule.name == name
    assert scores.columns == [rule.score]
    assert scores[rule.score].to_list() == pytest.approx([kept_score, bad_score])
    assert scores.select(rule.broken).to_series().to_list() == [False, True]


def test_every_rule_has_a_case() -> None:
    names = {rule.name for rule in rules_for(RulesConfig.model_validate(EVERY_RULE))}
    assert names - {case[0] for case in CASES} == {"language.uncertain", "language.not_allowed"}


@pytest.mark.parametrize(
    ("lang", "score", "broken"),
    [
        ("en", 0.65, [False, False]),
        ("en", 0.64, [True, False]),
        ("de", 1.0, [False, True]),
        (None, 0.0, [True, True]),
        ("en", None, [False, False]),
    ],
)
def test_language_rules(lang: str | None, score: float | None, broken: list[bool]) -> None:
    rules = rules_for(RulesConfig.model_validate({"length": None, "language": {"allowed": ["en"]}}))

    scores = score_documents(documents("text", lang=lang, score=score), rules)

    assert [rule.name for rule in rules] == ["language.uncertain", "language.not_allowed"]
    assert [scores.select(rule.broken).item() for rule in rules] == broken


def test_default_rules_drop_empty_texts_only() -> None:
    assert rules_for(RulesConfig()) == [Rule("length.too_short", "char_count", 1, "below")]


def test_none_switches_every_group_off() -> None:
    assert rules_for(RulesConfig(length=None)) == []
    assert score_documents(documents("a"), []).columns == []


def test_rules_come_in_the_order_of_groups_and_names_are_unique() -> None:
    rules = rules_for(RulesConfig.model_validate(EVERY_RULE))

    groups = list(dict.fromkeys(rule.name.split(".")[0] for rule in rules))
    assert groups == list(RulesConfig.model_fields)
    assert len({rule.name for rule in rules}) == len(rules) == 28


def test_another_threshold_is_replayed_over_the_scores() -> None:
    (rule,) = rules_for(RulesConfig())
    scores = score_documents(documents("a", "abc"), [rule])

    stricter = replace(rule, threshold=2)

    assert scores.select(stricter.broken).to_series().to_list() == [True, False]


def test_scores_of_nasty_texts_are_numbers() -> None:
    rules = rules_for(RulesConfig.model_validate(EVERY_RULE))
    scores = score_documents(documents(*NASTY), rules).drop("lang")

    assert scores.select(pl.all().is_null() | pl.all().is_nan()).sum_horizontal().sum() == 0
    assert set(scores.dtypes) == {pl.Int64, pl.Float32}
    assert set(scores.drop("lang_score").row(0)) == {0}


def test_empty_frame_has_every_score() -> None:
    rules = rules_for(RulesConfig.model_validate(EVERY_RULE))
    scores = score_documents(documents(), rules)
    assert scores.height == 0
    assert set(scores.columns) == set(SCORES)


@pytest.mark.parametrize(
    "group",
    [{"min_words": -1}, {"max_bullet_lines": 1.1}, {"min_wrods": 5}, {"min_words": 1.5}],
)
def test_bad_thresholds_are_refused(group: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match="gopher_quality"):
        RulesConfig.model_validate({"gopher_quality": group})


def test_counts_of_nasty_texts_equal_the_reference() -> None:
    assert count_text(pl.Series(NASTY)).rows() == [count_slowly(text) for text in NASTY]


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.text(st.sampled_from("ab.…\n\n \t\u3000\u00a0-*•é4漢😀!”"))
        | st.text(st.characters(exclude_categories=["Cs"])),
        max_size=6,
    )
)
def test_counts_equal_the_reference(texts: list[str]) -> None:
    assert count_text(pl.Series(texts, dtype=pl.String)).rows() == [count_slowly(t) for t in texts]


def test_counts_of_a_slice_are_those_of_its_rows() -> None:
    texts = pl.concat([pl.Series(["x y", "a"]), pl.Series(["b\nb", "c d e"])], rechunk=False)
    assert count_text(texts.slice(1, 2)).rows() == [count_slowly("a"), count_slowly("b\nb")]


def count_slowly(text: str) -> tuple[int, ...]:
    """Count as the kernel does, one obvious line a count, in the order of `Count`."""
    words = text.split()
    raw_lines = text.removesuffix("\n").split("\n") if text else []
    stripped = [line.strip() for line in raw_lines]
    lines = [line for line in stripped if line]
    blocks = "\n".join(stripped).strip("\n").replace("\n\n\n", "\n\n").split("\n\n")
    paragraphs = [block.strip("\n") for block in blocks if block.strip("\n")]
    counts = {
        Count.CHARACTERS: len(text),
        Count.WORD_CHARACTERS: sum(len(word) for word in words),
        Count.ALPHANUMERIC_CHARACTERS: sum(character.isalnum() for character in text),
        Count.WORDS: len(words),
        Count.ALPHABETIC_WORDS: sum(any(map(str.isalpha, word)) for word in words),
        Count.RAW_LINES: len(raw_lines),
        Count.LONGEST_RAW_LINE: max(map(len, raw_lines), default=0),
        Count.LINES: len(lines),
        Count.BULLET_LINES: sum(line[0] in BULLETS for line in lines),
        Count.ELLIPSIS_LINES: sum(line.endswith(("...", "…")) for line in lines),
        Count.TERMINAL_LINES: sum(line[-1] in TERMINAL_MARKS for line in lines),
        Count.SHORT_LINES: sum(len(line) <= 30 for line in lines),
        Count.DUPLICATE_LINES: len(later_copies(lines)),
        Count.DUPLICATE_LINE_CHARACTERS: sum(map(len, later_copies(lines))),
        Count.PARAGRAPHS: len(paragraphs),
        Count.DUPLICATE_PARAGRAPHS: len(later_copies(paragraphs)),
        Count.DUPLICATE_PARAGRAPH_CHARACTERS: sum(
            len(copy.replace("\n", "")) for copy in later_copies(paragraphs)
        ),
    }
    return tuple(counts[count] for count in Count)


def later_copies(items: list[str]) -> list[str]:
    return [item for row, item in enumerate(items) if item in items[:row]]
