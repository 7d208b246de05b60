"""Compile the kernels that a corpus needs, in as many processes as there are cores.

numba compiles under one lock per process, for more than a minute of CPU after a fresh checkout.
What one process has compiled is on disk for all others.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib import import_module

from assets.stages import STAGES
from pipeline_defs.load_corpus import load_corpus

PACKAGES = tuple(  # every corpus needs some kernels of these
    f"assets.{name}.kernels" for name in ("text", "filtered", "deduped", "bucketed")
)


def compile_kernels() -> None:
    """Compile what the corpus of the environment needs, if nothing is compiled yet."""
    if not any(is_cold(package) for package in PACKAGES):
        return
    processes = len(os.sched_getaffinity(0))
    sys.stdout.write(
        f"Compiling kernels in {processes} processes (once per machine and version of the code) "
        "...\n"
    )
    sys.stdout.flush()
    context = multiprocessing.get_context("spawn")  # Polars' threads do not survive a fork
    with ProcessPoolExecutor(processes, mp_context=context, initializer=start_worker) as pool:
        list(pool.map(run_warm_up, range(len(warm_ups()))))


def is_cold(package: str) -> bool:
    """Return whether a package of kernels has no compiled ones on this machine."""
    be_quiet()
    return bool(import_module(package).IS_COLD)


def be_quiet() -> None:
    """Leave it to `compile_kernels` to announce the compilation."""
    logging.getLogger("tokenmill").setLevel(logging.ERROR)


def start_worker() -> None:
    """Prepare a process that only compiles: without garbage collection it takes 8 % less CPU."""
    be_quiet()
    gc.disable()


def run_warm_up(number: int) -> None:
    """Make one of the calls."""
    warm_ups()[number]()


@cache
def warm_ups() -> list[Callable[[], object]]:
    """Return the calls of all stages; the same list in every process."""
    corpus = load_corpus()
    calls = [list(stage.warm_up(corpus)) for stage in reversed(STAGES) if stage.warm_up]
    return [call for of_stage in calls for call in of_stage]
