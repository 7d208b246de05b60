"""The two wheels, in environments of their own, outside the checkout."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import venv
from collections import Counter
from pathlib import Path
from urllib.request import Request, urlopen
from zipfile import ZipFile

import pytest
from documented import ROOT, blocks

pytestmark = pytest.mark.slow
TOPS = ("assets", "corpus_loader", "pipeline_defs", "resources", "tokenmill")
LOCKED = Path(pytest.__file__).parents[1]  # the packages of the locks, without our editable ones
READ = """
from corpus_loader import CorpusLoader
rows = sum(len(batch.tokens) for batch in CorpusLoader("corpus_store", phase="general"))
print(rows)
"""
QUERY = "{runsOrError{...on Runs{results{jobName status}}} repositoriesOrError{__typename}}"


def make_wheels(folder: Path) -> dict[str, bytes]:
    """Build the wheels as `make wheels` does; return their bytes by name."""
    make = ["make", "-s", "-o", f"{sys.prefix}/installed", f"VENV={sys.prefix}", f"DIST={folder}"]
    subprocess.run([*make, "wheels"], cwd=ROOT, check=True)
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.whl"))}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Both wheels: the command, and the loader."""
    folder = tmp_path_factory.mktemp("dist")
    return [folder / name for name in make_wheels(folder)]


def environment(folder: Path, *wheels: Path) -> Path:
    """Make an environment with some wheels alone; return its folder of packages."""
    venv.create(folder, symlinks=True)
    uv = Path(sys.executable).with_name("uv")
    install = [str(uv), "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*install, "--python", folder / "bin/python", *wheels], check=True)
    [packages] = folder.glob("lib/python*/site-packages")
    return packages


@pytest.fixture(scope="module")
def corpus(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command `corpus` of an environment with our wheels and what they depend on."""
    folder = tmp_path_factory.mktemp("command")
    (environment(folder, *wheels) / "locked.pth").write_text(str(LOCKED))
    return folder / "bin/corpus"


def start(command: list[str | Path], folder: Path, **variables: str) -> subprocess.Popen[str]:
    """Start a command in a folder; only the machine and `variables` tell it where things are."""
    kernels = folder / ".kernels"
    kernels.mkdir(exist_ok=True)
    for compiled in ROOT.glob("assets/*/kernels/__pycache__/numba-*"):  # a minute of CPU
        if not (kernels / compiled.name).exists():
            (kernels / compiled.name).symlink_to(compiled)
    own = ("DAGSTER_", "PYTHON", "TOKENMILL_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    return subprocess.Popen(
        command,
        cwd=folder,
        env=kept | {"NUMBA_CACHE_DIR": str(kernels)} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(command: list[str | Path], folder: Path, **variables: str) -> str:
    """Return the output of a command that succeeds."""
    process = start(command, folder, **variables)
    said, _ = process.communicate()
    assert process.returncode == 0, said[-3000:]
    return said


@pytest.fixture(scope="module")
def project(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of the sample, which `corpus build` and `dagster job execute` have built."""
    folder = tmp_path_factory.mktemp("project")
    run([corpus, "init", "--sample"], folder)
    run([corpus, "build", "--to", "sharded"], folder)
    home = {"DAGSTER_HOME": str(folder / ".dagster")}
    job = ["job", "execute", "-m", "pipeline_defs.definitions", "-j", "mix_corpus"]
    assert "mixed, all 2" in run(
        [corpus.with_name("python"), "-m", "dagster", *job], folder, **home
    )
    return folder


def test_each_file_is_in_one_wheel_and_a_second_build_gives_the_same_bytes(
    wheels: list[Path], tmp_path: Path
) -> None:
    names = {wheel.name.partition("-")[0]: ZipFile(wheel).namelist() for wheel in wheels}
    files = Counter(name for each in names.values() for name in each)
    code = [path for top in TOPS for path in (ROOT / top).rglob("*.py")]
    loader = {name.partition("/")[0] for name in names["tokenmill_loader"]}
    assert set(files.values()) == {1}
    assert {name for name in files if name.endswith(".py")} == {
        path.relative_to(ROOT).as_posix() for path in code
    }
    assert {name for name in loader if "dist-info" not in name} == {"corpus_loader"}
    assert make_wheels(tmp_path) == {wheel.name: wheel.read_bytes() for wheel in wheels}


def test_the_page_on_notebooks_runs_from_the_wheels(project: Path, corpus: Path) -> None:
    own = "import polars\npolars.DataFrame({'text': ['The river rose.']}).write_parquet('{}')\n"
    page = [block for page, block in blocks("python") if page == "notebook.md"]
    code = own.replace("{}", "my_texts.parquet") + "".join(page) + "print(repr(corpus))"
    assert "built: raw, " in run([corpus.with_name("python"), "-c", code], project)


def test_the_web_ui_shows_a_project_without_a_checkout(project: Path, corpus: Path) -> None:
    assert {"pipeline.yaml", "workspace.yaml", ".gitignore"} <= {*os.listdir(project)}
    assert (project / ".dagster/dagster.yaml").read_text() == (
        ROOT / ".dagster/dagster.yaml"
    ).read_text()
    process = start([corpus, "ui", "--port", "0"], project)
    assert process.stdout
    try:
        address = next(word for word in process.stdout.readline().split() if "http" in word)
        body = json.dumps({"query": QUERY}).encode()
        asked = Request(f"{address}/graphql", body, {"Content-Type": "application/json"})
        shown = json.load(urlopen(asked))["data"]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    jobs = {(run["jobName"], run["status"]) for run in shown["runsOrError"]["results"]}
    assert ("mix_corpus", "SUCCESS") in jobs and len(jobs) == 2
    assert shown["repositoriesOrError"]["__typename"] == "RepositoryConnection"


def test_numpy_and_the_loader_alone_read_it(
    project: Path, wheels: list[Path], tmp_path: Path
) -> None:
    [loader] = [wheel for wheel in wheels if "loader" in wheel.name]
    packages = environment(tmp_path, loader)
    for name in ("numpy", "numpy.libs"):
        (packages / name).symlink_to(LOCKED / name)
    assert int(run([tmp_path / "bin/python", "-c", READ], project)) > 400


@pytest.mark.parametrize("name", ["assets", "resources", "corpus_loader"])
def test_a_package_that_hides_one_of_ours_is_named(corpus: Path, tmp_path: Path, name: str) -> None:
    other = tmp_path / name / "__init__.py"
    other.parent.mkdir()
    other.touch()
    process = start([corpus, "--version"], tmp_path, PYTHONPATH=str(tmp_path))
    said, _ = process.communicate()
    last = said.splitlines()[-1]
    assert process.returncode == 1
    assert last.startswith(f"ImportError: Tokenmill's package {name!r} is hidden by {other}.")
