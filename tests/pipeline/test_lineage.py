"""OpenLineage is told of the steps of a run where the environment asks for it, and only there."""

from builders import Build
from prelude import Any, Path, json, pytest

pytest.importorskip("openlineage.client")
STAGES = ("raw", "filtered", "signatures", "band_index")


def events_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def names(event: dict[str, Any], side: str) -> list[str]:
    return sorted(each["name"] for each in event[side])


def test_each_step_is_told_with_what_it_read_and_made(
    corpus: Any, dagster_build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "events.jsonl"
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "file")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", str(path))
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__APPEND", "true")
    run = dagster_build(corpus, *STAGES)
    told = events_of(path)
    assert [(each["job"]["name"], each["eventType"]) for each in told] == [
        (stage, state) for stage in STAGES for state in ("START", "COMPLETE")
    ]
    assert {each["run"]["facets"]["parent"]["run"]["runId"] for each in told} == {run.run_id}
    assert {each["job"]["namespace"] for each in told} == {f"file://{corpus.store.root}"}
    raw, filtered, index = told[1], told[3], told[7]
    assert names(raw, "inputs") == ["input_files/notes", "input_files/prose"]
    assert names(filtered, "inputs") == ["raw/notes", "raw/prose"]
    assert names(index, "inputs") == ["signatures/notes", "signatures/prose"]
    for each in filtered["outputs"]:
        manifest = corpus.store.newest(*each["name"].split("/"))
        assert each["facets"]["version"]["datasetVersion"] == manifest.fingerprint

    (corpus.config.parent / "input/prose/a.jsonl").rename(tmp_path / "a.jsonl")
    (corpus.config.parent / "input/prose/b.jsonl").rename(tmp_path / "b.jsonl")
    path.unlink()
    dagster_build(corpus, "raw", raise_on_error=False)
    start, end = events_of(path)
    assert (end["eventType"], names(end, "outputs")) == ("FAIL", ["raw/notes"])
    assert start["run"]["runId"] == end["run"]["runId"] != told[0]["run"]["runId"]


def test_a_run_goes_on_where_nothing_listens(
    corpus: Any, dagster_build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "file")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", "/dev/null/none")
    assert dagster_build(corpus, "raw").success
