"""`annotations` of pipeline.yaml: what is refused, and which rows a condition is met by."""

import subprocess
import sys

from builders import write_corpus
from prelude import Any, Path, pl, pytest

from resources.settings.conditions import Columns, check_condition, check_rows, is_met
from resources.settings.pipeline import SettingsError, load_settings

EDU: dict[str, Any] = {
    "name": "edu",
    "where": "scores.jsonl",
    "columns": {"score": "number", "topic": "label"},
}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("score < 2", [True, False, False]),
        ("score < 2 OR topic = 'b'", [True, True, False]),
        ("score IS NULL", [False, False, True]),
        ("topic IN ('b', 'c') AND score >= 2", [False, True, False]),
    ],
)
def test_a_condition_is_met_by_rows_of_which_it_is_known(
    condition: str, expected: list[bool]
) -> None:
    rows = pl.DataFrame({"score": [1.5, 2.0, None], "topic": ["a", "b", None]})
    columns: Columns = {"score": "number", "topic": "label"}
    check_condition(condition, columns)
    check_rows(condition, columns)

    assert is_met(rows, condition).to_list() == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"drop": "score <"}, "'score <' is no condition in SQL"),
        ({"drop": "edu < 2"}, "no column 'edu'; there are score, topic"),
        ({"drop": "topic = x"}, "no column 'x'.*single quotes"),
        ({"name": "e.du"}, "'e.du' must begin with a letter"),
        ({"columns": {"doc_id": "label"}}, "'doc_id' must begin with a letter"),
        ({"by": "text"}, "'text' names no document; it must be doc_id, id, url or meta.<name>"),
        ({"sources": ["prose", "verse"]}, r"sources\[1\]: unknown source"),
    ],
)
def test_a_wrong_annotator_is_refused_by_name(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    config = write_corpus(tmp_path, annotations=[EDU | change])

    with pytest.raises(SettingsError, match=message):
        load_settings(config)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("score", "'score' is Float64, neither true nor false"),
        ("score < AVG(score)", "depends on other documents"),
        ("topic < 2", "'topic < 2' cannot be computed"),
    ],
)
def test_a_condition_that_is_not_of_one_document_is_refused(condition: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_rows(condition, {"score": "number", "topic": "label"})


def test_a_process_that_loads_conditions_may_fork(tmp_path: Path) -> None:
    config = write_corpus(tmp_path, annotations=[EDU | {"drop": "score < 2"}])
    program = f"""
import os, signal
from pathlib import Path
import polars as pl
from resources.settings.pipeline import load_settings
threads = len(os.listdir("/proc/self/task"))
load_settings(Path({str(config)!r}))
assert len(os.listdir("/proc/self/task")) == threads, "a thread that a fork would lack"
if (child := os.fork()) == 0:
    signal.alarm(20)
    table = pl.DataFrame({{"a": range(100_000), "b": ["x", "y"] * 50_000}})
    os._exit(table.lazy().group_by("b").agg(pl.sum("a")).sort("b").collect().height - 2)
raise SystemExit(os.waitpid(child, 0)[1] != 0)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_secrets_in_urls_are_refused_as_of_a_source(tmp_path: Path) -> None:
    place = "s3://key:hidden@bucket/a.jsonl"
    quiz = {"sets": [{"name": "quiz", "where": place}]}
    config = write_corpus(
        tmp_path, annotations=[EDU | {"where": place}], dedup={"decontamination": quiz}
    )

    with pytest.raises(SettingsError) as error:
        load_settings(config)

    assert str(error.value).count("has no user and no query") == 2
    assert "hidden" not in str(error.value)


def test_classes_are_by_a_number_of_an_annotator(tmp_path: Path) -> None:
    classes = {"score": "edu.topic", "limits": [2]}
    config = write_corpus(tmp_path, annotations=[EDU, EDU], buckets={"classes": classes})

    with pytest.raises(SettingsError) as error:
        load_settings(config)

    assert "'edu' is there twice" in str(error.value)
    assert "'edu.topic' is no number of an annotator; there are: edu.score" in str(error.value)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ({"label": "edu.score"}, "'edu.score' is no label of an annotator; there are: edu.topic"),
        ({"label": "topic"}, "'topic' is no label of an annotator"),
        ({"label": "edu.topic", "score": "meta.n"}, "`limits` are missing"),
        ({}, "`limits` are missing"),
    ],
)
def test_classes_are_by_a_label_of_an_annotator(
    classes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    config = write_corpus(tmp_path, annotations=[EDU], buckets={"classes": classes})

    with pytest.raises(SettingsError, match=message):
        load_settings(config)
