"""Kernels over UTF-8 bytes are held to obvious Python."""

import random
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from many_examples import many_examples
from numba import njit
from prelude import given, np, pairwise, pl, pytest, re, settings, st

from assets.text.buffers import _UNSPACED, code_point_entries, text_buffers
from assets.text.kernels.character_classes import (
    LETTERS_END,
    NUM_CODES,
    TERMINAL_MARKS,
    add_marks,
    classes_by,
)
from assets.text.kernels.hashing import absorb, finish, hash_bytes, join
from assets.text.kernels.many_bytes import (
    compress_64,
    copy_runs,
    count_ones,
    find_byte,
    find_bytes,
    first_one,
    held,
    mark_bytes,
    read_4,
    read_8,
    read_some,
    reverse_bytes,
    run_on,
    size_of,
)
from assets.text.kernels.utf8 import count_continuations, decode, last_start
from assets.text.kernels.words import (
    BLANK,
    LOWER,
    PADDING,
    SINGLE,
    SPACE,
    WORD,
    entry_and_width,
    entry_of,
    fold_whitespace,
    join_words,
    plain_words,
)

MASK = (1 << 64) - 1
NASTY_BYTES = st.lists(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0x81, 0xFE, 0xFF]), min_size=1)
NASTY_TEXT = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs", "Cn"]),  # Polars knows newer letters than Python
        st.sampled_from(
            " \t\n\r\x1c\x85\u00a0\u2003\u3000'-_.aZ9éİςΣßｱ漢々ไทยကខ\u0301\u200b"
            "\U0001f600\U0001afff\U0001b000\U00020000\U0003ffff\U00040000\U0010ffff"
        ),
    )
)
PLAIN_TEXT = st.text(st.sampled_from("aaBz_1'-. \t\n\x1cé"), max_size=150)
LAST = "The end of the buffer, where words are read byte by byte.\n" * 3
RANDOM = random.Random(7)
compiled = settings(max_examples=200)  # the first call may compile


def uint64s(*numbers: int) -> tuple[np.uint64, ...]:
    return tuple(np.uint64(number) for number in numbers)


def bits(spans: Iterable[tuple[int, int]]) -> int:
    """Set the bits of some spans of places."""
    return sum((1 << stop) - (1 << start) for start, stop in spans)


@njit
def marks_of(data: Any, first: int, number: int) -> tuple[int, int, int, int]:
    """Call the intrinsics: the marks of the first 64 bytes, and what they hold."""
    marks = mark_bytes(data, np.uint64(0), np.uint64(first), np.uint64(number))
    return marks, count_ones(marks), first_one(marks), size_of(marks)


@pytest.mark.parametrize("word", [0, 1, 0x0123456789ABCDEF, (1 << 64) - 2])
def test_bytes_are_reversed(word: int) -> None:
    assert reverse_bytes(np.uint64(word)) == int.from_bytes(word.to_bytes(8, "little"), "big")


@njit
def packed_by_runs(data: Any, target: Any, marks: tuple[int, int, int]) -> None:
    copy_runs(data, np.uint64(1), target, np.uint64(2), marks)


@njit
def packed_at_once(data: Any, target: Any, marks: tuple[int, int, int]) -> None:
    compress_64(data, np.uint64(1), target, np.uint64(2), marks)


MASKS = st.one_of(st.integers(0, (1 << 63) - 1), st.sampled_from([0, 1, (1 << 63) - 1, 0b1100111]))


@pytest.mark.slow
@pytest.mark.parametrize("pack", [packed_by_runs, packed_at_once])
@many_examples(200)
@given(st.lists(st.sampled_from([*b"aAzZ@[ \x00\xff"]), min_size=128, max_size=128), MASKS, MASKS)
def test_bytes_are_packed(pack: Any, values: list[int], blanks: int, kept: int) -> None:
    target = np.zeros(128, np.uint8)

    pack(np.array(values, np.uint8), target, uint64s(blanks, 32, kept))

    small = bytes(32 if blanks >> i & 1 else ord(chr(value).lower()) if value < 128 else value
                  for i, value in enumerate(values[1:65]))  # fmt: skip
    expected = bytes(byte for i, byte in enumerate(small) if kept >> i & 1)
    assert bytes(target[2 : 2 + len(expected)]) == expected
    assert not target[:2].any()


