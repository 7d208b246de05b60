"""Time and memory of every stage against the number of parts, and of input files, all tiny.

    .venv/bin/python benchmarks/scale.py [--parts 1000 10000] [--files 1000 10000] [--processes]

Prints a Markdown table: CPU milliseconds and memory of each stage, by part or by file, when all is
to be computed and when there is nothing to do, and the slope of both: the exponent of the best fit
of seconds to a power of the number, 1 where twice the parts take twice the time. The stages run as
in a Dagster step, without Dagster: planned, computed, committed, described and checked. A part is
one document of a kilobyte, so that all that is measured is overhead. With --processes the work is
in two processes, as in a large run: seconds are those of the clock, and memory is the planner's.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import yaml

ROOT = Path(__file__).resolve().parent.parent
PART_BYTES = 1024
TALE = "the river of that town and its bridge have seen with every spring a flood to be"
SMALLEST_FIT = 0.05  # seconds: below, a fit would be one of start-up
CONFIG: dict[str, Any] = {
    "store": "store",
    "sources": [{"name": "web", "where": "input/*.jsonl"}],
    "phases": [{"name": "main", "weights": {"web": 1.0}}],
    "dedup": {
        "lines": {"min_count": 10},
        "paragraphs": {"min_count": 10},
        "substrings": {"min_words": 50},
    },
    "tokenizer": {"vocab_size": 300},
}


class Run(msgspec.Struct, frozen=True):
    """One stage over one corpus: `number` parts or files, computed or with nothing to do."""

    axis: str
    number: int
    stage: str
    parts: int
    is_first: bool
    cpu_seconds: float
    seconds: float
    peak_mb: float


class Line(NamedTuple):
    """Runs of one stage along one axis, smallest first: with all to do, and with nothing."""

    first: list[Run]
    again: list[Run]


def main() -> None:
    """Measure every size in a process of its own, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", type=int, nargs="*", default=[1000, 10000])
    parser.add_argument("--files", type=int, nargs="*", default=[1000, 10000])
    parser.add_argument("--stages", nargs="*", help="only as far as the last of these")
    parser.add_argument("--processes", action="store_true", help="work in processes, not threads")
    parser.add_argument("--folder", type=Path, help="where to make the corpora")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        axis, number = options.measure.split("=")
        for run in measure(options, axis, int(number)):
            print(msgspec.json.encode(run).decode(), flush=True)
        return
    runs: list[Run] = []
    for axis, numbers in (("parts", options.parts), ("files", options.files)):
        for number in numbers:
            runs += measured(axis, number, options)
    print("\n".join(table(runs, "seconds" if options.processes else "cpu_seconds")))


def measured(axis: str, number: int, options: argparse.Namespace) -> list[Run]:
    """Return the runs of one corpus, which is removed afterwards."""
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        command = [sys.executable, __file__, "--measure", f"{axis}={number}", "--folder", folder]
        command += ["--processes"] * options.processes
        command += ["--stages", *options.stages] if options.stages else []
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        runs = []
        for line in process.stdout:
            runs.append(msgspec.json.decode(line, type=Run))
            sys.stderr.write(line)
        if process.wait():
            sys.exit(f"{axis}={number} failed")
        return runs


def measure(options: argparse.Namespace, axis: str, number: int) -> Iterator[Run]:
    """Yield the cost of every stage, with everything to do and right after it with nothing."""
    sys.path.insert(0, str(ROOT))
    from assets.stages import used_stages

    engine = {"kind": "processes" if options.processes else "in_process", "workers": 2}
    corpus = make_corpus(options.folder, axis, number, engine)
    stages = list(used_stages(corpus.settings).values())
    if options.stages:
        names = [stage.name for stage in stages]
        stages = stages[: max(map(names.index, options.stages)) + 1]
    for stage, is_first in itertools.product(stages, (True, False)):
        yield run_measured(corpus, stage, Run(axis, number, stage.name, 0, is_first, 0, 0, 0))


def make_corpus(folder: Path, axis: str, number: int, engine: dict[str, Any]) -> Any:
    """Write documents in one file that is cut into `number` parts, or in `number` files."""
    from resources.corpus import Corpus
    from resources.settings.pipeline import load_settings
    from resources.store.store import Store

    inputs = folder / "input"
    inputs.mkdir()
    if axis == "parts":
        with open(inputs / "all.jsonl", "w", encoding="utf-8") as file:
            file.writelines(map(document, range(number)))
    else:
        for index in range(number):
            (inputs / f"{index:07}.jsonl").write_text(document(index), encoding="utf-8")
    config = CONFIG | {"engine": engine} | ({"part_bytes": PART_BYTES} if axis == "parts" else {})
    path = folder / "pipeline.yaml"
    path.write_text(yaml.safe_dump(config))
    return Corpus(load_settings(path), path, Store(folder / "store"))


