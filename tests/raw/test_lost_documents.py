"""Lost documents: not a renamed file, a moved line or a corrected text."""

from prelude import Any, pl

from assets.raw.shrink_files import (
    describe_causes,
    hash_texts,
    lost_by_cause,
    without_corrected,
    without_texts,
)

SCHEMA = {"doc_id": pl.String, "id": pl.String, "url": pl.String, "text": pl.String}


def table(*rows: tuple[Any, ...]) -> pl.DataFrame:
    """Documents (doc_id, id, url, text) with hashed texts."""
    return hash_texts(pl.DataFrame(rows, SCHEMA, orient="row"))


def lost(old: pl.DataFrame, new: pl.DataFrame) -> list[str]:
    """Ids of the documents of `old` that `new` does not yield."""
    gone = without_texts(old, new["text"])
    return without_corrected(gone, without_texts(new, old["text"]))["doc_id"].to_list()


def test_texts_under_other_ids_are_still_there() -> None:
    old = table(("a0", None, None, "one"), ("a1", None, None, "two"), ("a2", None, None, "two"))
    assert lost(old, table(("b7", None, None, "two"), ("c0", None, None, "one"))) == []
    assert lost(old, table(("b7", None, None, "two"))) == ["a0"]
    assert lost(old, old.clear()) == ["a0", "a1", "a2"]


def test_a_document_with_a_corrected_text_is_known_by_place_id_or_url() -> None:
    old = table(
        ("a0", None, None, "one"), ("a1", "x", None, "two"), ("a2", None, "http://u", "three")
    )
    new = table(
        ("a0", None, None, "One."), ("b5", "x", None, "Two."), ("b6", None, "http://u", "Three.")
    )
    assert lost(old, new) == []
    assert lost(old, new[:1]) == ["a1", "a2"]


def test_one_login_page_stands_for_one_document_only() -> None:
    old = table(*((f"a{i}", None, None, f"page {i}") for i in range(30)))
    new = table(*((f"a{i}", None, None, "please log in") for i in range(30)))
    assert len(lost(old, new)) == 29


def test_lines_that_moved_up_do_not_stand_for_the_ones_before_them() -> None:
    old = table(*((f"a{i}", None, None, f"line {i}") for i in range(5)))
    new = table(*((f"a{i}", None, None, f"line {i + 3}") for i in range(2)))
    assert lost(old, new) == ["a0", "a1", "a2"]


def test_a_url_that_many_documents_share_says_nothing() -> None:
    old = table(*((f"a{i}", None, "http://dump", f"line {i}") for i in range(5)))
    assert len(lost(old, table(("b0", None, "http://dump", "another")))) == 5


def test_causes_name_numbers_and_an_example() -> None:
    rows = pl.DataFrame({"file": ["a", "a", "b", "c", "c", "c", "d"]})
    causes = lost_by_cause(rows, {"b", "c", "d"}, {"d"}, {"c": "c, row 0: no field 'text'"})
    assert describe_causes(causes) == (
        "1 file has records in quarantine (3 documents), such as c, row 0: no field 'text'; "
        "1 file is gone (2 documents), such as a; "
        "1 file is without any record (1 documents), such as b; "
        "1 file has other or fewer records (1 documents), such as d"
    )
