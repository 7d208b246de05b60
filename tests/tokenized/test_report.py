"""Report on a tokenizer: text per token, use of its vocabulary, failures."""

import base64

from prelude import Any, json, np, pl, pytest

from assets.tokenized.tokenized_records import LanguageCounts, TokenizedNumbers
from assets.tokenized.tokenizer_fit import (
    fertility,
    fertility_by_source,
    language_counts,
    report_markdown,
    round_trip_markdown,
    totals,
    vocabulary_numbers,
)
from resources.store.records import as_json_object

COUNTS = LanguageCounts(
    text_bytes_by_language={"de": 30, "en": 80, "zh": 3},
    text_chars_by_language={"de": 28, "en": 80, "zh": 1},
    text_tokens_by_language={"de": 10, "en": 20, "zh": 0},
)


def numbers(*rows: tuple[str, str | None, int], num_marks: int = 1) -> LanguageCounts:
    """Of documents (text, language, stored ids); 0 ids: the document was rejected."""
    ids = [str(row) for row in range(len(rows))]
    texts, languages = [row[0] for row in rows], [row[1] for row in rows]
    columns = {"doc_id": ids, "text": texts, "lang": languages}
    documents = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    tokens = pl.Series([[0] * row[2] for row in rows], dtype=pl.List(pl.UInt16))
    encoded = pl.DataFrame({"doc_id": documents["doc_id"], "tokens": tokens})
    kinds = np.zeros(1, np.uint8)
    return language_counts(documents, encoded.filter(tokens.list.len() > 0), num_marks, kinds)


def test_text_and_tokens_are_counted_by_language() -> None:
    found = numbers(("über", "de", 4), ("the mill", "en", 3), ("", "en", 0), ("?", None, 2))
    assert as_json_object(found) == {
        "text_chars": 13,
        "text_bytes_by_language": {"de": 5, "en": 8, "unknown": 1},
        "text_chars_by_language": {"de": 4, "en": 8, "unknown": 1},
        "text_tokens_by_language": {"de": 3, "en": 2, "unknown": 1},
        "unknown_tokens_by_language": {},
        "byte_tokens_by_language": {},
    }


def test_marks_are_no_text_and_no_documents_give_zeros() -> None:
    found = numbers(("a", "en", 3), ("b", "en", 3), num_marks=2)
    assert found.text_tokens_by_language == {"en": 2}
    found = numbers()
    assert found.text_chars == 0
    assert fertility(found) == {}
    assert totals(found) == totals(LanguageCounts()) == (0.0, 0.0, 0)


def test_fertility_is_text_per_token_the_largest_language_first() -> None:
    assert fertility(COUNTS) == {"en": (4.0, 4.0, 20), "de": (3.0, 2.8, 10)}
    assert totals(COUNTS) == (pytest.approx(113 / 30), pytest.approx(109 / 30), 30)


def test_ids_that_are_never_or_hardly_used_are_counted() -> None:
    counts = np.array([0, 1, 9, 10, 500, 0, 0, 3], np.uint64)
    expected = {"vocabulary_used_share": 5 / 8, "vocabulary_unused": 3, "vocabulary_used_rarely": 3}
    assert vocabulary_numbers(counts) == expected


def test_the_report_has_a_row_for_every_language() -> None:
    shown = report_markdown(COUNTS, np.arange(40, dtype=np.uint64))
    assert "| language | bytes per token" in shown["fertility"]
    assert "| en | 4.000 | 4.000 | 20 |" in shown["fertility"]
    expected = [["en", 4.0, "4.00 bytes, 4.00 chars"], ["de", 3.0, "3.00 bytes, 2.80 chars"]]
    assert chart(shown["fertility"])["bars"] == expected
    assert [0.5, "never"] in chart(shown["vocabulary"])["panels"][0]["ticks"]


def test_sources_are_compared_in_a_table() -> None:
    assert fertility_by_source({"web": COUNTS, "books": LanguageCounts()}).splitlines() == [
        "| source | bytes per token | characters per token | tokens |",
        "|---|---:|---:|---:|",
        "| web | 3.767 | 3.633 | 30 |",
        "| books | 0.000 | 0.000 | 0 |",
    ]


def chart(markdown: str) -> dict[str, Any]:
    """The first chart of a Markdown text."""
    encoded = markdown.partition("(chart:")[2].partition(")")[0]
    found: dict[str, Any] = json.loads(base64.b64decode(encoded))
    return found


def test_a_language_is_escaped_and_an_unused_vocabulary_can_be_drawn() -> None:
    counts = LanguageCounts(5, {"<b>": 5}, {"<b>": 5}, {"<b>": 5})
    shown = report_markdown(counts, np.zeros(3, np.uint64))
    assert "<b>" not in shown["fertility"]
    assert chart(shown["vocabulary"])["panels"][0]["heights"] == [3, 0]


def test_failures_are_named() -> None:
    failed = {f"{row:032x}": 1 for row in range(7)}
    shown = round_trip_markdown(TokenizedNumbers(0, {}, {}, {}, {}, {}, 64, 7, failed))
    assert shown.startswith("7 of 64 documents compared do not decode")
    assert f"{4:032x}" in shown and f"{5:032x}" not in shown
    all_equal = round_trip_markdown(TokenizedNumbers(round_trip_documents=3))
    assert all_equal.startswith("All of 3 documents")
