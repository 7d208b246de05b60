"""Every test has Dagster records of its own; `build` runs stages in this process."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from builders import SMALL_CORPUS, Build, open_corpus, write_corpus
from hypothesis import settings
from markers import is_fast, needs_peers, starts_something

os.environ["TOKENMILL_CONFIG"] = str(SMALL_CORPUS)  # for pipeline_defs.definitions
os.environ.pop("TOKENMILL_STORE", None)
# Modules that load the definitions have a home that is of no store; processes of xdist share it.
HOME_OF_MODULES = tempfile.TemporaryDirectory(prefix="tokenmill-tests-")
os.environ.setdefault("DAGSTER_HOME", HOME_OF_MODULES.name)
Path(os.environ["DAGSTER_HOME"], "dagster.yaml").write_text("telemetry:\n  enabled: false\n")

# An example that takes 200 ms, as one that compiles kernels or runs on a busy machine, is no fault.
# A test has the same examples in every run, so that what was green here is green elsewhere; those
# of --hypothesis-profile=search are new each time.
settings.register_profile("tokenmill", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile("tokenmill")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import slow modules (Dagster, PyTorch) for `make test-fast`."""
    is_test = collection_path.name.startswith("test_")
    only_fast = config.option.markexpr == "fast"
    return True if only_fast and is_test and starts_something(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Set the markers of `make test-fast` and `make test-peers`, in whatever folder a test is.

    Files with fast tests only come last: no long file then runs alone at the end.
    """
    for item in items:
        is_slow = item.get_closest_marker("slow") is not None
        if not is_slow and is_fast(item.path, set(getattr(item, "fixturenames", ()))):
            item.add_marker("fast")
        if needs_peers(item.path):
            item.add_marker("peers")
    others = (item for item in items if not any(map(item.get_closest_marker, ("fast", "slow"))))
    files = {item.path for item in others}
    items.sort(key=lambda item: item.path not in files)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name bytes by their parameter: workers compare ids, and what gzip writes holds the time."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture(autouse=True)
def dagster_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Dagster's records and our run reports of a test stay in its own folder."""
    home = tmp_path / "dagster_home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    return home


@pytest.fixture
def corpus(tmp_path: Path) -> Any:
    """The small corpus, not built yet."""
    return open_corpus(write_corpus(tmp_path))


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs verbs of `corpus`, and returns what they print."""
    from verbs import Cli

    return Cli(capsys)


@pytest.fixture(scope="session")
def build() -> Build:
    """Builds stages without Dagster: all of build_corpus, or those named that the config uses.

    Events, checks, retries and jobs are those of `dagster_build`, which takes three times the CPU.
    """

    def run(corpus: Any, *names: str) -> None:
        from every_stage import build as build_stages

        from assets.stages import used_stages

        stages = used_stages(corpus.settings).values()
        is_wanted = names.__contains__ if names else "mixed".__ne__
        build_stages(corpus, [stage for stage in stages if is_wanted(stage.name)])

    return run


@pytest.fixture(scope="session")
def dagster_build() -> Build:
    """Runs stages in Dagster, in this process: all of build_corpus, or the assets named.

    Named stages that the config does not use are left out, as they are in a graph.
    """

    def run(corpus: Any, *names: str, raise_on_error: bool = True) -> Any:
        import dagster as dg

        from assets.stages import used_stages
        from pipeline_defs.definitions import build_defs

        defs = build_defs(corpus)
        job = "mix_corpus" if names == ("mixed",) else "build_corpus"
        used = used_stages(corpus.settings)
        selected = [dg.AssetKey(name) for name in names if name in used]
        selection = selected if names and job != "mix_corpus" else None
        with dg.DagsterInstance.ephemeral() as instance:
            return defs.resolve_job_def(job).execute_in_process(
                instance=instance, asset_selection=selection, raise_on_error=raise_on_error
            )

    return run
