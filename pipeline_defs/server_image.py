"""Prepare the fork server of a run, which imports this module last, then serves.

Nothing is computed with Polars here: its threads would not survive the fork.
"""

from __future__ import annotations

import gc
import os
import signal
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import dagster as dg

from assets.stages import BY_NAME
from pipeline_defs.compile_kernels import called_modules, kernel_packages
from pipeline_defs.load_corpus import load_corpus
from pipeline_defs.warm_server import STAGES_VARIABLE
from resources.dagster_home import HOME_VARIABLE
from resources.made_once import make_tables
from resources.stage import Stage

# numpy.ma: numba asks whether arrays are masked, 20 ms in each process that calls a kernel.
IMPORTED = ("numpy.ma", "pyarrow.compute", "watchdog.observers.polling")


def prepare() -> None:
    """Import and load all that forks of this process need.

    An error is shown and left to the steps, which meet it again and report it as theirs.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the run ends its server
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as a service that stops sends it
    names = os.environ.get(STAGES_VARIABLE, "").split(",")
    stages = [BY_NAME[name] for name in names if name in BY_NAME]
    try:
        definitions = import_module("pipeline_defs.definitions").defs
        if load_corpus().settings.engine.steps != "in_process" and os.environ.get(HOME_VARIABLE):
            load_steps(definitions)
        for module in (*IMPORTED, *(name for stage in stages for name in stage.preload)):
            import_module(module)
        load_kernels(stages)
    except Exception:  # noqa: BLE001 - whatever it is, the server serves
        traceback.print_exc()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # forks have that
    gc.freeze()  # the pages of what is loaded stay shared with the forks


def load_steps(definitions: dg.Definitions) -> None:
    """Import and make what a step needs of Dagster: 0.7 s of CPU, in each process of a step."""
    definitions.get_repository_def().get_all_jobs()
    with dg.DagsterInstance.get() as instance:
        instance.get_run_records(limit=1)


def load_kernels(stages: Sequence[Stage[Any, Any]]) -> None:
    """Load what is compiled of stages' kernels as they are imported, and make their tables."""
    for module in called_modules(stages, load_corpus().settings):
        import_module(module)
    for package in kernel_packages(stages):
        make_tables(package.removesuffix(".kernels"))


prepare()