@compiled
@given(st.lists(st.integers(0, 255), min_size=64, max_size=64), st.integers(0, 255), st.data())
def test_marks_of_64_bytes(values: list[int], first: int, data: st.DataObject) -> None:
    number = data.draw(st.integers(1, 256 - first if first else 255))
    places = [i for i, value in enumerate(values) if first <= value < first + number]

    marks, ones, lowest, size = marks_of(np.array(values, np.uint8), first, number)

    assert marks == sum(1 << place for place in places)
    assert ones == len(places)
    assert lowest == (places[0] if places else 64)
    assert size == (places[-1] + 1 if places else 0)


@compiled
@given(st.text(st.sampled_from("ab "), max_size=63), st.data())
def test_runs_of_ones_that_hold_a_sign(text: str, data: st.DataObject) -> None:
    words = bits(match.span() for match in re.finditer("[ab]+", text))
    runs = [match.span() for match in re.finditer("b+", text)]
    chosen = [run for run in runs if data.draw(st.booleans())]
    ends = [match.end() for match in re.finditer("a*b[ab]*", text)]

    assert held(*uint64s(words, bits(runs))) == sum(1 << end for end in ends)
    assert run_on(*uint64s(bits(runs), sum(1 << first for first, _ in chosen))) == bits(chosen)


@compiled
@given(st.text(st.sampled_from("aaaaab\x1c é漢\n\t"), min_size=1, max_size=150))
def test_plain_words_at_the_start_of_a_text(text: str) -> None:
    encoded = text.encode()
    data = np.frombuffer(encoded + b"x" * 128, np.uint8)
    plain = re.match(rb"[^\x80-\xff]*", encoded[:63])
    assert plain is not None
    whole = plain[0] if plain[0] == encoded else plain[0][: len(plain[0].rstrip(b"ab"))]

    words, size = plain_words(data, uint64s(0, len(encoded)))

    assert size == len(whole)
    assert words == sum(1 << i for i, byte in enumerate(whole) if not chr(byte).isspace())


@njit
def read_both(data: Any, at: int) -> tuple[int, int]:
    """Call the intrinsics, which only compiled code can."""
    return read_4(data, at), read_8(data, np.uint64(at))


def u64(*values: int) -> Iterator[np.uint64]:
    return map(np.uint64, values)


def as_array(data: bytes) -> Any:
    return np.frombuffer(data, np.uint8)


def slow_absorb(key: int, value: int) -> int:
    key = (key ^ value) * 0x9E3779B97F4A7C15 & MASK
    return key ^ key >> 32


def slow_finish(key: int) -> int:
    key = (key ^ key >> 32) * 0xD6E8FEB86659FD93 & MASK
    return key ^ key >> 29


def slow_hash(data: bytes) -> int:
    key, end = len(data) * 0xD6E8FEB86659FD93 & MASK, len(data)
    for start in range(0, end - 8, 8) if end > 8 else ():
        key = slow_absorb(key, int.from_bytes(data[start : start + 8], "little"))
    key ^= int.from_bytes(data[-8:], "little")
    return slow_finish(key * 0x9E3779B97F4A7C15 & MASK)


def test_hashes_are_those_of_plain_integers() -> None:
    keys = [0, 1, MASK, 1 << 63, *(RANDOM.getrandbits(64) for _ in range(50))]

    for key, value in zip(keys, reversed(keys), strict=True):
        assert absorb(*u64(key, value)) == slow_absorb(key, value)
        assert finish(*u64(key)) == slow_finish(key)
        both = (key * 0x9E3779B97F4A7C15 + value) & MASK
        assert join(*u64(key, value)) == slow_finish(both)


@pytest.mark.parametrize("size", [*range(1, 34), 64, 65])
def test_bytes_are_hashed_wherever_they_are(size: int) -> None:
    data = RANDOM.randbytes(size)
    array = as_array(b"x" * 5 + data + b"y" * 9)

    assert hash_bytes(array, *u64(5, 5 + size)) == slow_hash(data)
    assert hash_bytes(as_array(data), *u64(0, size)) == slow_hash(data)


