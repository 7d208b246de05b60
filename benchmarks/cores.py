"""A build on this machine, replayed for machines with more cores.

    .venv/bin/python benchmarks/cores.py record CONFIG TRACE.json
    .venv/bin/python benchmarks/cores.py replay TRACE.json [--cores 1 2 4 8 16 32 64 128]

`record` builds a corpus from nothing into a temporary store, as `corpus build` does, and writes
down every pass over parts: when it began and ended, and the CPU seconds of each part. What lies
between two passes is a stretch in which this process plans, commits or starts.

`replay` gives the same parts to more workers, in the order that `map_parts` has. Assumed:

    parts       take their CPU seconds times the slowdown of a machine with so many cores at work
    first part  of a worker in a pass takes longer, by what it took longer here: kernels are loaded
    one task    alone in its pass, and stretches, take the seconds that one core of two worked at
                least; the rest is divided among all cores
    limits      passes that share `dedup.memory_bytes` have at most four workers
    slowdown    CPU seconds of the same build on more cores of the machine of docs/performance.md
                (16 vCPU, hyperthreads of 8 cores): 80, 90, 97, 109, 137 on 1, 2, 4, 8, 16 cores

Disks and memory are taken to be as fast for each core as here. Run it with nothing beside it.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]
MOST_LIMITED = 4  # resources/tasks.py, SIMULTANEOUS
SLOWDOWN = {1: 1.0, 2: 1.125, 4: 1.21, 8: 1.36, 16: 1.71}


@dataclass
class Part:
    """A part that was computed: bytes that it read, CPU seconds, and when it was (wall seconds)."""

    partition: str
    work_bytes: int
    cpu: float
    start: float
    end: float


@dataclass
class Pass:
    """A pass over parts: its stage, the limit of its workers if it has one, and when it was.

    `stretch` and `stretch_cpu` are the wall and CPU seconds of this process from the pass before.
    """

    stage: str
    is_limited: bool
    begin: float
    stretch: float
    stretch_cpu: float
    end: float = 0.0
    parts: list[Part] = field(default_factory=list)


@dataclass
class Trace:
    """The passes of a build, the MB of its text, and the cores and stretch at its end."""

    cores: int
    text_mb: float = 0.0
    passes: list[Pass] = field(default_factory=list)


def main() -> None:
    """Record or replay."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    modes = parser.add_subparsers(dest="mode", required=True)
    recording = modes.add_parser("record")
    recording.add_argument("config", type=Path)
    recording.add_argument("trace", type=Path)
    replaying = modes.add_parser("replay")
    replaying.add_argument("trace", type=Path)
    replaying.add_argument("--cores", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32, 64, 128])
    replaying.add_argument("--stages", type=int, default=16, help="cores of the table of stages")
    args = parser.parse_args()
    if args.mode == "record":
        args.trace.write_text(json.dumps(asdict(record(args.config))))
    else:
        print_replays(read_trace(args.trace), args.cores, args.stages)


