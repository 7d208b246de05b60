"""Compile the kernels that a corpus needs, in as many processes as there are cores.

numba compiles under one lock per process, for more than a minute of CPU after a fresh checkout.
What one process has compiled is on disk for all others. `python -m pipeline_defs.compile_kernels`
compiles those of all stages of a corpus, as `make test` does before its workers begin.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import re
import signal
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from typing import Any

from assets.stages import BY_NAME, STAGES
from pipeline_defs.load_corpus import load_corpus
from resources.engine.fork_server import end_with_parent
from resources.kernel_cache import (
    compiling_alone,
    fallback_line,
    folder_of,
    kernel_modules,
    num_compiled,
    num_kernels,
)
from resources.settings.pipeline import Settings
from resources.stage import Stage
from resources.store.records import fingerprint_of

SHARED_KERNELS = "assets.text.kernels"
# Garbage is collected after so many calls only. As often as Python would do it takes 8 % more CPU;
# never, 1.7 GB in a process instead of 1.5. After every second call is no better, and takes 5 s.
CALLS_TO_COLLECT = 8
REFRESH_SECONDS = 0.5
# Modules whose kernels are compiled when they are imported, and when a config calls them.
CALLED_IF: dict[str, Callable[[Settings], bool]] = {
    "assets.annotated.kernels.nearest_centres": lambda s: bool(s.topics),
    "assets.annotated.kernels.word_vectors": lambda s: bool(s.topics),
    "assets.deduped.kernels.component_survivors": lambda s: s.dedup.clusters == "components",
    "assets.deduped.kernels.line_units": lambda s: bool(s.dedup.lines or s.dedup.paragraphs),
    "assets.deduped.kernels.word_runs": lambda s: s.dedup.substrings is not None,
    "assets.filtered.kernels.word_features": lambda s: bool(
        s.classifier or s.topics or s.classifying
    ),
}


def compile_kernels(stages: Sequence[Stage[Any, Any]]) -> None:
    """Compile what some stages of the corpus of the environment need, if nothing is yet."""
    if not cold_stages(stages):
        return
    with compiling_alone(SHARED_KERNELS):  # another run may compile the same, and then has
        cold = cold_stages(stages)
        if cold:
            compile_in_processes(cold)
        for package in kernel_packages(BY_NAME[name] for name in cold):
            (folder_of(package) / mark_of(stages)).touch()


def compile_in_processes(cold: tuple[str, ...]) -> None:
    """Compile what some stages need in as many processes as there are cores, and show how far."""
    processes = len(os.sched_getaffinity(0))
    write(
        f"Compiling kernels in {processes} processes (once per machine and version of the code) "
        "...\n"
    )
    if line := fallback_line(SHARED_KERNELS):
        write(f"{line}\n")
    packages = list(kernel_packages(BY_NAME[name] for name in cold))
    context = multiprocessing.get_context("spawn")  # Polars' threads do not survive a fork
    with ProcessPoolExecutor(processes, mp_context=context, initializer=start_worker) as pool:
        try:
            with interrupts_held():
                counted = pool.submit(count_warm_ups, cold)
            num_calls = counted.result()
            with interrupts_held():
                calls = [pool.submit(run_warm_up, cold, number) for number in range(num_calls)]
            show_progress(calls, packages)
        except BaseException:  # a signal: a call may take 10 s more
            for child in multiprocessing.active_children():
                child.kill()
            raise


def show_progress(calls: Sequence[Future[None]], packages: Sequence[str]) -> None:
    """Wait for calls; say on a terminal how many of the kernels are compiled by then."""
    most = sum(num_kernels(package) for package in packages)
    left: set[Future[None]] = set(calls)
    while left:
        done, left = wait(left, REFRESH_SECONDS, FIRST_EXCEPTION)
        for call in done:
            call.result()
        compiled = sum(num_compiled(package) for package in packages)
        if sys.stdout.isatty():
            write(f"\r{compiled} of at most {most} kernels ")
    write(f"{chr(13) * sys.stdout.isatty()}{compiled} kernels are compiled.\n")


def write(text: str) -> None:
    """Write to the terminal; whoever reads the output may have enough of it."""
    with suppress(BrokenPipeError):
        sys.stdout.write(text)
        sys.stdout.flush()


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM back, which Dagster raises as an interrupt, while a pool starts.

    Processes that are started meanwhile do not get them, and print no frames. A pool that was
    interrupted before its thread ran cannot be closed.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def cold_stages(stages: Collection[Stage[Any, Any]]) -> tuple[str, ...]:
    """Return the names of the stages whose kernels are still to be compiled on this machine."""
    named, mark = [(stage.name, kernels_of(stage)) for stage in stages], mark_of(stages)
    return tuple(name for name, package in named if is_there(package) and is_cold(package, mark))


def mark_of(stages: Collection[Stage[Any, Any]]) -> str:
    """Name the file that says that all is compiled which some stages of the corpus call.

    Numbers in the settings, as thresholds are, do not change what is called.
    """
    if len(stages) == len(STAGES):  # of the tests
        return "all"
    settings = load_corpus().settings
    filters = {settings.filters_for(name).model_dump_json() for name in settings.source_names()}
    called = [*sorted(filters), settings.dedup.model_dump_json(), settings.classifier is not None]
    return fingerprint_of(re.sub(r"\d+", "0", str(called)))


def kernels_of(stage: Stage[Any, Any]) -> str:
    """Return the package of the kernels in a stage's folder."""
    return f"{stage.plan.__module__.rpartition('.')[0]}.kernels"


