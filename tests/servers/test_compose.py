"""The services of deploy/compose.yaml that are ours, run here: their commands and health checks."""

import itertools
import subprocess
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager

import dagster as dg
import yaml
from builders import write_corpus
from command_line import ROOT, until
from postgres_server import free_port
from prelude import Any, Iterator, Path, json, os, pytest, sys

SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())["services"]
OURS = ("code", "daemon", "web")  # each needs those before it
LAUNCH = """mutation($wanted: ExecutionParams!) {
  launchPipelineExecution(executionParams: $wanted) { __typename ... on Error { message } }
}"""
WAITING = (dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED)
SUCCESS = dg.DagsterRunStatus.SUCCESS


@pytest.mark.usefixtures("records")
def test_runs_on_one_store_wait_in_the_queue(
    tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_corpus(tmp_path)
    ports = {"3000": str(free_port()), "4000": str(free_port()), "0.0.0.0": "127.0.0.1"}
    for name, value in {
        "TOKENMILL_CONFIG": str(config),
        "TOKENMILL_STORE": f"{bucket}/corpus",
        "TOKENMILL_SCRATCH": str(tmp_path / "scratch"),
        "TOKENMILL_CODE_HOST": "127.0.0.1",
        "TOKENMILL_CODE_PORT": ports["4000"],
    }.items():
        monkeypatch.setenv(name, value)
    assert set(SERVICES["code"]["environment"]) <= set(os.environ)
    with ExitStack() as stack, dg.DagsterInstance.get() as instance:
        for name in OURS:
            stack.enter_context(running(name, ports, tmp_path))
        for _ in range(3):
            launch(f"http://127.0.0.1:{ports['3000']}")

        def runs() -> list[dg.DagsterRun]:
            found = list(instance.get_runs())
            begun = [run for run in found if run.status not in WAITING and not run.is_finished]
            assert len(begun) <= 1
            return found

        until(lambda: [run.status for run in runs()].count(SUCCESS) == 3)
        records = sorted(instance.get_run_records(), key=lambda each: each.start_time or 0)
    for before, after in itertools.pairwise(records):
        assert (after.start_time or 0) >= (before.end_time or 0)


@contextmanager
def running(name: str, changes: dict[str, str], folder: Path) -> Iterator[None]:
    """Run the command of a service as soon as those before it are healthy, and wait until it is."""
    service = SERVICES[name]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)}
    kind, *check = changed(service["healthcheck"]["test"], changes)
    assert kind == "CMD"

    def is_healthy() -> bool:
        return not subprocess.run(check, env=environment, capture_output=True).returncode

    assert not is_healthy()
    with (folder / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            changed(service["command"], changes), cwd=ROOT, env=environment, stdout=log, stderr=log
        )
        try:
            until(is_healthy, process)
            yield
        finally:
            process.terminate()
            process.wait(60)


def changed(words: list[str], changes: dict[str, str]) -> list[str]:
    """Put free ports, and the loopback address, in place of those of the containers."""
    for old, new in changes.items():
        words = [word.replace(old, new) for word in words]
    return words


def launch(address: str) -> None:
    """Ask for a run of the job with `raw` only, as a click in the UI does."""
    selector = {
        "repositoryName": "__repository__",
        "repositoryLocationName": "tokenmill",
        "pipelineName": "build_corpus",
        "assetSelection": [{"path": ["raw"]}],
    }
    wanted = {"selector": selector, "runConfigData": {}}
    body = json.dumps({"query": LAUNCH, "variables": {"wanted": wanted}}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}/graphql", body, headers)
    try:
        with urllib.request.urlopen(request) as answer:
            got: Any = json.load(answer)
    except urllib.error.HTTPError as refused:
        raise AssertionError(refused.read()) from refused
    assert got["data"]["launchPipelineExecution"]["__typename"] == "LaunchRunSuccess", got