def document(index: int) -> str:
    """Return a line of JSON of PART_BYTES with a text that no other has."""
    words = TALE.split()
    picked = [words[(index * 7 + i * (index % 5 + 1)) % len(words)] for i in range(400)]
    picked[::9] = [f"place{index * 31 + i}" for i in range(len(picked[::9]))]
    sentences = [" ".join(picked[i : i + 12]).capitalize() + "." for i in range(0, 400, 12)]
    text = "\n".join(sentences)[: PART_BYTES - len('{"text": ""}\n') - len(sentences)]
    return json.dumps({"text": text}) + "\n"


def run_measured(corpus: Any, stage: Any, run: Run) -> Run:
    """Run a stage over all of its partitions; return its cost."""
    from resources.materialize.materialization import check_results, publish_partitions
    from resources.source_faults import SourceFaults
    from resources.store.store import typed
    from resources.tasks import GLOBAL

    by_kind = {"source": corpus.settings.source_names(), "phase": corpus.settings.phase_names()}
    forget_peak()
    seconds, cpu_seconds = time.perf_counter(), cpu()
    faults = SourceFaults(stops=True)
    partitions = list(by_kind.get(stage.partitions, [GLOBAL]))
    done = publish_partitions(corpus, stage, partitions, faults)
    faults.raise_unless_survived(len(partitions), is_last_attempt=True)
    checks = check_results(done)
    if stage.conclude is not None:
        for each in done:
            stage.conclude(corpus, typed(each.manifest, stage))
    cpu_seconds, seconds = cpu() - cpu_seconds, time.perf_counter() - seconds
    assert all(check.passed for check in checks), stage.name
    assert run.is_first or all(o.is_reused for each in done for o in each.outcomes), stage.name
    return msgspec.structs.replace(
        run,
        parts=sum(len(each.manifest.parts) for each in done),
        cpu_seconds=cpu_seconds,
        seconds=seconds,
        peak_mb=peak_mb(),
    )


def cpu() -> float:
    """Return the CPU seconds of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def forget_peak() -> None:
    """Begin to measure the peak of the resident memory again."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_mb() -> float:
    """Return the largest resident memory since `forget_peak`, in MB."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1000


def table(runs: Sequence[Run], cost: str) -> Iterator[str]:
    """Yield a Markdown table with a row for every axis and stage; `cost` is a field of a run."""
    unit = "wall ms" if cost == "seconds" else "CPU ms"
    for axis, of_axis in itertools.groupby(runs, lambda run: run.axis):
        lines: dict[str, Line] = {}
        for run in of_axis:
            line = lines.setdefault(run.stage, Line([], []))
            (line.first if run.is_first else line.again).append(run)
        numbers = [run.number for run in next(iter(lines.values())).first]
        head = [f"{number:,}" for number in numbers]
        columns = [f"{kind}, {each}" for kind in ("to do", "done") for each in head]
        title = f"stage, {unit} a {axis.removesuffix('s')}"
        names = [title, *columns, "slope to do", "slope done", "peak MB"]
        yield f"| {' | '.join(names)} |"
        yield "|".join(["", "---", *["---:"] * (len(names) - 1), ""])
        for stage, line in lines.items():
            both = (*line.first, *line.again)
            cells = [f"{1e3 * getattr(run, cost) / run.number:.2f}" for run in both]
            slopes = [slope(line.first, cost), slope(line.again, cost)]
            pairs = zip(line.first, line.again, strict=True)
            peaks = " / ".join(f"{max(pair, key=peak_of).peak_mb:.0f}" for pair in pairs)
            yield f"| {' | '.join([stage, *cells, *slopes, peaks])} |"
        yield ""


def peak_of(run: Run) -> float:
    """Return the peak of a run."""
    return run.peak_mb


def slope(runs: Sequence[Run], cost: str) -> str:
    """Return the exponent of the fit of seconds to a power of the number; of two or more."""
    seconds = {run.number: getattr(run, cost) for run in runs if getattr(run, cost) >= SMALLEST_FIT}
    if len(seconds) < 2:
        return "-"
    numbers, values = np.log([*seconds]), np.log([*seconds.values()])
    return f"{np.polyfit(numbers, values, 1)[0]:.2f}"


if __name__ == "__main__":
    main()