def test_words_of_bytes_are_little_endian_up_to_the_end() -> None:
    data = RANDOM.randbytes(20)
    array = as_array(data)

    for at in range(13):
        four, eight = read_both(array, at)
        assert four == int.from_bytes(data[at : at + 4], "little")
        assert eight == int.from_bytes(data[at : at + 8], "little")
    for at in range(20):
        for size in range(1, min(8, 20 - at) + 1):
            expected = int.from_bytes(data[at : at + size], "little")
            assert read_some(array, np.uint64(at), np.uint64(size)) == expected


@compiled
@given(NASTY_BYTES, st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]), st.data())
def test_a_byte_is_found_where_python_finds_it(
    values: list[int], byte: int, drawn: st.DataObject
) -> None:
    data = bytes(values)
    start = drawn.draw(st.integers(0, len(data)))
    stop = drawn.draw(st.integers(start, len(data)))

    at = find_byte(as_array(data), tuple(u64(start, stop)), byte)

    expected = data.find(byte, start, stop)
    assert at == (stop if expected < 0 else expected)


@compiled
@given(st.lists(st.sampled_from([0, 1, 2, 0x80, 0x81, 0xFF]), min_size=8, max_size=8))
def test_the_lowest_bit_marks_the_first_equal_byte(values: list[int]) -> None:
    word = int.from_bytes(bytes(values), "little")

    for byte in (0, 1, 0x80, 0xFF):
        marks = find_bytes(*u64(word, byte * 0x0101010101010101))
        first = values.index(byte) if byte in values else None
        assert (marks == 0) == (first is None)
        if first is not None:
            assert marks & -marks == 0x80 << 8 * first


@compiled
@given(NASTY_TEXT)
def test_characters_are_decoded_from_both_ends(text: str) -> None:
    data, at = as_array(text.encode()), 0

    for character in text:
        assert decode(data, np.uint64(at)) == (ord(character), len(character.encode()))
        stop = at + len(character.encode())
        assert last_start(data, np.uint64(stop)) == at
        at = stop


@compiled
@given(NASTY_TEXT, st.integers(0, 9), st.integers(0, 9))
def test_later_bytes_of_characters_are_counted(text: str, skipped: int, cut: int) -> None:
    data = text.encode()
    start, stop = min(skipped, len(data)), max(len(data) - cut, 0)

    count = count_continuations(as_array(data), *u64(start, stop))

    assert count == sum(byte & 0xC0 == 0x80 for byte in data[start:stop])


def is_letter(character: str) -> bool:
    """Tell a word's characters: letters, digits, marks and the underscore."""
    is_mark = unicodedata.category(character)[0] == "M"
    return character.isalnum() or character == "_" or is_mark


def class_of(character: str, punctuation: str) -> Literal["single", "word", "none"]:
    """Tell a character that is a word of its own, one that is in words, and one that is not."""
    code = ord(character)
    if 0x20000 <= code < 0x40000:
        return "single"
    if code >= 0x40000:
        return "word" if punctuation == "keep" else "none"
    if is_letter(character) and any(low <= code <= high for low, high in _UNSPACED):
        return "single"
    is_in_word = is_letter(character) if punctuation == "remove" else not character.isspace()
    return "word" if is_in_word else "none"


def lower(character: str) -> str:
    return {"İ": "i", "ς": "σ"}.get(character, character.lower())


def slow_words(text: str, lowercase: bool, punctuation: str) -> list[str]:
    marked = ""
    for character in text:
        written = lower(character) if lowercase and ord(character) < 0x20000 else character
        match class_of(character, punctuation):
            case "single":
                marked += f"\ud800{written}\ud800"
            case "word":
                marked += written
            case "none":
                marked += "\ud800"
    return [word for word in marked.split("\ud800") if word]


def buffers(texts: list[str]) -> Any:
    """Buffers of a slice, whose offsets do not begin at 0."""
    return text_buffers(pl.Series(["ahead é", *texts, "behind"], dtype=pl.String)[1:-1])


