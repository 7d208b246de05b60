"""Functions for workers of a Ray cluster, which import them by name."""

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

import resources
from tests.engine.engine_workers import Part, square

DEADLINE_SECONDS = 180


def node_of_worker() -> str:
    """The address of the node that this worker belongs to."""
    import ray

    return str(ray.util.get_node_ip_address())


def note(part: Part) -> str:
    """Leave a file that tells of an attempt: the part, its node and its process."""
    name = f"{part.title}@{node_of_worker()}@{os.getpid()}"
    (part.folder / name).touch()
    return name


def notes(folder: Path) -> list[list[str]]:
    """(part, node, process) of all attempts that have begun."""
    return [path.name.split("@") for path in sorted(folder.iterdir()) if "@" in path.name]


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError("it did not happen")
        time.sleep(0.05)


def hold_first_attempt(part: Part) -> int:
    """Never end the first attempt at a part with a fault: its node, or its driver, is killed."""
    is_first = not any(title == part.title for title, _, _ in notes(part.folder))
    note(part)
    if part.fault and is_first:
        wait_until(lambda: False)
    return square(part)


def hold_until_drained(part: Part) -> int:
    """End a part with a fault when a node has got its notice."""
    note(part)
    if part.fault:
        wait_until((part.folder / "drained").exists)
    return square(part)


def wait_for_two_nodes(part: Part) -> int:
    """End when two nodes have begun parts."""
    note(part)
    wait_until(lambda: len({node for _, node, _ in notes(part.folder)}) == 2)
    return square(part)


def wait_for_nodes(part: Part) -> str:
    """End when as many nodes as the fault says have begun parts, which may have one address."""
    import ray

    node = str(ray.get_runtime_context().get_node_id())
    (part.folder / node).touch()
    wait_until(lambda: len([*part.folder.iterdir()]) == int(part.fault))
    return node


def crawl_on_first_node(part: Part) -> int:
    """End once all but a few parts are done, if this is the slow node: that of the first part."""
    if part.title.endswith("-0"):
        note(part)
        others = int(part.fault)
        wait_until(lambda: len(list(part.folder.glob("done-*"))) >= others)
    (part.folder / f"done-{part.title}").touch()
    return square(part)


def code_of_worker(_part: Part) -> str:
    """The folder that the worker has imported this package from."""
    return str(Path(str(resources.__file__)).parents[1])


def refuse_on_a_node(part: Part) -> int:
    """Fail as the part's fault says, on the node that it names; on all nodes for "all"."""
    kind, _, node = part.fault.partition("@")
    note(part)
    time.sleep(0.3)  # so that all nodes get some
    if kind and node in ("all", node_of_worker()):
        raise MACHINE_FAULTS[kind]
    return square(part)


MACHINE_FAULTS: dict[str, Exception] = {
    "full": OSError(errno.ENOSPC, "No space left on device"),
    "skew": PermissionError("RequestTimeTooSkewed"),  # a server's word, not the system's
    "package": ModuleNotFoundError("No module named 'kaldi'"),
}
