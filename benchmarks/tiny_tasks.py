r"""Rate and memory of very many very small tasks on a Ray cluster of this machine.

    unshare -n -p -f --kill-child --mount-proc sh -c 'ip link set lo up; exec "$@"' sh \
        .venv/bin/python benchmarks/tiny_tasks.py [--tasks 100000]

Prints a Markdown table: for each tenth of the tasks its seconds, the longest time in which no task
ended, and the memory of all processes of the namespace at its end (PSS: shared pages once).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
ROWS = 10


@dataclass(frozen=True)
class TinyTask:
    """A number to be squared."""

    number: int
    work_bytes: int = 1
    partition: str = ""

    @property
    def title(self) -> str:
        """Name of the task in messages."""
        return f"task {self.number}"


def square(task: TinyTask) -> int:
    """Return the square."""
    return task.number**2


def memory_mb() -> float:
    """Return the PSS of all processes that this one sees."""
    total = 0
    for process in psutil.process_iter():
        try:
            total += process.memory_full_info().pss
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return total / 1e6


def main() -> None:
    """Map the tasks, and print a line for each tenth of them."""
    from resources.engine.map_parts import map_parts
    from resources.settings.engine import EngineConfig

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=100_000)
    num_tasks = parser.parse_args().tasks
    os.environ["PYTHONPATH"] = os.pathsep.join((str(ROOT), str(ROOT / "benchmarks")))
    import tiny_tasks  # workers import the function by this name

    tasks = [tiny_tasks.TinyTask(number) for number in range(num_tasks)]
    print("| tasks | s | longest pause s | MB |\n|---:|---:|---:|---:|", flush=True)
    total, pause, start = 0, 0.0, time.monotonic()
    begun = last = start
    for done, ended in enumerate(
        map_parts(tiny_tasks.square, tasks, EngineConfig(kind="ray")), start=1
    ):
        total += ended.value()
        now = time.monotonic()
        pause, last = max(pause, now - last), now
        if done % (num_tasks // ROWS) == 0:
            print(f"| {done:,} | {now - begun:.1f} | {pause:.2f} | {memory_mb():.0f} |", flush=True)
            begun, pause, last = now, 0.0, time.monotonic()
    expected = sum(number**2 for number in range(num_tasks))
    if total != expected:
        sys.exit(f"the squares add up to {total:,}, not to {expected:,}")


if __name__ == "__main__":
    main()
