"""The driver of a Ray cluster: it submits parts as plain tasks, and passes on their receipts.

A part is a task with one core, and memory by what it reads. Where a worker or a node is lost, Ray
runs its parts again elsewhere. More tasks than the cluster has cores are submitted only to hide the
way to the nodes, so that large parts begin first, and nodes that join late get work at once.
"""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from resources.engine.cost import NO_COST, Cost
from resources.engine.fork_server import end_with_parent, use_environment
from resources.engine.run_task import Ended, PartError, PartTask, run_task, use_threads
from resources.engine.system_errors import CONTINUES, SystemFault
from resources.settings.engine import EngineConfig
from resources.settings.plug_ins import all_identities
from resources.store.disk import add_files

# The worker of `filtered`, the largest, took 475 MB for parts of 3 MB and 585 MB for 19 MB.
BYTES_PER_WORK_BYTE = 8
MEMORY_STEP = 128 << 20  # tasks of equal demands share workers
OBJECT_STORE_BYTES = 80 << 20  # receipts only; Ray takes no less
LOOK_SECONDS = 1.0
SILENT_SECONDS = 20.0  # of the head; after 60 Ray ends the driver
NOTICE_SECONDS = 60.0
AHEAD_SECONDS = 0.25  # of work that is submitted beyond what runs
RECENT = 16  # tasks whose mean time counts
CODE = Path(__file__).parents[2]
PACKAGES = ("assets", "corpus_loader", "pipeline_defs", "resources")
SAME_BYTES = ("numba", "numpy", "polars", "pyarrow", "tokenizers")  # what the output depends on

Message = Ended[Any] | SystemFault | str | None  # None: connected, or all tasks have ended


