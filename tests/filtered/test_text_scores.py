"""Every count against a plain Python twin, golden n-grams, and work that grows as the text."""

from functools import partial

from prelude import Callable, Counter, given, np, pairwise, pl, pytest, settings, st

from assets.filtered.kernels import sign_masks
from assets.filtered.kernels.ngrams import DUPLICATE_SIZES, NGRAM_COUNTS, TOP_SIZES
from assets.filtered.kernels.text_scores import BLOCK_BYTES, count_text, count_work
from assets.filtered.kernels.text_words import Count
from assets.text.kernels.character_classes import BULLETS, SINGLES, TERMINAL_MARKS

NAMES = [count.name.lower() for count in Count]
NASTY = [
    *("", " ", "\n", "\n\n \n", "a", "a\n", "word", "🙂🙂", "🙂 🙂\n👩\u200d🔬"),
    *("שלום עולם\nשלום עולם", "עולם " * 12 + "a\u200f", "#a##\n…....... .. ….\n. . ."),
    *("日本語。\n日本語。\n\n\u3000日本語。\u3000", "a\x00b\x00", "\u0301\u0308", "..."),
    *("…\n..", "\u2028a", "𝒜𝟘 \U0010ffff", "日本語 abc漢d", "ｱｲ 漢\U0003ffff〇々 ไทย ²Ⅷ①Ⓐ"),
    *("x" * 1_000_000, "a\n\na\n\n\nb\na", "é" * 31, "\U00020000" * 5_000),
    *(" " * 999 + "漢é" * 900, "é " * 1000, "a" * 1001, "a" * 62 + " a", "a" * 63 + " b"),
]  # fmt: skip
PASSAGE = "one two three four five six seven eight nine ten eleven twelve"  # 51 letters
THRICE = f"{PASSAGE} red {PASSAGE} green blue {PASSAGE}"  # 165 letters in words


def test_character_classes_are_those_of_str() -> None:
    tests: dict[int, Callable[[str], bool]] = {
        sign_masks.SPACE: str.isspace,
        sign_masks.LETTER: str.isalpha,
        sign_masks.ALPHANUMERIC: str.isalnum,
        sign_masks.DIGIT: str.isdigit,
        sign_masks.UPPER: str.isupper,
        sign_masks.TERMINAL: set(TERMINAL_MARKS).__contains__,
        sign_masks.BULLET: set(BULLETS).__contains__,
        sign_masks.SINGLE: lambda c: any(first <= ord(c) <= last for first, last in SINGLES),
    }
    classes = sign_masks.character_classes()
    for bit, test in tests.items():
        expected = [code for code in range(0x110000) if test(chr(code))]
        assert np.flatnonzero(classes & bit).tolist() == expected


@pytest.mark.slow
def test_counts_of_nasty_texts_equal_the_reference_together_and_alone() -> None:
    expected = [count_slowly(text) for text in NASTY]
    assert count_text(pl.Series(NASTY)).rows(named=True) == expected
    assert [count_text(pl.Series([text])).row(0, named=True) for text in NASTY] == expected


@pytest.mark.slow
@settings(max_examples=100)
@given(
    st.lists(
        st.text(st.sampled_from("ab.…\n\n \t\u3000\u00a0-*•é4漢😀!”#AⒶ²ﾊ"))
        | st.text(st.characters(exclude_categories=["Cs"])),
        max_size=6,
    )
)
def test_counts_equal_the_reference(texts: list[str]) -> None:
    counts = count_text(pl.Series(texts, dtype=pl.String))
    assert counts.rows(named=True) == [count_slowly(text) for text in texts]


REPETITIVE = st.text(st.sampled_from("aé漢 \n "), min_size=5, max_size=300)
PASSAGES = st.sampled_from(["a", "bb", "ccc", PASSAGE, "日本", "wordswithmanyletters", "\n"])


@settings(max_examples=200)
@given(st.lists(REPETITIVE | st.lists(PASSAGES).map(" ".join), max_size=3))
def test_counts_of_repetitive_texts_equal_the_reference(texts: list[str]) -> None:
    counts = count_text(pl.Series(texts, dtype=pl.String))
    assert counts.rows(named=True) == [count_slowly(text) for text in texts]


@pytest.mark.slow
def test_counts_of_a_text_beyond_one_block_and_one_table_equal_the_reference() -> None:
    text = " ".join(str(number * number % 30_011) for number in range(100_000))
    texts = [text, "a", "b" * BLOCK_BYTES, ""]
    assert count_text(pl.Series(texts)).rows(named=True) == [count_slowly(text) for text in texts]


def test_counts_of_a_slice_are_those_of_its_rows() -> None:
    texts = pl.concat([pl.Series(["x y", "a"]), pl.Series(["b\nb", "c d e"])], rechunk=False)
    counts = count_text(texts.slice(1, 2))
    assert counts.rows(named=True) == [count_slowly("a"), count_slowly("b\nb")]


def test_no_texts_have_no_counts_and_ngrams_can_be_left_out() -> None:
    counts = count_text(pl.Series([], dtype=pl.String))
    assert counts.height == 0
    assert set(counts.dtypes) == {pl.Int64}
    assert counts.columns == [*NAMES, *NGRAM_COUNTS]
    texts = pl.Series(["a a a", "b"])
    assert count_text(texts, ngrams=False).equals(count_text(texts).select(NAMES))


def test_each_han_or_kana_character_is_a_word() -> None:
    counts = count_text(pl.Series(["日本語 abc漢d", "カナﾅｰ", "ไทย ລາວ"]))
    assert counts["words"].to_list() == [6, 4, 2]
    assert counts["word_characters"].to_list() == [8, 4, 6]


def test_copies_have_two_readings() -> None:
    counts = count_text(pl.Series(["ab\ncd\nab\n\nx\n\nx\n\nab"])).row(0, named=True)

    assert (counts["duplicate_lines"], counts["duplicate_line_characters"]) == (3, 5)
    assert (counts["repeated_lines"], counts["repeated_line_characters"]) == (5, 8)
    assert (counts["duplicate_paragraphs"], counts["duplicate_paragraph_characters"]) == (1, 1)
    assert (counts["repeated_paragraphs"], counts["repeated_paragraph_characters"]) == (2, 2)


def test_ngrams_of_small_texts() -> None:
    assert ngram_counts("a b c d e f g h i j") == [0] * len(NGRAM_COUNTS)
    tops = [3 * len("eleventwelve"), 3 * len("teneleventwelve"), 3 * len("nineteneleventwelve")]
    assert ngram_counts(THRICE) == [*tops, *[3 * 51] * len(DUPLICATE_SIZES)]
    # The most frequent is the top one, and the longest of equals.
    assert ngram_counts("a b x a b y a b z longer words longer words")[0] == 6
    assert ngram_counts("a b x longer words y a b z longer words")[0] == 22
    # Overlapping copies push no share above one.
    assert ngram_counts("ab " * 12) == [24] * len(NGRAM_COUNTS)


@pytest.mark.parametrize("text", [THRICE, "a " * 50, "日本" * 20])
def test_texts_repeat_nothing_of_each_other(text: str) -> None:
    once = count_text(pl.Series([text])).rows()
    assert count_text(pl.Series([text] * 3)).rows() == once * 3


