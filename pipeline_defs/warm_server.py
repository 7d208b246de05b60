"""The fork server of a run, with all that its processes import and every kernel that they call.

A worker needs 0.1 s of CPU to start; spawned, it takes 4 s, and 0.6 s more to load the kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from resources.engine.fork_server import fork_server
from resources.engine.workers import end_workers

STAGES_VARIABLE = "TOKENMILL_SERVER_STAGES"
PRELOAD = ("__main__", "pipeline_defs.server_image")


@contextmanager
def warm_server(stages: Iterable[str], *, as_fork: bool = False) -> Iterator[None]:
    """Hold a fork server for some stages, which gets ready when the first process is asked for.

    `as_fork`: this process has imported what steps need, and is not in a run yet.
    """
    environment = {STAGES_VARIABLE: ",".join(stages)}
    with fork_server(PRELOAD, environment, as_fork=as_fork):
        try:
            yield
        finally:
            end_workers()