def drive(pipe: Connection, config: EngineConfig, environment: Mapping[str, str]) -> None:
    """Connect to the cluster of a config, then submit the tasks that come through a pipe."""
    use_environment(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the step ends its driver
    end_with_parent()
    with suppress(EOFError, BrokenPipeError):  # the step has ended
        try:
            connect(config)
            pipe.send(None)
            while True:
                function, tasks, config = pipe.recv()
                for message in submit(function, tasks, config):
                    pipe.send(message)
                pipe.send(None)
        except SystemFault as fault:
            pipe.send(fault)
            return
    import ray

    ray.shutdown()  # or the cluster would take this process for lost


def connect(config: EngineConfig) -> None:
    """Connect this process to the cluster of a config, or start one that ends with it."""
    try:
        import ray
    except ImportError as error:
        raise SystemFault(
            f"engine.kind: ray needs the package ray ({error}). "
            "Install it: pip install 'tokenmill[ray]'"
        ) from None
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reports them to its makers
    os.environ.setdefault("RAY_task_oom_retries", str(config.retries))  # it retries for ever
    os.environ.setdefault("RAY_worker_niceness", "0")  # 15: 3 % of a core that others use
    # Notes on its tasks, for `ray list tasks`: 4 KB a task, and a seventh of the rate.
    os.environ.setdefault("RAY_task_events_report_interval_ms", "0")
    local = {
        "num_cpus": config.num_workers(),
        "object_store_memory": OBJECT_STORE_BYTES,
        "include_dashboard": False,
        "_node_ip_address": "127.0.0.1",
    }
    with tempfile.TemporaryDirectory(prefix="tokenmill-code-") as folder:
        sent = {"working_dir": zipped_code(Path(folder))} if config.ray.code == "sent" else None
        try:
            ray.init(
                address=config.ray.address or "local",
                runtime_env=sent,
                logging_level="error",
                log_to_driver=False,
                **({} if config.ray.address else local),
            )
        except (Exception, SystemExit) as error:
            raise SystemFault(
                f"engine.ray.address: {config.ray.address} refuses the connection: "
                f"{type(error).__name__}: {error}. See `ray status` there, {CONTINUES}"
            ) from error


def files_of_code(pattern: str) -> Iterator[Path]:
    """Yield the files of this package, relative to the folder that it is imported from."""
    for name in PACKAGES:
        for path in sorted((CODE / name).rglob(pattern)):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(CODE)


def zipped_code(folder: Path) -> str:
    """Write the code to a file in a folder and return its path.

    As a working folder it is the first that workers import from. Modules that are sent as such
    come after the driver's own folder, where a node may have another version.
    """
    path = folder / "code.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name in files_of_code("*"):
            file.writestr(zipfile.ZipInfo(str(name)), (CODE / name).read_bytes())
    return str(path)


def submit(
    function: Callable[[Any], Any], tasks: Sequence[PartTask], config: EngineConfig
) -> Iterator[Ended[Any] | str]:
    """Yield each task as it ends, and notices of tasks that wait for the cluster."""
    import ray

    cluster, code = Cluster(config), code_digest()
    options = {"num_cpus": 1, "max_retries": config.retries}
    remote = cache(lambda demand: ray.remote(run_on_node).options(memory=demand, **options))
    waiting = iter(enumerate(tasks))
    running: dict[Any, tuple[int, PartTask, int]] = {}
    while True:
        while len(running) < cluster.width() and (item := next(waiting, None)) is not None:
            index, task = item
            demand = cluster.demand(task)
            receipt = remote(demand).remote(function, index, task, code)
            running[receipt] = (index, task, demand)
        if not running:
            return
        done, rest = ray.wait([*running], timeout=LOOK_SECONDS)
        if done and rest:
            done += ray.wait(rest, num_returns=len(rest), timeout=0)[0]
        for receipt in done:
            index, task, _ = running.pop(receipt)
            ended = ended_of(receipt, index, task)
            cluster.seconds += (ended.cost.seconds - cluster.seconds) / RECENT
            yield ended
        yield from cluster.notices([*running.values()], has_moved=bool(done))


def run_on_node(
    function: Callable[[Any], Any], index: int, task: PartTask, code: str
) -> Ended[Any]:
    """Run one task in a worker of a node, if its code is the driver's."""
    if code != code_digest():
        raise RuntimeError(
            f"{socket.gethostname()} has another version of this package, or of "
            f"{', '.join(SAME_BYTES)} or a plug-in, in {CODE}: its output could differ"
        )
    prepare_worker()
    return run_task(function, index, task)


@cache
def prepare_worker() -> None:
    """Set up this worker, once."""
    use_threads(1)


@cache
def code_digest() -> str:
    """Return a digest of all that the bytes of the output depend on, except config and input."""
    versions = [sys.version.split()[0], *map(version, SAME_BYTES), *all_identities()]
    digest = hashlib.sha256(" ".join(versions).encode())
    add_files(digest, CODE, (CODE / name for name in files_of_code("*.py")))
    return digest.hexdigest()


def ended_of(receipt: Any, index: int, task: PartTask) -> Ended[Any]:
    """Return how a task ended: as it says itself, or lost with its worker or node.

    Raises SystemFault if workers cannot run any task.
    """
    import ray
    from ray.exceptions import RayError, RayTaskError, RuntimeEnvSetupError

    try:
        ended: Ended[Any] = ray.get(receipt)
    except (RayTaskError, RuntimeEnvSetupError) as error:
        cause = first_line(getattr(error, "cause", None) or error)
        raise SystemFault(
            f"{task.title}: a worker cannot run it: {cause}. Every node needs this package and its "
            f"dependencies, or its dependencies only with `engine.ray.code: sent`: {CONTINUES}"
        ) from None
    except RayError as error:
        fault = PartError(
            f"{task.title}: its worker or its node was lost at every attempt "
            f"({type(error).__name__}: {first_line(error)}). Lower `part_bytes`, or raise "
            "`engine.ray.task_bytes` or `engine.retries`, then run again: finished parts are kept."
        )
        return Ended(index, None, fault, NO_COST)
    return replace(ended, cost=on_this_clock(ended.cost))


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message: Ray's are long."""
    return str(error).strip().split("\n", 1)[0]


def on_this_clock(cost: Cost) -> Cost:
    """Move a cost to this machine's monotonic clock: the part has ended just now."""
    now = time.monotonic()
    return replace(cost, start=now - cost.seconds, end=now)


@dataclass
class Cluster:
    """The cluster as it was a second ago: its cores, its largest node, and whether it answers."""

    config: EngineConfig
    cores: int = 0
    largest_bytes: int = 0
    head: tuple[str, int] | None = None
    looked: float = 0.0
    answered: float = 0.0
    seconds: float = 1.0  # of a task, about the mean of the last ones
    moved: float = field(default_factory=time.monotonic)  # when a task ended, or waiting was told
    too_large: PartTask | None = None  # the first task that asks for more than any node has
    has_told: bool = False

    def __post_init__(self) -> None:
        import ray

        host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
        self.head = (host, int(port))
        if not self.head_answers():  # the Ray Client speaks with the head's own address
            self.head = None
        self.look()

    def head_answers(self) -> bool:
        """Return whether the head takes a connection."""
        try:
            socket.create_connection(self.head, timeout=2.0).close()  # type: ignore[arg-type]
        except OSError:
            return False
        return True

    def look(self) -> None:
        """Look at the nodes, unless that was done a second ago.

        Raises SystemFault if the head is gone; to ask Ray would then take a minute, and end this
        process.
        """
        import ray

        now = time.monotonic()
        if now - self.looked < LOOK_SECONDS:
            return
        self.looked = now
        if self.head is not None and not self.head_answers():
            if now - self.answered > SILENT_SECONDS:
                raise SystemFault(
                    f"The head of the Ray cluster at {self.head[0]}:{self.head[1]} has not "
                    f"answered for {SILENT_SECONDS:g} s. Start the cluster again, {CONTINUES}"
                )
            return
        self.answered = now
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        working = [node for node in nodes if node.get("CPU", 0) >= 1]
        self.cores = sum(int(node["CPU"]) for node in working)
        self.largest_bytes = max((int(node.get("memory", 0)) for node in working), default=0)

    def width(self) -> int:
        """Return how many tasks may be under way: a few more than there are cores.

        Of tasks of milliseconds, as many more as the cluster computes in a quarter of a second: the
        way to a node takes longer than the task.
        """
        ahead = self.cores * min(AHEAD_SECONDS / max(self.seconds, 1e-3), 100.0)
        return min(self.config.workers or sys.maxsize, self.cores + max(4, int(ahead)))

    def demand(self, task: PartTask) -> int:
        """Return the memory that a task asks its node for: at most all of the largest node."""
        needed = self.config.ray.task_bytes + BYTES_PER_WORK_BYTE * task.work_bytes
        rounded = -(-needed // MEMORY_STEP) * MEMORY_STEP
        if not 0 < self.largest_bytes < rounded:
            return rounded
        self.too_large = self.too_large or task
        return self.largest_bytes

    def notices(
        self, running: Sequence[tuple[int, PartTask, int]], *, has_moved: bool
    ) -> Iterator[str]:
        """Look at the cluster; yield what its user should know: once, or once a minute."""
        self.look()
        if self.too_large is not None and not self.has_told:
            self.has_told = True
            yield (
                f"{self.too_large.title} may take more memory than the largest node has "
                f"({self.largest_bytes / 1e9:.1f} GB): it asks for all of that. If its worker "
                "dies, lower `part_bytes`, or add a larger node."
            )
        now = time.monotonic()
        if has_moved or now - self.moved > NOTICE_SECONDS:
            self.moved = now
            if not has_moved and not self.cores:
                yield f"{len(running):,} parts wait: the cluster has no node with a core."
            elif not has_moved:
                yield from self.waiting_for_memory(running)

    def waiting_for_memory(self, running: Sequence[tuple[int, PartTask, int]]) -> Iterator[str]:
        """Yield a line on each task that no node can take, since a larger one has left."""
        for _, task, demand in running:
            if demand > self.largest_bytes:
                yield (
                    f"{task.title} waits for a node with {demand / 1e9:.1f} GB of memory: the "
                    f"largest has {self.largest_bytes / 1e9:.1f}. Add one, or lower `part_bytes`."
                )
