"""Get ready for a night's work while `corpus build` imports Dagster, on a core that is idle.

A process plans all stages: with nothing or much to compute that is all it does. For little it loads
kernels, tables and the tokenizer, in 1 s of CPU, and computes the parts (ready_process.py).
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from importlib import import_module
from typing import Any

from pipeline_defs.compile_kernels import kernel_packages
from pipeline_defs.lasting_imports import lasting_imports
from pipeline_defs.pending_work import Amount, pending_work
from resources.corpus import Corpus
from resources.engine.ready_process import ready_process
from resources.stage import Stage
from resources.store.scratch import scratch_of


def early_kernels(
    corpus: Corpus, stages: Sequence[Stage[Any, Any]]
) -> AbstractContextManager[None]:
    """Hold a process for some stages, in the flow's order, if steps may be in the run's process."""
    if corpus.settings.engine.steps != "auto" or scratch_of(corpus.store.root) is not None:
        return nullcontext()
    return ready_process(partial(get_ready, corpus, stages))


def get_ready(corpus: Corpus, stages: Sequence[Stage[Any, Any]]) -> Iterator[Amount | None]:
    """Find out how much there is to compute, then load what little work needs, a step at a time.

    An error is shown and left to the tasks, which meet it again and report it as theirs.
    """
    amount = pending_work(corpus, [stage.name for stage in stages])
    yield amount
    if amount != "little":
        return
    try:
        with lasting_imports():
            yield from load(corpus, stages)
    except Exception:  # noqa: BLE001 - whatever it is
        traceback.print_exc()


def load(corpus: Corpus, stages: Sequence[Stage[Any, Any]]) -> Iterator[None]:
    """Load what the tasks of some stages need."""
    from resources.kernel_cache import load_compiled  # numba: a run with nothing new has none

    for stage in stages:
        for module in stage.preload:
            import_module(module)
        for call in stage.warm_up(corpus) if stage.warm_up else ():
            call()
            yield
        if stage.get_ready:
            stage.get_ready(corpus)
            yield
    for package in kernel_packages(stages):  # last: most are loaded by those calls
        for _ in load_compiled(package):
            yield