@pytest.mark.slow
@many_examples(200)
@given(st.lists(NASTY_TEXT | PLAIN_TEXT, max_size=4))
@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("punctuation", ["remove", "keep"])
def test_words_are_joined(
    lowercase: bool, punctuation: Literal["remove", "keep"], texts: list[str]
) -> None:
    entries = code_point_entries(lowercase, punctuation)

    texts = [*texts, LAST]
    joined, starts, word_offsets = join_words(*buffers(texts), entries)

    expected = [slow_words(text, lowercase, punctuation) for text in texts]
    words = [bytes(joined[first : last - 1]).decode() for first, last in pairwise(starts)]
    assert words == [word for each in expected for word in each]
    assert word_offsets.tolist() == np.cumsum([0, *map(len, expected)]).tolist()
    assert all(joined[last - 1] == BLANK for last in starts[1:])
    assert len(joined) == starts[-1] + PADDING


@compiled
@given(st.lists(NASTY_TEXT | PLAIN_TEXT, max_size=4))
def test_whitespace_is_folded(texts: list[str]) -> None:
    texts = [*texts, LAST]
    folded, offsets = fold_whitespace(*buffers(texts), code_point_entries())

    expected = [" ".join(text.split()).encode() for text in texts]
    assert bytes(folded) == b"".join(expected)
    assert offsets.tolist() == np.cumsum([0, *map(len, expected)]).tolist()


@pytest.mark.parametrize("separator", ["\n", " \t", "\u00a0", "\u3000 ", "’", "."])
@pytest.mark.parametrize("character", ["a", "é", "漢", "\U00010400"])
def test_windows_of_64_bytes_end_anywhere(character: str, separator: str) -> None:
    # In the middle of a character or of a word, before separators and near the end of the buffer.
    texts = [character * size + separator + "b " + character * 90 for size in range(140)]
    entries = code_point_entries()

    folded, offsets = fold_whitespace(*buffers(texts), entries)
    joined, starts, _ = join_words(*buffers(texts), entries)

    assert bytes(folded).decode() == "".join(" ".join(text.split()) for text in texts)
    expected = [word for text in texts for word in slow_words(text, True, "remove")]
    assert [bytes(joined[i : j - 1]).decode() for i, j in pairwise(starts)] == expected
    assert len(offsets) == len(texts) + 1


def test_all_white_space_is_folded_in_windows() -> None:
    texts = [
        "".join(f"é{chr(code)}{chr(code)}" for code in range(first, first + 64))
        for first in range(0, 0xD800, 64)
    ]

    folded, offsets = fold_whitespace(*buffers(texts), code_point_entries())

    found = [bytes(folded[i:j]).decode() for i, j in pairwise(offsets)]
    assert found == [" ".join(text.split()) for text in texts]


@compiled
@given(st.characters(exclude_categories=["Cs"]))
def test_the_entry_of_a_character_says_its_class(character: str) -> None:
    entries = code_point_entries()
    bits = {"single": SINGLE, "word": WORD, "none": 0}[class_of(character, "remove")]

    entry = entry_of(np.uint64(ord(character)), entries)

    assert entry & SINGLE == bits
    assert bool(entry & SPACE) == character.isspace()
    is_lowered = ord(character) < 0x20000
    written = ord(lower(character) if is_lowered else character) if bits else BLANK
    assert entry & LOWER == written
    data = character.encode()
    assert entry_and_width(as_array(b"a" + data), np.uint64(1), entries) == (entry, len(data))


def test_classes_are_sums_of_bits() -> None:
    tests = {1: str.isspace, 2: str.isupper, 8: str.isdigit, 32: str.isalpha}

    classes = classes_by(tests)
    add_marks(classes, "a\U0010ffff.", 4)
    add_marks(classes, "a", 4)

    assert (classes.shape, classes.dtype) == ((NUM_CODES,), np.uint16)
    for code in (*range(0x3000), *range(LETTERS_END - 99, LETTERS_END + 99), 0x10FFFF):
        character = chr(code)
        expected = sum(bit for bit, test in tests.items() if test(character))
        assert classes[code] == expected + 4 * (character in "a\U0010ffff.")


def test_no_letter_comes_after_the_last_plane_of_letters() -> None:
    letters = (c for c in map(chr, range(LETTERS_END, NUM_CODES)) if c.isalnum() or c.isspace())

    assert not list(letters)


def test_sentence_ends_are_the_159_of_datatrove() -> None:
    assert len(set(TERMINAL_MARKS)) == len(TERMINAL_MARKS) == 159
    assert set(".?!。！？؟।") < set(TERMINAL_MARKS)
    assert not set("…\"'”»:;,") & set(TERMINAL_MARKS)