def record(config: Path) -> Trace:
    """Build a corpus from nothing in this process, and note every pass."""
    trace = Trace(len(os.sched_getaffinity(0)))
    with tempfile.TemporaryDirectory() as name:
        home = Path(name, "dagster")
        home.mkdir()
        (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
        os.environ |= {
            "TOKENMILL_CONFIG": str(config.absolute()),
            "TOKENMILL_STORE": str(Path(name, "store")),
            "DAGSTER_HOME": str(home),
        }
        clock = Clock()
        from pipeline_defs.commands.main import main as corpus
        from pipeline_defs.corpus_tables import newest_tables
        from pipeline_defs.load_corpus import load_corpus
        from resources import run_tasks

        original = vars(run_tasks)["map_parts"]
        with patch.object(run_tasks, "map_parts", noted(original, trace, clock)):
            if code := corpus(["build"]):
                raise SystemExit(code)
        trace.passes.append(Pass("end", False, time.monotonic(), *clock.lap(), time.monotonic()))
        stages = newest_tables(load_corpus())["stages"]
        trace.text_mb = stages.filter(stage="raw")["bytes"].sum() / 1e6
    return trace


class Clock:
    """Wall and CPU seconds of this process since the last lap."""

    def __init__(self) -> None:
        self.lap()

    def lap(self) -> tuple[float, float]:
        """Return the seconds since the last lap, and begin another."""
        now = time.monotonic(), time.process_time()
        before, self.last = getattr(self, "last", now), now
        return now[0] - before[0], now[1] - before[1]


def noted(
    map_parts: Callable[..., Iterator[Any]], trace: Trace, clock: Clock
) -> Callable[..., Iterator[Any]]:
    """Return `map_parts`, which then notes every pass in a trace."""

    def mapped(function: Any, tasks: Sequence[Any], config: Any) -> Iterator[Any]:
        if not tasks:
            return
        stage = getattr(tasks[0], "stage", function.__name__)
        is_limited = config.workers is not None  # `within_memory`: pipeline.yaml names no number
        one = Pass(stage, is_limited, time.monotonic(), *clock.lap())
        trace.passes.append(one)
        try:
            for ended in map_parts(function, tasks, config):
                task, cost = tasks[ended.index], ended.cost
                costs = (cost.cpu_seconds, cost.start, cost.end)
                one.parts.append(Part(task.partition, task.work_bytes, *costs))
                yield ended
        finally:
            one.end = time.monotonic()
            clock.lap()

    return mapped


def read_trace(path: Path) -> Trace:
    """Read what `record` has written."""
    found = json.loads(path.read_text())
    passes = [
        Pass(**(one | {"parts": [Part(**each) for each in one["parts"]]}))
        for one in found.pop("passes")
    ]
    return Trace(**found, passes=passes)


def slowdown(cores: int) -> float:
    """Return the CPU seconds of a part beside so many others, by those of a part alone."""
    return SLOWDOWN[max(number for number in SLOWDOWN if number <= cores)]


def divided(wall: float, cpu: float, trace: Trace, cores: int) -> float:
    """Return the seconds of a stretch on more cores: what was done by one stays as it is."""
    if trace.cores == 1 or cpu <= wall:
        return wall
    alone = max(0.0, (trace.cores * wall - cpu) / (trace.cores - 1))
    return alone + (cpu - alone) / cores


def replay_pass(one: Pass, trace: Trace, cores: int) -> float:
    """Return the seconds of a pass on more cores."""
    workers = min(cores, MOST_LIMITED) if one.is_limited else cores
    if len(one.parts) == 1:
        part = one.parts[0]
        return divided(part.end - part.start, part.cpu, trace, cores)
    factor = slowdown(min(workers, len(one.parts))) / slowdown(trace.cores)
    parts, first = split_first(one, trace)
    waiting: dict[str, deque[float]] = defaultdict(deque)
    for part, seconds in sorted(parts, key=lambda each: -each[0].work_bytes):
        waiting[part.partition].append(seconds * factor)
    running: list[tuple[float, int, str]] = []
    now, begun, has_worked = 0.0, set[str](), set[int]()
    free = list(range(workers))
    while waiting or running:
        while free and waiting:
            busy = Counter(name for _, _, name in running)
            name = min(waiting, key=lambda each: (busy[each], each not in begun))
            begun.add(name)
            worker, seconds = free.pop(), waiting[name].popleft()
            if not waiting[name]:
                del waiting[name]
            late = 0.0 if worker in has_worked else first
            has_worked.add(worker)
            heapq.heappush(running, (now + seconds + late, worker, name))
        now, worker, _ = heapq.heappop(running)
        free.append(worker)
    return now


def split_first(one: Pass, trace: Trace) -> tuple[list[tuple[Part, float]], float]:
    """Return parts with their CPU seconds without what a worker's first takes longer, and that."""
    by_start = sorted(one.parts, key=lambda part: part.start)
    firsts, others = by_start[: trace.cores], by_start[trace.cores :]
    if not others:
        return [(part, part.cpu) for part in by_start], 0.0
    rate = statistics.median(part.cpu / max(part.work_bytes, 1) for part in others)
    longer = [max(0.0, part.cpu - rate * part.work_bytes) for part in firsts]
    seconds = [part.cpu - more for part, more in zip(firsts, longer, strict=True)]
    rest = [(part, part.cpu) for part in others]
    return [*zip(firsts, seconds, strict=True), *rest], statistics.mean(longer)


def print_replays(trace: Trace, cores: Sequence[int], shown: int) -> None:
    """Print MB/s for each number of cores, and where the time goes on one of them."""
    measured = trace.passes[-1].end - trace.passes[0].begin + trace.passes[0].stretch
    print(f"{trace.text_mb:,.0f} MB on {trace.cores} cores: {measured:.1f} s, measured")
    print("| cores | s | MB/s | s in passes | s between |\n|---:|---:|---:|---:|---:|")
    for number in cores:
        inside = sum(replay_pass(one, trace, number) for one in trace.passes if one.parts)
        between = sum(divided(p.stretch, p.stretch_cpu, trace, number) for p in trace.passes)
        speed = trace.text_mb / (inside + between)
        print(f"| {number} | {inside + between:.1f} | {speed:.1f} | {inside:.1f} | {between:.1f} |")
    print(f"\n| on {shown} cores | parts | s in passes | least | s between |")
    print("|---|---:|---:|---:|---:|")
    for stage in dict.fromkeys(one.stage for one in trace.passes):
        of_stage = [one for one in trace.passes if one.stage == stage]
        number = sum(len(one.parts) for one in of_stage)
        inside = sum(replay_pass(one, trace, shown) for one in of_stage if one.parts)
        factor = slowdown(shown) / slowdown(trace.cores) / shown
        least = sum(part.cpu for one in of_stage for part in one.parts) * factor
        between = sum(divided(p.stretch, p.stretch_cpu, trace, shown) for p in of_stage)
        print(f"| {stage} | {number} | {inside:.1f} | {least:.1f} | {between:.1f} |")


if __name__ == "__main__":
    main()