def is_there(package: str) -> bool:
    """Return whether there is such a package: not every stage has kernels."""
    return find_spec(package) is not None


def kernel_packages(stages: Iterable[Stage[Any, Any]]) -> Iterator[str]:
    """Yield the packages of kernels that some stages call."""
    for package in dict.fromkeys((SHARED_KERNELS, *(kernels_of(stage) for stage in stages))):
        if is_there(package):
            yield package


def is_cold(package: str, mark: str) -> bool:
    """Return whether kernels of a package are still to be compiled on this machine."""
    logger = logging.getLogger("tokenmill")
    level = logger.level
    be_quiet()
    try:
        return not (folder_of(package) / mark).exists()
    finally:
        logger.setLevel(level)


def be_quiet() -> None:
    """Leave it to `compile_kernels` to announce the compilation."""
    logging.getLogger("tokenmill").setLevel(logging.ERROR)


def start_worker() -> None:
    """Prepare a process that only compiles."""
    be_quiet()
    end_with_parent()
    gc.disable()


def count_warm_ups(stages: tuple[str, ...]) -> int:
    """Return the number of calls for some stages; to prepare them takes Polars, hence a worker."""
    return len(warm_ups(stages))


def run_warm_up(stages: tuple[str, ...], number: int) -> None:
    """Make one of the calls for some stages."""
    warm_ups(stages)[number]()
    if number % CALLS_TO_COLLECT == 0:
        gc.collect()


@cache
def warm_ups(stages: tuple[str, ...]) -> list[Callable[[], object]]:
    """Return the calls for some stages; the same list in every process.

    The stages' own come first, as they take longest; then a kernel that is written with the types
    of its arguments is compiled when its module is imported, as each run does.
    """
    corpus = load_corpus()
    wanted = [stage for stage in reversed(STAGES) if stage.name in stages]
    calls = [call for stage in wanted if stage.warm_up for call in stage.warm_up(corpus)]
    is_all = len(wanted) == len(STAGES)  # as the tests need
    names = called_modules(wanted, None if is_all else corpus.settings)
    return [*calls, *(partial(import_module, name) for name in names)]


def called_modules(stages: Iterable[Stage[Any, Any]], settings: Settings | None) -> Iterator[str]:
    """Yield the modules of kernels that some stages call under settings, all without settings."""
    for name in chain.from_iterable(map(kernel_modules, kernel_packages(stages))):
        is_called = CALLED_IF.get(name)
        if settings is None or is_called is None or is_called(settings):
            yield name


if __name__ == "__main__":
    compile_kernels(STAGES)
