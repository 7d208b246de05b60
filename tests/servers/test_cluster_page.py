"""The commands of docs/cluster.md, as far as one machine with real servers takes them."""

import subprocess

import dagster as dg
import yaml
from builders import write_corpus
from command_line import ROOT
from documented import blocks
from prelude import Path, os, pytest, sys


@pytest.mark.usefixtures("records")
def test_the_steps_from_a_laptop_to_an_object_store_run_as_written(
    tmp_path: Path, dagster_home: Path, bucket: str
) -> None:
    config = write_corpus(tmp_path)
    (tmp_path / ".venv").symlink_to(Path(sys.executable).parents[1])
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    (dagster_home / "dagster.yaml").unlink()  # that of the fixture
    laptop, records, objects, *_ = [text for page, text in blocks("sh") if page == "cluster.md"]

    run(tmp_path, laptop)  # with records in SQLite
    assert "PostgresEventLogStorage" in run(tmp_path, records)
    assert run_count() == 2
    settings = yaml.safe_load(config.read_text()) | {"store": f"{bucket}/corpus"}
    config.write_text(yaml.safe_dump(settings))
    run(tmp_path, objects)
    assert run_count() == 4


def run_count() -> int:
    """Number of runs in the records that DAGSTER_HOME names."""
    with dg.DagsterInstance.get() as instance:
        return instance.get_runs_count()


def run(folder: Path, block: str) -> str:
    """Run a block of a page, whose variables the fixtures have set and whose packages are there."""
    lines = [
        line
        for line in block.splitlines()
        if not line.startswith(("export ", "make .venv/installed-"))
    ]
    environment = os.environ | {
        "TOKENMILL_CONFIG": str(folder / "pipeline.yaml"),
        "TOKENMILL_SCRATCH": str(folder / "scratch"),
        "PYTHONPATH": str(ROOT),
    }
    command = ["bash", "-euxc", "\n".join(lines)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout
