"""The driver of a Ray cluster: it submits parts as plain tasks, and passes on their receipts.

A part is a task with one core, and memory by what it reads. Where a worker or a node is lost, Ray
runs its parts again elsewhere. More tasks than the cluster has cores are submitted only to hide the
way to the nodes, so that large parts begin first, and nodes that join late get work at once.
"""

from __future__ import annotations

import hashlib
import os
import re
import signal
import socket
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from resources.engine.cost import NO_COST, Cost
from resources.engine.fork_server import end_with_parent, use_environment
from resources.engine.ray_cluster import LOOK_SECONDS, Attempt, Cluster
from resources.engine.run_task import Ended, NodeFault, PartError, PartTask, run_task, use_threads
from resources.engine.system_errors import CONTINUES, SystemFault
from resources.settings.engine import EngineConfig
from resources.settings.plug_ins import all_identities
from resources.store.disk import add_files

OBJECT_STORE_BYTES = 80 << 20  # receipts only; Ray takes no less
CLOCK_SECONDS = 300.0  # object stores refuse requests that are 900 s off
RECENT = 16  # tasks whose mean time counts
PLACE = re.compile(r"\(pid=\d+, ip=([^,)]+)")  # in Ray's errors
CODE = Path(__file__).parents[2]
PACKAGES = ("assets", "corpus_loader", "pipeline_defs", "resources", "tokenmill")
SAME_BYTES = ("numba", "numpy", "polars", "pyarrow", "tokenizers")  # what the output depends on

Message = Ended[Any] | SystemFault | str | None  # None: connected, or all tasks have ended


class WorkerFault(NodeFault):
    """A part that no worker of a node can begin, as any other part."""


def drive(pipe: Connection, config: EngineConfig, environment: Mapping[str, str]) -> None:
    """Connect to the cluster of a config, then submit the tasks that come through a pipe."""
    use_environment(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the step ends its driver
    end_with_parent()
    with suppress(EOFError, BrokenPipeError):  # the step has ended
        try:
            connect(config)
            cluster = Cluster(config)
            pipe.send(None)
            while True:
                function, tasks, cluster.config = pipe.recv()
                with cluster.watched():
                    for message in submit(function, tasks, cluster):
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
    os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")  # at the end, by the thread that watches
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
            cause = str(error)
            if isinstance(error, ConnectionAbortedError):  # of ray://: a traceback of the head's
                cause = cause.strip().rpartition("\n")[2]
            raise SystemFault(
                f"engine.ray.address: {config.ray.address} refuses the connection: "
                f"{type(error).__name__}: {cause}. See `ray status` there, "
                f"and docs/ray.md, {CONTINUES}"
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
    function: Callable[[Any], Any], tasks: Sequence[PartTask], cluster: Cluster
) -> Iterator[Ended[Any] | str]:
    """Yield each task as it ends, and notices of tasks that wait for the cluster."""
    import ray

    remote, code = ray.remote(run_on_node), code_digest()
    todo = (Attempt(index, task, cluster.demand(task)) for index, task in enumerate(tasks))
    cluster.begun_twice.clear()
    again: list[Attempt] = []
    running: dict[Any, Attempt] = {}
    while True:
        more = [*islice(todo, max(0, cluster.width() - len(running)))]
        for attempt in [*again, *more]:
            options = cluster.options(attempt)
            receipt = remote.options(**options).remote(function, attempt.index, attempt.task, code)
            running[receipt] = attempt
        if not running:
            return
        done, rest = ray.wait([*running], timeout=LOOK_SECONDS)
        if done and rest:
            done += ray.wait(rest, num_returns=len(rest), timeout=0)[0]
        again = []
        for outcome in (end(receipt, running, cluster) for receipt in done if receipt in running):
            if isinstance(outcome, Ended):
                yield outcome
            elif outcome is not None:
                again.append(outcome)
        yield from cluster.notices([*running.values()], has_moved=bool(done))
        if not more:
            again += cluster.stuck([*running.values()])


def end(receipt: Any, running: dict[Any, Attempt], cluster: Cluster) -> Ended[Any] | Attempt | None:
    """Return how a task ended, or the next attempt at it; None if another attempt is under way."""
    import ray

    attempt = running.pop(receipt)
    ended, node = ended_of(receipt, attempt, cluster)
    others = []
    if attempt.index in cluster.begun_twice:
        others = [other for other in running if running[other].index == attempt.index]
    if isinstance(ended.error, NodeFault):
        if others:
            return None
        if (elsewhere := cluster.elsewhere(attempt, ended.error, node)) is not None:
            return elsewhere
        if isinstance(ended.error, WorkerFault):
            raise SystemFault(str(ended.error))
    for other in others:
        del running[other]
        ray.cancel(other, force=True)
    cluster.seconds += (ended.cost.seconds - cluster.seconds) / RECENT
    return ended


def run_on_node(
    function: Callable[[Any], Any], index: int, task: PartTask, code: str
) -> tuple[Ended[Any], str, float]:
    """Run one task in a worker of a node, if its code is the driver's, and give its clock."""
    import ray

    if code != code_digest():
        raise RuntimeError(
            f"{socket.gethostname()} has another version of this package, or of "
            f"{', '.join(SAME_BYTES)} or a plug-in, in {CODE}: its output could differ"
        )
    prepare_worker()
    ended = run_task(function, index, task)
    return ended, ray.get_runtime_context().get_node_id(), time.time()


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


def ended_of(receipt: Any, attempt: Attempt, cluster: Cluster) -> tuple[Ended[Any], str]:
    """Return how a task ended, as it says itself or lost with its worker or node, and its node."""
    import ray
    from ray.exceptions import RayError, RayTaskError, RuntimeEnvSetupError

    title, node = attempt.task.title, ""
    try:
        ended, node, clock = ray.get(receipt)
    except (RayTaskError, RuntimeEnvSetupError) as error:
        place = PLACE.search(str(error))
        node = cluster.node_at(place[1]) if place else ""
        cause = first_line(getattr(error, "cause", None) or error)
        fault: PartError = WorkerFault(
            f"{title}: a worker{cluster.of_node(node)} cannot run it: {cause}. Every node needs "
            "this package and its dependencies, or its dependencies only with "
            f"`engine.ray.code: sent`: {CONTINUES}"
        )
    except RayError as error:
        fault = PartError(
            f"{title}: its worker or its node was lost at every attempt "
            f"({type(error).__name__}: {first_line(error)}). Lower `part_bytes`, or raise "
            "`engine.ray.task_bytes` or `engine.retries`, then run again: finished parts are kept."
        )
    else:
        ended = replace(ended, cost=on_this_clock(ended.cost))
        return with_clock(ended, clock - time.time(), cluster.of_node(node)), node
    return Ended(attempt.index, None, fault, NO_COST), node


def with_clock(ended: Ended[Any], ahead: float, of_node: str) -> Ended[Any]:
    """Blame the clock of a node for an error if it is wrong: servers refuse its requests."""
    error = ended.error
    if error is None or isinstance(error, NodeFault) or abs(ahead) < CLOCK_SECONDS:
        return ended
    fault = NodeFault(
        f"{error}. The clock{of_node} is {abs(ahead):,.0f} s "
        f"{'ahead of' if ahead > 0 else 'behind'} that of the build's machine: set it (NTP), "
        f"{CONTINUES}"
    )
    return replace(ended, error=fault)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message: Ray's are long."""
    return str(error).strip().split("\n", 1)[0]


def on_this_clock(cost: Cost) -> Cost:
    """Move a cost to this machine's monotonic clock: the part has ended just now."""
    now = time.monotonic()
    return replace(cost, start=now - cost.seconds, end=now)
