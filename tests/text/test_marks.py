"""Marks find texts, passages and ids, and say nothing of other texts."""

from hashlib import sha256

from builders import sentence
from prelude import given, np, pl, pytest, st

from assets.text.marks import (
    DIGEST_BYTES,
    MARK_BYTES,
    Marks,
    copied_rows,
    copies_of,
    find_doc_ids,
    find_ids,
    find_passages,
    find_texts,
    id_marks,
    marks_of,
    passage_marks,
    text_marks,
)

TEXT = " ".join(sentence(number) for number in range(20))
IDS = [f"{number:032x}" for number in range(3, 300, 7)]


def passages_of(*texts: str) -> Marks:
    return marks_of(enumerate(passage_marks(pl.Series(texts))))


def rows_with(texts: list[str], marks: Marks) -> set[int]:
    return {found.row for found in find_passages(pl.Series(texts, dtype=pl.String), marks)}


def words(text: str) -> str:
    """Return the words of a text, the slow way."""
    kept = "".join(c.lower() if c.isalnum() or c == "_" else " " for c in text)
    return "".join(f"{word} " for word in kept.split())


def test_any_320_bytes_of_words_hold_a_passage() -> None:
    joined = words(TEXT)
    marks = passages_of(TEXT)
    pieces = [joined[start : start + 330] for start in range(0, len(joined) - 330, 41)]
    assert rows_with(pieces, marks) == set(range(len(pieces)))
    assert len(marks.owners) == (len(joined) - 64) // 256 + 1


def test_white_space_case_and_punctuation_make_no_difference() -> None:
    changed = "--" + TEXT.upper().replace(" ", "\n\t").replace(".", "?! ") + "..."
    assert rows_with([changed, sentence(99, 200)], passages_of(TEXT)) == {0}
    found = find_texts(
        pl.Series(["other", changed]), marks_of([(7, text_marks(pl.Series([TEXT]))[0])])
    )
    assert [(each.row, each.owner) for each in found] == [(1, 7)]


@given(st.text(max_size=400), st.text(max_size=30), st.text(max_size=30))
def test_a_passage_is_found_wherever_it_is(text: str, before: str, after: str) -> None:
    marks = passages_of(text)
    assert rows_with([f"{before} {text} {after}"], marks) == ({0} if marks else set())


def test_passages_do_not_reach_across_texts() -> None:
    half = len(TEXT) // 2
    marks = passages_of(words(TEXT)[100:170])
    assert len(marks.owners) == 1
    cut = [words(TEXT)[:130], words(TEXT)[130:half]]
    assert rows_with(cut, marks) == set()


def test_a_mark_is_a_check_and_a_sha256_of_what_it_marks() -> None:
    [mark] = id_marks(["00" * 15 + "ff"])
    assert len(mark) == MARK_BYTES
    assert mark[4:] == sha256(bytes(15) + b"\xff").digest()[:DIGEST_BYTES]
    [text] = text_marks(pl.Series(["Two  words!"]))
    assert text == len(b"two words ").to_bytes(4, "little") + sha256(b"two words ").digest()[:16]


@given(st.lists(st.sampled_from(IDS), max_size=5), st.binary(max_size=40), st.booleans())
def test_ids_are_found_in_bytes_at_any_place_in_both_spellings(
    wanted: list[str], between: bytes, is_hex: bool
) -> None:
    marks = marks_of([(0, b"".join(id_marks(wanted)))])
    spelled = [each.encode() if is_hex else bytes.fromhex(each) for each in IDS]
    content = between.join([b"", *spelled, b""])
    found = find_ids(np.frombuffer(content, np.uint8), marks)
    digests = {mark[4:] for mark in id_marks(wanted)}
    assert {each.digest for each in found} >= digests
    in_column = find_doc_ids(pl.Series(IDS), marks)
    assert {IDS[each.row] for each in in_column} == set(wanted)


def test_more_places_than_the_first_are_all_found() -> None:
    marks = passages_of(TEXT)
    assert len(find_passages(pl.Series([TEXT] * 200), marks)) == 200 * len(marks.owners)


# What comes back of a text of 15 passages and of one of three, and whether it is a copy of it.
LONG, SHORT = " ".join(sentence(number, 120) for number in range(4)), sentence(90, 90)
MENU, OTHER = "Home | About | Contact\n\n{}\n\nAll rights reserved.", sentence(91, 300)
RETURNS = {
    "exact": (LONG, 0),
    "between the lines of a menu": (MENU.format(LONG), 0),
    "within a longer text": (f"{OTHER}\n\n{LONG}\n\n{sentence(92, 300)}", 0),
    "other white space and case": (LONG.upper().replace(" ", " \n\t"), 0),
    "three quarters": (LONG[: 3 * len(LONG) // 4], 0),
    "short, within more": (MENU.format(SHORT), 1),
    "half": (LONG[: len(LONG) // 2], None),
    "half of the short one": (f"{SHORT[: len(SHORT) // 2]} {OTHER}", None),
    "another text": (OTHER, None),
}


@pytest.mark.parametrize("name", RETURNS)
def test_a_copy_has_enough_of_the_passages_of_a_text(name: str) -> None:
    copies = copies_of(enumerate(passage_marks(pl.Series([LONG, SHORT]))))
    assert copies.needed == (11, 3), "70 % of 15, and all of fewer than four"
    text, owner = RETURNS[name]
    found = copied_rows(find_passages(pl.Series(["", text]), copies.marks), copies)
    assert found == ({} if owner is None else {1: {owner}})


def test_a_passage_of_two_texts_counts_for_both() -> None:
    passages = b"".join(bytes([number]) * MARK_BYTES for number in range(5))
    copies = copies_of([(7, passages), (8, passages[:MARK_BYTES]), (9, b"")])
    digests = [bytes([number]) * DIGEST_BYTES for number in range(5)]
    assert copies.owners_among(digests[:4]) == {7, 8}
    assert copies.owners_among(digests[:3]) == {8}
    assert copies.owners_among(digests[1:]) == {7}
