"""Errors that no verb expects end in one line that names path and machine, never in a traceback.

Those of Dagster's records that need a server are in tests/servers."""

import shutil
import socket
import subprocess

import dagster as dg
from builders import write_corpus
from documented import ROOT
from prelude import Path, os, pytest, sys

from pipeline_defs.commands.unexpected_errors import records_fault, system_fault

CORPUS = (sys.executable, "-m", "pipeline_defs.commands.main")
BUILD = ("build", "--to", "raw")


def environment(folder: Path, **changes: str) -> dict[str, str]:
    config = write_corpus(folder)
    paths = {"TOKENMILL_CONFIG": str(config), "TOKENMILL_STORE": str(folder / "store")}
    return os.environ | paths | {"DAGSTER_HOME": str(folder / "home")} | changes


@pytest.mark.parametrize(
    "verb", [("config",), ("rules", "presets", "fineweb"), ("build", "--dry-run")]
)
def test_a_reader_that_has_enough_sees_no_traceback(tmp_path: Path, verb: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as closed:
        done = subprocess.run(
            (*CORPUS, *verb),
            cwd=ROOT,
            env=environment(tmp_path),
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.stderr == "" and done.returncode in (1, 141)  # 1 where rich writes


@pytest.mark.parametrize("what", ["DAGSTER_HOME", "TOKENMILL_STORE"])
def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, what: str) -> None:
    (tmp_path / "file").touch()
    wanted = str(tmp_path / "file/folder")
    done = subprocess.run(
        (*CORPUS, *BUILD),
        cwd=ROOT,
        env=environment(tmp_path, **{what: wanted}),
        capture_output=True,
        text=True,
    )
    [line] = done.stderr.splitlines()
    assert done.returncode == 1
    assert line.startswith(f"Not a directory: {wanted} on {socket.gethostname()}. Correct the path")
    assert ("DAGSTER_HOME" in line) == (what == "DAGSTER_HOME")


@pytest.mark.skipif(
    not shutil.which("unshare") or subprocess.run(("unshare", "-rm", "true")).returncode != 0,
    reason="no namespace of mounts can be made here",
)
def test_shared_memory_to_read_only_is_named_and_not_the_store(tmp_path: Path) -> None:
    code = (
        "import multiprocessing; from pathlib import Path\n"
        "from resources.engine.system_errors import final_errors_explained\n"
        f"with final_errors_explained(Path({str(tmp_path)!r})): multiprocessing.Lock()"
    )
    script = 'mount -t tmpfs -o ro none /dev/shm && exec "$0" -c "$1"'
    command = ("unshare", "-rm", "sh", "-c", script, sys.executable, code)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    told = done.stderr.splitlines()[-1]
    assert f"in /dev/shm on {socket.gethostname()}" in told and str(tmp_path) not in told


def test_errors_of_the_program_keep_their_traceback() -> None:
    assert system_fault(RuntimeError("a bug")) is None
    assert system_fault(FileNotFoundError("a bug")) is None


def test_a_missing_package_is_named_with_its_extra(
    dagster_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(ROOT / "deploy/dagster.yaml", dagster_home)
    monkeypatch.setitem(sys.modules, "dagster_postgres", None)
    with pytest.raises(Exception, match="dagster_postgres") as raised:
        dg.DagsterInstance.get()
    assert "pip install 'tokenmill[postgres]'" in (records_fault(raised.value) or "")


def test_other_errors_are_none_of_the_records() -> None:
    assert records_fault(ValueError("a bug")) is None
