"""`engine.steps: auto` takes a process for each step of a run that reads much it has not read."""

from collections.abc import Mapping
from math import inf

import yaml
from builders import open_corpus, write_corpus
from prelude import Any, Path, os, pytest

from assets.raw.places.file_digests import FileStatus, status_of
from assets.raw.places.observed_inputs import known_files
from pipeline_defs.work_of_run import needs_processes, new_bytes
from resources.engine.map_parts import AUTO_PROCESS_BYTES
from resources.runs.run_notes import OpenNote, new_note
from resources.settings.pipeline import SettingsError

VERSIONS = {"raw": "1"}
STEPS = ("raw", "filtered")


@pytest.fixture
def folder(tmp_path: Path, dagster_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus with as many bytes as take processes, in files that were not just written."""
    monkeypatch.setattr("assets.raw.places.observed_inputs.RACY_NS", -(1 << 62))
    write_corpus(tmp_path)
    write_large(tmp_path / "input/prose/large.jsonl")
    return tmp_path


def write_large(path: Path) -> FileStatus:
    """A file of no content and no space, as it was an hour ago."""
    path.touch()
    os.truncate(path, AUTO_PROCESS_BYTES)
    an_hour_ago = path.stat().st_mtime - 3600
    os.utime(path, (an_hour_ago, an_hour_ago))
    return status_of(str(path), path.stat())


def decide(folder: Path, run: str, versions: Mapping[str, str] = VERSIONS, **engine: Any) -> bool:
    """Begin a run, and return whether its steps need processes."""
    corpus = open_corpus(write_config(folder, engine))
    note = OpenNote(corpus.store.root, new_note(run, "build_corpus", STEPS, ("prose", "notes")))
    note.change(versions=versions)
    found = needs_processes(corpus, run)
    note.change(state="success")
    note.close()
    return found


def write_config(folder: Path, engine: Mapping[str, Any]) -> Path:
    """The config of the corpus with another engine."""
    return write_corpus(folder, engine=dict(engine))


def know(folder: Path, *files: FileStatus) -> None:
    """Digest files as `raw` does."""
    known = known_files(open_corpus(folder / "pipeline.yaml"), "prose")
    known.digests(files)
    known.save()


def test_much_that_is_new_takes_processes_and_little_does_not(folder: Path) -> None:
    assert decide(folder, "1")
    os.truncate(folder / "input/prose/large.jsonl", 0)
    (folder / "input/prose/large.jsonl").write_text('{"text": "a"}\n')
    assert not decide(folder, "2")


def test_what_the_last_run_has_built_does_not_count(folder: Path) -> None:
    path = folder / "input/prose/large.jsonl"
    assert decide(folder, "1")
    know(folder, status_of(str(path), path.stat()))
    assert not decide(folder, "2")
    write_large(folder / "input/prose/new.jsonl")
    assert decide(folder, "3")


def test_other_code_or_settings_count_as_much_as_the_corpus(folder: Path) -> None:
    path = folder / "input/prose/large.jsonl"
    decide(folder, "1")
    know(folder, status_of(str(path), path.stat()))
    assert not decide(folder, "2")
    assert decide(folder, "3", {"raw": "2"})


def test_a_setting_decides_whatever_there_is_to_do(folder: Path) -> None:
    assert not decide(folder, "1", steps="in_process")
    assert not decide(folder, "2", kind="ray")
    (folder / "input/prose/large.jsonl").unlink()
    assert decide(folder, "3", steps="multiprocess")


def test_one_driver_of_ray_serves_a_run(folder: Path) -> None:
    with pytest.raises(SettingsError, match="steps run in the run's process"):
        open_corpus(write_config(folder, {"kind": "ray", "steps": "multiprocess"}))


def test_what_is_elsewhere_is_not_asked(tmp_path: Path, dagster_home: Path) -> None:
    """It is much at first, and little when it was built; a server that was asked would refuse."""
    where = "https://localhost:9/a.jsonl"
    config = yaml.safe_load(write_corpus(tmp_path).read_text())
    config["sources"][0] |= {"where": where}
    (tmp_path / "pipeline.yaml").write_text(yaml.safe_dump(config))
    corpus = open_corpus(tmp_path / "pipeline.yaml")

    assert new_bytes(corpus, config["sources"][0]["name"], is_built=False) == inf
    assert new_bytes(corpus, config["sources"][0]["name"], is_built=True) == 0
