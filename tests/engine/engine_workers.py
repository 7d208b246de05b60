"""Functions for worker processes: they are imported there by name, so they live in a module."""

import signal
from dataclasses import dataclass

from prelude import Path, os, pl, sys, time

from resources.engine import workers
from resources.engine.fork_server import fork_server
from resources.engine.map_parts import map_parts
from resources.settings.engine import EngineConfig

PROCESSES = EngineConfig(kind="processes", workers=2)


@dataclass(frozen=True)
class Part:
    """A task: `folder` holds what attempts leave behind, `fault` says what goes wrong."""

    title: str
    folder: Path
    fault: str = ""
    work_bytes: int = 1
    partition: str = "web"


def square(part: Part) -> int:
    """The square of the number in the title."""
    return int(part.title.rsplit("-", 1)[-1]) ** 2


def process_of(part: Part) -> tuple[int, int]:
    """(process id, Polars threads) of the process that computes the part."""
    return os.getpid(), pl.thread_pool_size()


def fail(part: Part) -> int:
    """Raise for a part with a fault."""
    if part.fault:
        raise ValueError(part.fault)
    return square(part)


def die(part: Part) -> int:
    """Kill this process: the first time for fault "once", every time for "always"."""
    attempts = len(list(part.folder.glob(f"{part.title}.*")))
    (part.folder / f"{part.title}.{attempts}").touch()
    if part.fault == "always" or (part.fault == "once" and not attempts):
        os.kill(os.getpid(), signal.SIGKILL)
    return square(part)


def meet(part: Part) -> int:
    """Like `die`; a part of fault "meets" ends only when two of them are under way at once."""
    result = die(part)
    if part.fault == "meets":
        (part.folder / f"{part.title}-is-here").touch()
        deadline = time.monotonic() + 20
        while len(list(part.folder.glob("*-is-here"))) < 2:
            if time.monotonic() > deadline:
                raise TimeoutError("no other part came: they are computed one by one")
            time.sleep(0.01)
    return result


def family_of(part: Part) -> tuple[int, int]:
    """(process id, parent's) of the process that computes the part."""
    return os.getpid(), os.getppid()


def compute_in_workers(folder: Path) -> list[tuple[int, int]]:
    """The families of two workers of a step."""
    ended = map_parts(family_of, [Part("part-0", folder), Part("part-1", folder)], PROCESSES)
    return [each.value() for each in ended]


def stay_idle(seconds: float) -> None:
    """Let this worker end after so many seconds without a pass."""
    workers.IDLE_SECONDS = seconds


def wait_for_others(part: Part) -> int:
    """Square; a part with a fault waits until all of the others are done."""
    while part.fault and len(list(part.folder.glob("*.done"))) < int(part.fault):
        time.sleep(0.01)
    if not part.fault:
        (part.folder / f"{part.title}.done").touch()
    return square(part)


def wait_for_ever(part: Part) -> None:
    """Leave the process id behind, then wait."""
    (part.folder / f"{os.getpid()}.pid").touch()
    time.sleep(600)


def wait_for_ever_with_a_fault(part: Part) -> None:
    """Wait if the part has a fault; one without ends when the other is computed."""
    if part.fault:
        wait_for_ever(part)
    while not any(part.folder.glob("*.pid")):
        time.sleep(0.01)


if __name__ == "__main__":  # a run: a server, two workers
    here = Path(sys.argv[1])
    with fork_server(("tests.engine.engine_workers",), {}):
        list(map_parts(wait_for_ever, [Part("part-0", here), Part("part-1", here)], PROCESSES))
