"""Time of Dagster's side with many sources: loading the definitions, and what the web UI asks for.

    .venv/bin/python benchmarks/many_sources.py [--sources 500] [--files 10000] [--build raw]

Prints a Markdown table: CPU and wall seconds to import the code location (best of three), seconds
until `corpus ui` serves, and of the queries behind the asset graph and its partitions. With
`--build` the sources are built as far as a stage first, so that every partition has records.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
CORPUS = (sys.executable, "-m", "pipeline_defs.commands.main")
SELECTOR = '{repositoryName: "__repository__", repositoryLocationName: "tokenmill"}'
QUERIES = {
    "asset graph": "{assetNodes {assetKey {path} groupName dependencyKeys {path} isPartitioned}}",
    "partitions of every asset": "{assetNodes {assetKey {path} partitionStats "
    "{numPartitions numMaterialized numFailed numMaterializing}}}",
    "staleness of every asset": "{assetNodes {assetKey {path} staleStatus}}",
    "names of all partitions": f"{{repositoryOrError(repositorySelector: {SELECTOR}) "
    "{... on Repository {assetNodes {partitionKeys}}}}",
}


def main() -> None:
    """Make the sources, measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=int, default=500)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--build", help="stage to build first")
    options = parser.parse_args()
    print(f"| {options.sources:,} sources, {options.files:,} files | CPU s | s |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = write_sources(folder, options.sources, options.files)
        environment = os.environ | {
            "TOKENMILL_CONFIG": str(config),
            "DAGSTER_HOME": str(folder / "dagster_home"),
            "PYTHONPATH": str(ROOT),
        }
        if options.build:
            command = (*CORPUS, "build", "--to", options.build)
            row(f"building as far as `{options.build}`", *measured(command, environment))
        command = (sys.executable, "-c", "import pipeline_defs.definitions")
        row("importing the code location", *min(measured(command, environment) for _ in range(3)))
        start = time.monotonic()
        with served(environment, folder / "ui.log") as address:
            row("`corpus ui` serves after", None, time.monotonic() - start)
            for title, query in QUERIES.items():
                row(title, None, min(seconds_of(address, query) for _ in range(3)))


def row(title: str, cpu: float | None, seconds: float) -> None:
    """Print a line of the table."""
    print(f"| {title} | {'' if cpu is None else f'{cpu:.2f}'} | {seconds:.2f} |", flush=True)


def write_sources(folder: Path, sources: int, files: int) -> Path:
    """Write documents of one line, in files spread over the sources, and their config."""
    names = [f"source-{index:05}" for index in range(sources)]
    for index in range(files):
        path = folder / "input" / names[index % sources] / f"{index:07}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = f"The river of town {index} has seen with every spring a flood of its own."
        path.write_text(json.dumps({"text": text}) + "\n", encoding="utf-8")
    config = {
        "store": "store",
        "sources": [{"name": name, "where": f"input/{name}/*.jsonl"} for name in names],
        "phases": [{"name": "main", "weights": dict.fromkeys(names, 1.0)}],
    }
    path = folder / "pipeline.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return path


def measured(command: tuple[str, ...], environment: dict[str, str]) -> tuple[float, float]:
    """Run a command; return its CPU seconds, those of its children included, and its seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    seconds = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, seconds


@contextmanager
def served(environment: dict[str, str], log: Path) -> Iterator[str]:
    """Yield the address of `corpus ui`."""
    with log.open("w") as output:
        command = (*CORPUS, "ui", "--port", "0")
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)
    try:
        while not (found := re.search(r"http://127\.0\.0\.1:\d+", log.read_text())):
            if process.poll() is not None:
                sys.exit(log.read_text())
            time.sleep(0.05)
        yield found[0]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def seconds_of(address: str, query: str) -> float:
    """Return the seconds of a GraphQL query."""
    body = json.dumps({"query": query}).encode()
    headers = {"Content-Type": "application/json"}
    start = time.monotonic()
    with urllib.request.urlopen(urllib.request.Request(f"{address}/graphql", body, headers)) as got:
        answer = json.load(got)
    if "errors" in answer:
        sys.exit(f"{query}: {answer['errors']}")
    return time.monotonic() - start


if __name__ == "__main__":
    main()
