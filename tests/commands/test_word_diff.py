"""The diff gives back both texts, finds what is common, and ends on hostile texts."""

import time
from difflib import SequenceMatcher
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline_defs.commands.look.word_diff import Piece, common_words, diff_texts, fold

MODULE = "pipeline_defs.commands.look.word_diff"
TEXTS = st.text(alphabet="ab c\n.漢字é\u0301\x00", max_size=60)
WORDS = st.lists(st.sampled_from("abcdefgh"), max_size=30)


def marked(pieces: list[Piece]) -> str:
    signs = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}
    return "".join(signs[kind].format(text) for kind, text in pieces)


def check_complete(one: str, other: str, pieces: list[Piece]) -> None:
    assert "".join(text for kind, text in pieces if kind != "added") == one
    assert "".join(text for kind, text in pieces if kind != "removed") == other
    assert all(text for _, text in pieces)
    assert all(a[0] != b[0] for a, b in pairwise(pieces))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("", "", ""),
        ("", "a b", "{+a b+}"),
        ("a b", "", "[-a b-]"),
        ("a b c", "a b c", "a b c"),
        ("the old man", "the new man", "the [-old-]{+new+} man"),
        ("one two", "one big two", "one {+big +}two"),
        ("one two", "one two three", "one two{+ three+}"),
        ("a, b", "a; b", "a[-,-]{+;+} b"),
        ("a  b", "a b", "a [- -]b"),
        ("a b", "a\n\nb", "a[- -]{+\n\n+}b"),
        ("Word here", "word here", "[-Word-]{+word+} here"),
        ("abc", "abcd", "[-abc-]{+abcd+}"),
        ("一二三四", "一二五四", "一二[-三-]{+五+}四"),
        ("a b c d", "x b y d", "[-a-]{+x+} b [-c-]{+y+} d"),
    ],
)
def test_words_that_differ_are_marked(one: str, other: str, expected: str) -> None:
    assert marked(diff_texts(one, other).pieces) == expected


@given(TEXTS, TEXTS)
def test_the_pieces_give_back_both_texts(one: str, other: str) -> None:
    check_complete(one, other, diff_texts(one, other).pieces)


@settings(deadline=None)
@pytest.mark.parametrize("limits", [(0, 10), (0, 0), (1000, 10)], ids=["lines", "text", "words"])
@given(one=TEXTS, other=TEXTS)
def test_every_unit_gives_back_both_texts(limits: tuple[int, int], one: str, other: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{MODULE}.MAX_WORD_CHARS", limits[0])
        patch.setattr(f"{MODULE}.MAX_LINES", limits[1])
        patch.setattr(f"{MODULE}.MAX_EDITS", 3)
        check_complete(one, other, diff_texts(one, other).pieces)


@given(WORDS, WORDS)
def test_common_words_are_equal_and_ascending(one: list[str], other: list[str]) -> None:
    pairs = common_words(one, other)
    assert all(one[a] == other[b] for a, b in pairs)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(pairs))


def longest_common(one: str, other: str) -> int:
    """Length of the longest common subsequence, by its definition."""
    if not (one and other):
        return 0
    if one[0] == other[0]:
        return 1 + longest_common(one[1:], other[1:])
    return max(longest_common(one[1:], other), longest_common(one, other[1:]))


@settings(deadline=None)
@given(st.text("abc", max_size=8), st.text("abc", max_size=8))
def test_without_fixed_points_as_much_as_possible_is_common(one: str, other: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{MODULE}.MAX_DEPTH", 0)
        assert len(common_words(one, other)) == longest_common(one, other)


def test_words_that_occur_once_are_fixed_points() -> None:
    # A longest common subsequence would be the three a.
    assert common_words("xaaa", "aaax") == [(0, 3)]


def test_edits_of_a_long_text_are_found() -> None:
    words = [f"w{i % 700}" for i in range(20_000)]
    edited = [f"new{i}" if i % 50 == 7 else word for i, word in enumerate(words)]

    pieces = diff_texts(" ".join(words), " ".join(edited)).pieces

    assert sum(kind == "added" for kind, _ in pieces) == 400
    matcher = SequenceMatcher(None, words[:2000], edited[:2000], autojunk=False)
    found = sum(size for _, _, size in matcher.get_matching_blocks())
    assert len(common_words(words[:2000], edited[:2000])) == found


def test_long_texts_are_compared_by_lines_and_longer_ones_not_at_all() -> None:
    one = "".join(f"this is line {i}\n" for i in range(150_000))
    other = one.replace("line 7\n", "LINE 7\n").replace("line 149990\n", "LINE 149990\n")

    by_lines = diff_texts(one, other)

    assert by_lines.unit == "lines"
    added = [text for kind, text in by_lines.pieces if kind == "added"]
    assert added == ["LINE 7", "this is LINE"]
    lines = "x\n" * 2_100_000
    assert diff_texts(f"a\n{lines}b", f"c\n{lines}d").unit == "text"


def test_an_edit_in_a_text_of_50_mb_is_shown_by_words() -> None:
    half = "the same words again and again\n" * 800_000
    start = time.process_time()

    found = diff_texts(f"{half}the old line\n{half}", f"{half}the new line\n{half}")

    assert time.process_time() - start < 5
    assert found.unit == "words"
    assert [piece for piece in found.pieces if piece[0] != "same"] == [
        ("removed", "old"),
        ("added", "new"),
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a b " * 100_000, "b a a " * 70_000),
        ("x" * 1_000_000, "x" * 999_999),
        (" ".join(map(str, range(50_000))), " ".join(map(str, reversed(range(50_000))))),
        (
            " ".join(f"x{i + 1} x{i}" for i in range(50_000)),
            " ".join(f"x{i} x{i + 1}" for i in reversed(range(50_000))),
        ),
        ("\n" * 1_000_000, " " * 1_000_000),
    ],
    ids=["two words", "one word", "reversed", "nested", "blanks"],
)
def test_hostile_texts_end_soon(one: str, other: str) -> None:
    start = time.process_time()
    check_complete(one, other, diff_texts(one, other).pieces)
    assert time.process_time() - start < 5


def test_folding_leaves_the_words_next_to_a_change() -> None:
    same = " ".join(f"word{i}" for i in range(100))
    pieces = diff_texts(f"{same} old {same}", f"{same} new {same}").pieces

    folded = list(fold(pieces, context=2, most=100))

    assert folded == [
        ("omitted", f"{len(same) - 13:,} characters"),
        ("same", "word98 word99 "),
        ("removed", "old"),
        ("added", "new"),
        ("same", " word0 word1"),
        ("omitted", f"{len(same) - 11:,} characters"),
    ]


def test_folding_cuts_long_changes_and_equal_texts() -> None:
    assert list(fold([("removed", "x" * 1000)], context=2, most=10)) == [
        ("removed", "x" * 10),
        ("omitted", "990 characters"),
    ]
    assert list(fold([("same", "y" * 1000)], context=2, most=10)) == [
        ("omitted", "1,000 characters")
    ]
    assert list(fold([("same", "short")], context=0, most=10)) == [("same", "short")]


@given(st.lists(st.tuples(st.sampled_from(["same", "removed", "added"]), TEXTS)), st.integers(0, 3))
def test_folding_loses_no_character_uncounted(pieces: list[Piece], context: int) -> None:
    folded = list(fold(pieces, context, most=5))

    shown = sum(len(text) for kind, text in folded if kind != "omitted")
    omitted = sum(
        int(text.split()[0].replace(",", "")) for kind, text in folded if kind == "omitted"
    )
    assert shown + omitted == sum(len(text) for _, text in pieces)