def periodic(period: int, size: int) -> str:
    return (" ".join(map(str, range(period))) + " ") * (size // period)


WORST: dict[str, Callable[[int], str]] = {
    "one word": lambda size: "a " * size,
    "distinct words": lambda size: " ".join(map(str, range(size))),
    "one character": lambda size: "x" * size,
    "line ends": lambda size: "\n" * size,
    "one line": lambda size: "a b c d e f g\n" * (size // 7),
    "distinct lines": lambda size: "\n\n".join(map(str, range(size))),
    "han": lambda size: "漢" * size,
    **{f"period {period}": partial(periodic, period) for period in range(2, 13)},
}


@pytest.mark.parametrize("make", WORST.values(), ids=WORST.keys())
def test_four_times_the_text_is_four_times_the_work(make: Callable[[int], str]) -> None:
    sizes = (50_000, 200_000, 800_000)
    work = [count_work(pl.Series([make(size)])) for size in sizes]

    # Tables grow by leaps: half as much again is rounding, and the last bound is for good.
    assert all(later <= 1.75 * 4 * earlier for earlier, later in pairwise(work))
    assert work[-1] <= 20 * sizes[-1]


def ngram_counts(text: str) -> list[int]:
    return list(count_text(pl.Series([text])).select(NGRAM_COUNTS).row(0))


def count_slowly(text: str) -> dict[str, int]:
    """Count as the kernels do, one obvious line a count."""
    words = split_slowly(text)
    raw_lines = text.removesuffix("\n").split("\n") if text else []
    stripped = [line.strip() for line in raw_lines]
    lines = [line for line in stripped if line]
    return {
        "characters": len(text),
        "word_characters": sum(len(word) for word in words),
        "alphanumeric_characters": sum(map(str.isalnum, text)),
        "alphabetic_characters": sum(map(str.isalpha, text)),
        "digit_characters": sum(map(str.isdigit, text)),
        "uppercase_characters": sum(map(str.isupper, text)),
        "words": len(words),
        "alphabetic_words": sum(any(map(str.isalpha, word)) for word in words),
        "newlines": text.count("\n"),
        "hashes": text.count("#"),
        "ellipses": text.count("...") + text.count("…"),
        "raw_lines": len(raw_lines),
        "longest_raw_line": max(map(len, raw_lines), default=0),
        "lines": len(lines),
        "bullet_lines": sum(line[0] in BULLETS for line in lines),
        "ellipsis_lines": sum(line.endswith(("...", "…")) for line in lines),
        "terminal_lines": sum(line[-1] in TERMINAL_MARKS for line in lines),
        "short_lines": sum(len(line) <= 30 for line in lines),
        **copies_slowly("line", lines),
        **paragraphs_slowly(stripped),
        **{f"top_{size}_gram_characters": top_slowly(words, size) for size in TOP_SIZES},
        **{
            f"duplicate_{size}_gram_characters": covered_slowly(words, size)
            for size in DUPLICATE_SIZES
        },
    }


def split_slowly(text: str) -> list[str]:
    spaced = "".join(f" {character} " if is_single(character) else character for character in text)
    return spaced.split()


def is_single(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in SINGLES)


def paragraphs_slowly(stripped: list[str]) -> dict[str, int]:
    blocks = "\n".join(stripped).strip("\n").replace("\n\n\n", "\n\n").split("\n\n")
    paragraphs = [block.strip("\n") for block in blocks if block.strip("\n")]
    return {"paragraphs": len(paragraphs), **copies_slowly("paragraph", paragraphs)}


def copies_slowly(kind: str, items: list[str]) -> dict[str, int]:
    later, times = later_copies(items), Counter(items)
    repeated = [item for item in items if times[item] > 1]
    return {
        f"duplicate_{kind}s": len(later),
        f"duplicate_{kind}_characters": sum(len(copy.replace("\n", "")) for copy in later),
        f"repeated_{kind}s": len(repeated),
        f"repeated_{kind}_characters": sum(len(copy.replace("\n", "")) for copy in repeated),
    }


def later_copies(items: list[str]) -> list[str]:
    return [item for row, item in enumerate(items) if item in items[:row]]


def top_slowly(words: list[str], size: int) -> int:
    times = Counter(tuple(words[i : i + size]) for i in range(len(words) - size + 1))
    top, length = max(
        ((count, sum(map(len, ngram))) for ngram, count in times.items()), default=(0, 0)
    )
    return min(top * length, sum(map(len, words))) if top > 1 else 0


def covered_slowly(words: list[str], size: int) -> int:
    starts = range(len(words) - size + 1)
    times = Counter(tuple(words[i : i + size]) for i in starts)
    repeated = [i for i in starts if times[tuple(words[i : i + size])] > 1]
    return sum(len(words[i]) for i in {i + k for i in repeated for k in range(size)})
