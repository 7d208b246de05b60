"""Frames as people and programs read them."""

from prelude import json, pl, pytest

from pipeline_defs.commands.answers import answer, as_table, nested

FATES = pl.DataFrame(
    {
        "source": ["web", "web", "books"],
        "stage": ["raw", "filtered", "raw"],
        "documents": [1200, None, 3],
        "kept_share": [0.5, 0.004, 0.0],
        "rejected": [[{"reason": "short", "rows": 2}], [], []],
    }
)


def test_columns_become_keys_and_nulls_are_left_out() -> None:
    found = nested(FATES.drop("kept_share"), "source", "stage", of=("web", "code"))
    assert found["web"]["raw"] == {"documents": 1200, "rejected": {"short": 2}}
    assert found["web"]["filtered"] == {"rejected": {}}
    assert [*found] == ["web", "code", "books"] and found["code"] == {}
    counts = FATES.select("source", "stage", "documents")
    assert nested(counts, "source", "stage")["books"] == {"raw": 3}
    assert nested(counts)[1] == {"source": "web", "stage": "filtered", "documents": None}


def test_texts_come_first_and_sections_where_a_source_begins() -> None:
    table = as_table(FATES.drop("rejected").with_columns(note=pl.lit(None), is_ok=True))
    assert table.texts == ["source", "stage", "is ok"]
    assert table.numbers == ["documents", "kept\nshare"]
    assert table.rows[0] == ["web", "raw", "yes", 1200, "50.0%"]
    assert table.rows[1] == ["web", "filtered", "yes", None, "0.40%"]
    assert table.rows[2] is None
    grouped = as_table(FATES.drop("rejected"), "source").rows
    assert [row for row in grouped if isinstance(row, str)] == ["web", "books"]


def test_sums_stand_apart() -> None:
    sums = pl.DataFrame({"source": ["web", "all"], "now": [{"documents": 1, "tokens": 2.5}] * 2})
    assert as_table(sums).numbers == ["now\ndocuments", "now\ntokens"]
    assert as_table(sums).rows == [["web", 1, "2.50"], None, ["all", 1, "2.50"]]


def test_the_same_frame_is_a_table_json_or_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    tags = pl.DataFrame({"name": ["v1"], "phases": [["main", "late"]]})
    answer("tags", tags, "No tag.", json=True)
    assert json.loads(capsys.readouterr().out) == [{"name": "v1", "phases": ["main", "late"]}]
    answer("tags", tags, "No tag.", json=False)
    assert " v1    main" in capsys.readouterr().out
    answer("tags", tags.clear(), "No tag.", json=False)
    assert capsys.readouterr().out == "No tag.\n"
