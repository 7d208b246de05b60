"""Counts of a part's documents add up."""

from prelude import Any, pl, pytest

from assets.raw.readers.documents import DOCUMENT_SCHEMA
from assets.raw.state_counts import SAMPLE, lines_of, meta_keys, state_counts, text_marks

PLAIN = "The river and the bridge of that town are old, and so is the mill."


def table(*rows: dict[str, Any]) -> pl.DataFrame:
    """Documents with some columns given."""
    given = {"text": PLAIN, "origin": {"file": "a.jsonl", "row": 0}}
    return pl.DataFrame([given | row for row in rows], DOCUMENT_SCHEMA)


def test_a_part_is_counted_by_field_value_file_length_and_line() -> None:
    documents = table(
        {"url": "http://u", "lang": "en", "meta": '{"date": "2026", "tag": {"a": 1}}'},
        {"lang": "en", "license": "MIT", "meta": '{"date": null}'},
        {"text": "Короткий текст.", "origin": {"file": "b.jsonl", "row": 0}},
    )
    line = next(iter(lines_of(PLAIN)))
    assert state_counts(documents) == {
        "all": 3,
        "copies": 1,
        "documents": 3,
        "file:a.jsonl": 2,
        "file:b.jsonl": 1,
        "has lang": 2,
        "has license": 1,
        "has meta.date": 1,
        "has meta.tag": 1,
        "has meta.tag.a": 1,
        "has url": 1,
        "lang=en": 2,
        "license=MIT": 1,
        f"line:{line}": 2,
        "octave:4": 1,
        "octave:7": 2,
        "words of en": 2,
        "words of script 04": 1,
    }
    assert state_counts(documents.clear()) == {}


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("Itâ€™s late.", "mojibake"),
        ("CafÃ© au lait.", "mojibake"),
        ("Ð¿Ñ€Ð¸Ð²ÐµÑ‚.", "mojibake"),
        ("A \ufffd mark.", "U+FFFD"),
        ("A\x00b\x00.", "control characters"),
        ("ALL OF IT.", "upper case"),
        ("It ends in the mid", "end in the middle of a sentence"),
        ("Il ne sera pas dans la ville pour les des que.", "words of fr"),
    ],
)
def test_texts_are_marked(text: str, mark: str) -> None:
    assert mark in set(text_marks(text))


@pytest.mark.parametrize("text", ["Café «à la carte» – “très” bon.", "Straße, Übung, Ärger."])
def test_good_texts_are_no_mojibake(text: str) -> None:
    assert "mojibake" not in set(text_marks(text))


def test_of_equal_counts_the_first_by_name_is_kept() -> None:
    lines = [f"Line {letter}, which two documents have." for letter in "abcdefg"]
    documents = table(*[{"text": "\n".join(lines)}] * 2)
    kept = [key for key in state_counts(documents) if key.startswith("line:")]
    hashes = {one for line in lines for one in lines_of(line)}
    assert kept == [f"line:{one}" for one in sorted(hashes)[:3]]


def test_of_a_large_part_a_sample_is_read() -> None:
    counts = state_counts(table(*[{}] * (3 * SAMPLE + 1)))
    assert (counts["all"], counts["documents"]) == (769, 193)


def test_meta_of_values_that_are_none_counts_nothing() -> None:
    values = pl.Series(['{"a": "", "b": null, "c": 0, "url": "u"}', '{"a": "x"}'])
    assert {key: n for key, n in meta_keys(values).items() if n} == {
        "has meta.a": 1,
        "has meta.c": 1,
    }
