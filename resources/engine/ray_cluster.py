"""The nodes of a Ray cluster, as its driver knows them: which work, answer, or are left out.

An error of the machine (a full disk, another version of the code) is tried again on another node.
If it follows its part there, it is the part's. If two parts fail so on a node and on no other, the
node is left out until the run ends. A part whose worker uses no CPU while cores are idle is begun
elsewhere as well: what is published is created once, and the bytes are the same, so the first of
two counts.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from resources.engine.run_task import PartError, PartTask
from resources.settings.engine import EngineConfig

# The worker of `filtered`, the largest, took 475 MB for parts of 3 MB and 585 MB for 19 MB.
BYTES_PER_WORK_BYTE = 8
MEMORY_STEP = 128 << 20  # tasks of equal demands share workers
LOOK_SECONDS = 1.0
SILENT_SECONDS = 15.0  # of the head; after 60 Ray ends the driver
NOTICE_SECONDS = 60.0
STALL_SECONDS = 30.0
STALL_CPU_SECONDS = 0.01 * STALL_SECONDS  # Ray's own threads in an idle worker take a third of it
AHEAD_SECONDS = 0.25  # of work that is submitted beyond what runs
BACKLOG = 256  # parts that wait where no core is: an autoscaler starts nodes for as many
FAULTS_OF_NODE = 2  # parts that fail on a node only, and so leave it out


@dataclass(frozen=True)
class Attempt:
    """A part that is under way, the memory that it asks for, and the nodes that it avoids."""

    index: int
    task: PartTask
    demand: int
    avoided: frozenset[str] = frozenset()
    begun: float = field(default_factory=time.monotonic)


def cpu_seconds_here() -> dict[str, float]:
    """Return the CPU seconds of each worker of this node, by the title of its part."""
    found, tick = {}, os.sysconf("SC_CLK_TCK")
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            process = path.read_bytes().decode(errors="replace").partition("\0")[0]
            if process.startswith("ray::"):  # then the name of the task
                fields = (path.parent / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == os.getppid():  # nodes may see each other's processes
                    cpu = int(fields[11]) + int(fields[12])
                    found[process.removeprefix("ray::")] = cpu / tick
    return found


class Cluster:
    """The cluster as it was a second ago, and what the driver has learned of its nodes."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self.seconds = 1.0  # of a task, about the mean of the last ones
        self.moved = time.monotonic()  # when a task ended, or waiting was told
        self.too_large: PartTask | None = None  # the first that asks for more than any node has
        self.news: list[str] = []
        self.failed: defaultdict[str, set[str]] = defaultdict(set)  # titles of parts, by node
        self.left_out: set[str] = set()
        self.begun_twice: set[int] = set()
        self.cores, self.grown = 0, 0.0  # cores that work, and when there were last more of them
        self.asked = 0.0  # when nodes were asked for the CPU seconds of their parts
        self.answers: dict[Any, str] = {}  # that are awaited: their nodes
        self.found: dict[str, tuple[str, float]] = {}  # node and CPU seconds of parts, by title
        self.before: dict[str, tuple[str, float]] = {}  # as it was when the nodes were asked before
        self.ask_head()

    def ask_head(self) -> None:
        """Ask the head for the nodes."""
        import ray

        self.nodes = {node["NodeID"]: node for node in ray.nodes()}
        self.answered = time.monotonic()
        self.count()

    def count(self) -> None:
        """Count the cores of the nodes that work."""
        self.lost = frozenset(name for name, node in self.nodes.items() if not node["Alive"])
        resources = {
            name: node["Resources"]
            for name, node in self.nodes.items()
            if node["Resources"].get("CPU", 0) >= 1 and name not in self.left_out | self.lost
        }
        self.working = {*resources}
        cores = sum(int(each["CPU"]) for each in resources.values())
        self.grown = time.monotonic() if cores > self.cores else self.grown
        self.cores = cores
        memory = [int(each.get("memory", 0)) for each in resources.values()]
        self.largest_bytes, self.all_bytes = max(memory, default=0), sum(memory)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Ask the head every second meanwhile; end this process if it does not answer.

        In threads, since a call of a head that stands still returns after minutes, if at all: the
        driver's own as well.
        """
        self.answered, over = time.monotonic(), threading.Event()
        for watch in (self.watch, self.end_without_head):
            threading.Thread(target=watch, args=(over,), daemon=True).start()
        try:
            yield
        finally:
            over.set()

    def watch(self, over: threading.Event) -> None:
        """Ask the head every second."""
        while not over.wait(LOOK_SECONDS):
            with suppress(Exception):
                self.ask_head()

    def end_without_head(self, over: threading.Event) -> None:
        """End this process, and so its tasks, if the head does not answer; the step tells it."""
        while not over.wait(LOOK_SECONDS):
            if time.monotonic() - self.answered > SILENT_SECONDS:
                os._exit(1)

    def node_at(self, address: str) -> str:
        """Return the node at an address, "" if there is none."""
        named = (name for name, node in self.nodes.items() if node["NodeManagerAddress"] == address)
        return next(named, "")

    def of_node(self, name: str) -> str:
        """Return a clause that names a node, for messages; "" if it is not known."""
        node = self.nodes.get(name)
        return f" on {node['NodeManagerHostname']} ({node['NodeManagerAddress']})" if node else ""

    def width(self) -> int:
        """Return how many tasks may be under way: a few more than there are cores.

        Of tasks of milliseconds, as many more as the cluster computes in a quarter of a second: the
        way to a node takes longer than the task.
        """
        ahead = self.cores * min(AHEAD_SECONDS / max(self.seconds, 1e-3), 100.0)
        waiting = max(4, int(ahead)) if self.cores else BACKLOG
        return min(self.config.workers or sys.maxsize, self.cores + waiting)

    def demand(self, task: PartTask) -> int:
        """Return the memory that a task asks its node for: at most all of the largest node."""
        needed = self.config.ray.task_bytes + BYTES_PER_WORK_BYTE * task.work_bytes
        rounded = -(-needed // MEMORY_STEP) * MEMORY_STEP
        if not 0 < self.largest_bytes < rounded:
            return rounded
        if self.too_large is None:
            self.too_large = task
            self.news.append(
                f"{task.title} may take more memory than the largest node has "
                f"({self.largest_bytes / 1e9:.1f} GB): it asks for all of that. If its worker "
                "dies, lower `part_bytes`, or add a larger node."
            )
        return self.largest_bytes

    def options(self, attempt: Attempt) -> dict[str, Any]:
        """Return what Ray is asked for: the title is that of the worker's process, too."""
        avoided = ", ".join(sorted(attempt.avoided | self.left_out))
        return {
            "num_cpus": 1,
            "memory": attempt.demand,
            "max_retries": self.config.retries,
            "name": attempt.task.title,
            "label_selector": {"ray.io/node-id": f"!in({avoided})"} if avoided else None,
        }

    def elsewhere(self, attempt: Attempt, error: PartError, node: str) -> Attempt | None:
        """Return another attempt at a part that a node failed, None if there is no use in one."""
        title = attempt.task.title
        if attempt.avoided or not node or not self.working - {node}:  # the part's, or everyone's
            for name, titles in self.failed.items():
                titles.discard(title)
                if len(titles) < FAULTS_OF_NODE:
                    self.left_out.discard(name)
            self.count()
            return None
        self.failed[node].add(title)
        reason = f"{error}. {error.explanation.fact}" if error.explanation else str(error)
        if len(self.failed[node]) == 1:
            self.news.append(f"A part failed{self.of_node(node)}; another node tries it. {reason}")
        elif len(self.failed[node]) >= FAULTS_OF_NODE and node in self.working:
            self.left_out.add(node)
            self.count()
            self.news.append(
                f"The node{self.of_node(node)} is left out: {FAULTS_OF_NODE} parts failed there, "
                f"which others try now. {reason}"
            )
        return replace(attempt, avoided=frozenset({node}), begun=time.monotonic())

    def stuck(self, running: Sequence[Attempt]) -> Iterator[Attempt]:
        """Yield attempts at parts that make no progress, on other nodes, while cores are idle."""
        import ray
        from ray.exceptions import RayError

        now = time.monotonic()
        oldest = min((attempt.begun for attempt in running), default=now)
        is_due = now - max(self.asked, oldest) > STALL_SECONDS
        awaited = [*self.answers]
        for answer in ray.wait(awaited, num_returns=len(awaited), timeout=0)[0] if awaited else ():
            node = self.answers.pop(answer)
            with suppress(RayError):
                self.found |= {title: (node, cpu) for title, cpu in ray.get(answer).items()}
        if awaited and (is_due or self.working.isdisjoint(self.answers.values())):
            silent, self.answers = {*self.answers.values()}, {}
            yield from self.begun_elsewhere(running, silent)
        if is_due:
            self.asked, self.before, self.found = now, self.found, {}
            self.answers = {self.ask_node(node): node for node in self.working}

    def ask_node(self, node: str) -> Any:
        """Ask a node for the CPU seconds of its parts."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        there = NodeAffinitySchedulingStrategy(node, soft=False)
        ask = ray.remote(cpu_seconds_here).options(num_cpus=0, scheduling_strategy=there)
        return ask.remote()

    def has_halted(self, attempt: Attempt) -> bool:
        """Return whether a part has used no CPU since its node was asked before, or none has it.

        Ray gives up a cut connection after seven minutes. Its keepalive may not be sooner: servers
        end a connection, and with it a part, for "too many pings" after one and a half.
        """
        node, cpu = self.found.get(attempt.task.title, ("", 0.0))
        if not node:
            # Not those that wait for the cores of a node that has just joined.
            return self.asked - max(attempt.begun, self.grown) > STALL_SECONDS / 2
        was_on, before = self.before.get(attempt.task.title, ("", 0.0))
        return was_on == node and cpu - before < STALL_CPU_SECONDS

    def begun_elsewhere(self, running: Sequence[Attempt], silent: Set[str]) -> Iterator[Attempt]:
        """Yield second attempts at halted parts, on nodes that answer and have not halted them."""
        halted = [
            attempt
            for attempt in running
            if attempt.index not in self.begun_twice and self.has_halted(attempt)
        ]
        busy = {
            attempt.index: attempt.demand
            for attempt in running
            if attempt not in halted and attempt.task.title in self.found
        }
        free_cores, free_bytes = self.cores - len(busy), self.all_bytes - sum(busy.values())
        for attempt in halted:
            free_cores, free_bytes = free_cores - 1, free_bytes - attempt.demand
            if min(free_cores, free_bytes) < 0:  # the others wait for these
                return
            title, seen = attempt.task.title, (self.found, self.before)
            places = {answers[title][0] for answers in seen if title in answers} or silent
            avoided = attempt.avoided | silent | places
            if self.working - avoided:
                self.begun_twice.add(attempt.index)
                self.news.append(
                    f"{title} makes no progress{' or'.join(map(self.of_node, sorted(places)))}: it "
                    "is begun on another node as well."
                )
                yield replace(attempt, avoided=avoided, begun=time.monotonic())

    def notices(self, running: Sequence[Attempt], *, has_moved: bool) -> Iterator[str]:
        """Yield what the user should know."""
        yield from self.news
        self.news.clear()
        now = time.monotonic()
        if has_moved or now - self.moved > NOTICE_SECONDS:
            self.moved = now
            if not has_moved and not self.cores:
                yield f"{len(running):,} parts wait: the cluster has no node with a core."
            elif not has_moved:
                yield from self.waiting(running)

    def waiting(self, running: Sequence[Attempt]) -> Iterator[str]:
        """Yield a line on each task that no node can take, since one has left."""
        for attempt in running:
            if attempt.demand > self.largest_bytes:
                yield (
                    f"{attempt.task.title} waits for a node with {attempt.demand / 1e9:.1f} GB of "
                    f"memory: the largest has {self.largest_bytes / 1e9:.1f}. Add one, or lower "
                    "`part_bytes`."
                )
            elif self.working <= attempt.avoided:
                yield f"{attempt.task.title} waits for a node other than that on which it failed."
