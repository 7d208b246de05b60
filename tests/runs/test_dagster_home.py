"""DAGSTER_HOME: where it is by default, and that the records of two stores stay apart."""

import shutil
import subprocess

from builders import write_corpus
from command_line import ROOT
from prelude import Any, Path, os, pytest, sys

from pipeline_defs.commands.main import main
from pipeline_defs.commands.terminal import as_typed
from resources.dagster_home import (
    dagster_home,
    note_store,
    prepare_home,
    refuse_other_store,
)
from resources.errors import UsageError
from resources.store.scratch import open_scratch


def note_made(store: Path) -> None:
    """Make a store, and note that the records of the home are of it."""
    store.mkdir(parents=True, exist_ok=True)
    note_store(store)


def test_the_home_is_beside_pipeline_yaml_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(tmp_path / "pipeline.yaml"))
    monkeypatch.delenv("DAGSTER_HOME")
    assert dagster_home() == tmp_path / ".dagster"
    monkeypatch.delenv("TOKENMILL_CONFIG")
    assert dagster_home() == ROOT / ".dagster"


def test_a_second_store_in_a_home_is_refused_before_anything_runs(
    tmp_path: Path, dagster_home: Path
) -> None:
    first, second = (write_corpus(tmp_path / name) for name in ("one", "two"))
    module = ("-m", "pipeline_defs.definitions")
    of_raw = (*module, "--select", "raw", "--partition", "prose")
    commands = (
        (first, ("pipeline_defs.commands.main", "build", "--to", "raw")),
        (second, ("dagster", "asset", "materialize", *of_raw)),
        (second, ("pipeline_defs.commands.main", "build")),
        (first, ("dagster", "asset", "materialize", *of_raw)),
    )

    done = [
        subprocess.run(
            (sys.executable, "-m", *words),
            cwd=ROOT,
            env=os.environ | {"TOKENMILL_CONFIG": str(config)},
            capture_output=True,
            text=True,
        )
        for config, words in commands
    ]

    assert [each.returncode for each in done] == [0, 1, 2, 0], done[-1].stderr[-2000:]
    fact = f"{dagster_home} has Dagster's records of another store, {tmp_path / 'one/store'}: "
    assert all(fact in each.stderr for each in done[1:3])
    assert done[2].stderr.startswith(fact) and f"as {tmp_path / 'two/.dagster'}" in done[2].stderr
    assert not (tmp_path / "two/store").exists()
    assert f"TOKENMILL_CONFIG={first} DAGSTER_HOME={dagster_home} " in done[0].stdout


@pytest.mark.parametrize(
    "words", [("states", "rollback", "prose", "--to", "1"), ("ui", "--port", "0")], ids=" ".join
)
def test_what_writes_records_is_refused(
    tmp_path: Path,
    dagster_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(write_corpus(tmp_path)))
    note_made(tmp_path / "other")
    assert main(words) == 2
    assert f"records of another store, {tmp_path / 'other'}: " in capsys.readouterr().err


def test_the_way_out_that_is_told_is_one(
    tmp_path: Path, dagster_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two configs in one folder, too, whose default home is the same."""
    monkeypatch.setenv("TOKENMILL_CONFIG", str(tmp_path / "second.yaml"))
    dagster_home.rename(tmp_path / ".dagster")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / ".dagster"))
    note_made(tmp_path / "one")
    free = f"{tmp_path}/.dagster_two"
    with pytest.raises(UsageError, match=rf"such as {free}\. If {tmp_path}/one is no longer in"):
        prepare_home(tmp_path / "two")

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAGSTER_HOME", free)
        prepare_home(tmp_path / "two")
        assert f"/second.yaml DAGSTER_HOME={free} " in as_typed("ui")
    (tmp_path / "one").rename(tmp_path / "put_aside")
    prepare_home(tmp_path / "two")


def moved(store: Path, _home: Path) -> None:
    store.rename(store.with_name("two"))


def linked(store: Path, _home: Path) -> None:
    store.with_name("two").symlink_to(store)


def in_postgres(_store: Path, home: Path) -> None:
    shutil.copy(ROOT / "deploy/dagster.yaml", home)


@pytest.mark.parametrize("change", [moved, linked, in_postgres])
def test_a_store_goes_on_in_its_home(tmp_path: Path, dagster_home: Path, change: Any) -> None:
    note_made(tmp_path / "one")
    change(tmp_path / "one", dagster_home)
    refuse_other_store(tmp_path / "two")


def test_a_store_that_is_copied_with_its_home_goes_on_in_the_copy(
    tmp_path: Path, dagster_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note_made(tmp_path / "one")
    shutil.copytree(dagster_home, tmp_path / "copied_home")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "copied_home"))
    refuse_other_store(tmp_path / "copy")


def test_a_store_in_objects_is_known_by_its_url(tmp_path: Path, dagster_home: Path) -> None:
    scratches = [
        open_scratch(url, tmp_path / folder, 1 << 20)
        for url, folder in (("s3://b/one", "here"), ("s3://b/one", "moved"), ("s3://b/two", "here"))
    ]
    note_made(scratches[0])
    refuse_other_store(scratches[1])
    with pytest.raises(UsageError, match=r"another store, s3://b/one: those of s3://b/two would"):
        refuse_other_store(scratches[2])


def test_a_hint_names_what_leads_to_the_corpus_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(tmp_path / "my corpus.yaml"))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / ".dagster"))
    assert as_typed("ui").startswith(f"TOKENMILL_CONFIG='{tmp_path}/my corpus.yaml' ")
    assert "DAGSTER_HOME" not in as_typed("ui")
