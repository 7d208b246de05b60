"""Diffs restore both texts, find the common words, and end on hostile texts."""

from prelude import given, pairwise, pytest, st, time

from pipeline_defs.commands.look.word_diff import Segment, diff_texts, fold

MODULE = "pipeline_defs.commands.look.word_diff"
TEXTS = st.text(alphabet="ab c\n.漢字é\u0301\x00", max_size=60)


def marked(segments: list[Segment]) -> str:
    signs = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}
    return "".join(signs[change].format(text) for change, text in segments)


def check_complete(one: str, other: str, segments: list[Segment]) -> None:
    assert "".join(text for change, text in segments if change != "added") == one
    assert "".join(text for change, text in segments if change != "removed") == other
    assert all(text for _, text in segments)
    assert all(a[0] != b[0] for a, b in pairwise(segments))


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
    assert marked(diff_texts(one, other)) == expected


@given(TEXTS, TEXTS)
def test_the_pieces_give_back_both_texts(one: str, other: str) -> None:
    check_complete(one, other, diff_texts(one, other))


@given(one=TEXTS, other=TEXTS)
def test_texts_that_are_not_compared_give_back_both(one: str, other: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{MODULE}.MAX_TOKENS", 0)
        check_complete(one, other, diff_texts(one, other))


def test_edits_of_a_long_text_are_found() -> None:
    words = [f"w{i % 700}" for i in range(5_000)]
    edited = [f"new{i}" if i % 50 == 7 else word for i, word in enumerate(words)]

    segments = diff_texts(" ".join(words), " ".join(edited))

    assert sum(change == "added" for change, _ in segments) == 100
    assert sum(change == "removed" for change, _ in segments) == 100


def test_texts_with_too_many_other_words_are_not_compared() -> None:
    lines = "x\n" * 2_100_000
    one, other = f"a\n{lines}b", f"c\n{lines}d"
    assert diff_texts(one, other) == [("removed", one), ("added", other)]


def test_an_edit_in_a_text_of_50_mb_is_shown_by_words() -> None:
    half = "the same words again and again\n" * 800_000
    start = time.process_time()

    found = diff_texts(f"{half}the old line\n{half}", f"{half}the new line\n{half}")

    assert time.process_time() - start < 5
    assert [segment for segment in found if segment[0] != "same"] == [
        ("removed", "old"),
        ("added", "new"),
    ]


@pytest.mark.slow
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
    check_complete(one, other, diff_texts(one, other))
    assert time.process_time() - start < 5


def test_folding_leaves_the_words_next_to_a_change() -> None:
    same = " ".join(f"word{i}" for i in range(100))
    segments = diff_texts(f"{same} old {same}", f"{same} new {same}")

    folded = list(fold(segments, context=2, most=100))

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
def test_folding_loses_no_character_uncounted(segments: list[Segment], context: int) -> None:
    folded = list(fold(segments, context, most=5))

    shown = sum(len(text) for change, text in folded if change != "omitted")
    omitted = sum(
        int(text.split()[0].replace(",", "")) for change, text in folded if change == "omitted"
    )
    assert shown + omitted == sum(len(text) for _, text in segments)
