"""Cost of a part: when it ran, its CPU seconds, and the memory of the process; memory there is."""

from __future__ import annotations

import os
import resource
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from corpus_loader.places.traffic import SENT, Traffic, count, this_process


@dataclass(frozen=True)
class Cost:
    """Cost of one part.

    start, end   seconds on the system's monotonic clock, which all processes share
    cpu_seconds  CPU seconds of the process while the part ran, as `CpuMeter` divides them
    peak_bytes   largest resident memory of the process that computed the part, in this pass
    process      the process, by host and number
    traffic      its requests to object stores while the part ran
    """

    start: float
    end: float
    cpu_seconds: float
    peak_bytes: int
    process: str = ""
    traffic: Traffic = field(default_factory=Counter, compare=False)

    @property
    def seconds(self) -> float:
        """Wall seconds."""
        return self.end - self.start


NO_COST = Cost(0.0, 0.0, 0.0, 0)


class Usage(msgspec.Struct):
    """What the parts of a run have used."""

    core_hours: float = 0.0  # whether they worked or waited
    read_bytes: int = 0  # as planned
    written_bytes: int = 0  # published


USED = Usage()  # by the run of this process, or by the step


def add_usage(now: Usage, before: Usage) -> None:
    """Add what a step in another process has used since an earlier moment."""
    USED.core_hours += now.core_hours - before.core_hours
    USED.read_bytes += now.read_bytes - before.read_bytes
    USED.written_bytes += now.written_bytes - before.written_bytes


class CpuMeter:
    """Divides the CPU seconds of this process among the parts that run in it.

    The clock of a part's own thread misses the threads of Polars and numba, which do most of the
    work. So the whole process is measured, and the time between two events is divided evenly among
    the parts that run in it. A worker process runs one part at a time: it gets all of it. Among
    threads the division is an estimate, but the sum over all parts is exact.
    """

    def __init__(self, clock: Callable[[], float] = time.process_time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seconds: dict[int, float] = {}  # of the parts that run
        self._last = 0.0
        self._next = 0

    def begin(self) -> int:
        """Begin a part; return its number."""
        with self._lock:
            self._divide()
            self._next += 1
            self._seconds[self._next] = 0.0
            return self._next

    def end(self, part: int) -> float:
        """End a part; return its CPU seconds."""
        with self._lock:
            self._divide()
            return self._seconds.pop(part)

    def _divide(self) -> None:
        now = self._clock()
        for part in self._seconds:
            self._seconds[part] += (now - self._last) / len(self._seconds)
        self._last = now


METER = CpuMeter()
GROUPS, PROCESS_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def begin_part() -> Callable[[], Cost]:
    """Begin to measure a part; the function that is returned ends it and gives its cost."""
    part, start, before = METER.begin(), time.monotonic(), Counter(SENT)

    def end_part() -> Cost:
        end, cpu_seconds = time.monotonic(), METER.end(part)
        return Cost(start, end, cpu_seconds, peak_bytes(), this_process(), SENT - before)

    return end_part


def add_traffic(cost: Cost) -> None:
    """Count the requests of a part that another process computed with those of this one."""
    if cost.process != this_process():
        for (url, kind), number in cost.traffic.items():
            count(url, kind, number)


def peak_bytes() -> int:
    """Return the largest resident memory of this process since it began, or `reset_peak`."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def reset_peak() -> None:
    """Forget how much memory this process had before (man 5 proc, `clear_refs`)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def memory_bytes() -> int:
    """Return the memory of this machine, or of the container if it may use less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = cgroup_values("memory", ("memory.max",), ("memory.limit_in_bytes",))
    return min([total, *(int(limit) for [limit] in limits if limit.isdigit())])


def cpu_limit() -> float | None:
    """Return the cores whose time the container, or a group above it, may use; None: all."""
    v1 = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
    times = cgroup_values("cpu", ("cpu.max",), v1)
    shares = (int(quota) / int(period) for quota, period in times if quota.isdigit())
    return min(shares, default=None)


def cgroup_values(controller: str, v2: tuple[str, ...], v1: tuple[str, ...]) -> Iterator[list[str]]:
    """Yield the words in files of this process's control group, and of each that it is in.

    Both versions of control groups are known (man 7 cgroups). In a container the path may be that
    of its host, and only the root is there.
    """
    lines = PROCESS_GROUPS.read_text().splitlines() if PROCESS_GROUPS.exists() else []
    for _, controllers, path in (line.split(":", 2) for line in lines):
        if controllers and controller not in controllers.split(","):
            continue
        root, names = (GROUPS / controller, v1) if controllers else (GROUPS, v2)
        group = root / path.lstrip("/")
        for place in (group, *group.parents):
            with suppress(OSError):
                if place.is_relative_to(root):
                    yield " ".join((place / name).read_text() for name in names).split()


def add_wall_seconds(costs: list[Cost]) -> float:
    """Return the wall seconds in which at least one of the parts ran.

    Parts that run side by side count once, and pauses not at all: it never exceeds the time from
    the first start to the last end.
    """
    seconds, reached = 0.0, float("-inf")
    for cost in sorted(costs, key=lambda cost: cost.start):
        seconds += max(0.0, cost.end - max(cost.start, reached))
        reached = max(reached, cost.end)
    return seconds
