"""What the steps of tests/engine/test_step_process.py do, each in a process of its own."""

from multiprocessing.connection import Connection

from prelude import os, time

from corpus_loader.places.traffic import REQUESTS, count
from resources.engine.cost import USED
from resources.engine.fork_server import fork_server
from resources.engine.step_process import in_step
from resources.engine.workers import WorkerPool


def name_worker(line: Connection) -> None:
    """Send the lease of the run, and the process of the worker that the step has."""
    with in_step() as lease, WorkerPool(1, 1) as pool:
        line.send((lease, pool.submit(os.getpid).result()))


def use_and_wait(line: Connection) -> None:
    """Use an hour of a core and a request, then wait for ever."""
    with in_step():
        USED.core_hours += 1.0
        count("s3://bucket", REQUESTS)
        line.send(os.getpid())
        time.sleep(600)


def use_and_end(line: Connection) -> None:
    """Use an hour of a core, and end before the next second."""
    with in_step():
        USED.core_hours += 1.0
        line.send(os.getpid())


def be_a_run(line: Connection) -> None:
    """Send the lease that the process of a run has: Dagster's server starts it as a child."""
    with fork_server((), {}), in_step() as lease:
        line.send(lease)
