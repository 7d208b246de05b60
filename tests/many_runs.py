"""Runs that begin at once, each of the stage `raw` over a corpus of its own."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from command_line import LONGEST_SECONDS

PRELOAD = ["pipeline_defs.definitions", "builders", "many_runs"]


def run_raw(folder: Path, start: Any, environment: Mapping[str, str]) -> None:
    """Write a corpus, wait until all others have theirs, and run `raw`.

    The fork server has the environment of the test that started it.
    """
    os.environ.update(environment)
    import dagster as dg
    from builders import open_corpus, write_corpus

    from pipeline_defs.definitions import build_defs

    corpus = open_corpus(write_corpus(folder, engine={"kind": "in_process"}))
    job = build_defs(corpus).resolve_job_def("build_corpus")
    start.wait(LONGEST_SECONDS)
    with dg.DagsterInstance.get() as instance:
        job.execute_in_process(instance=instance, asset_selection=[dg.AssetKey("raw")])


def begin_runs(folder: Path, number: int) -> list[BaseProcess]:
    """Start that many runs, which begin together."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    start = context.Barrier(number + 1)  # with this process, which would else forget it
    folders = [folder / f"corpus-{index:02}" for index in range(number)]
    runs: list[BaseProcess] = [
        context.Process(target=run_raw, args=(each, start, dict(os.environ))) for each in folders
    ]
    for run in runs:
        run.start()
    start.wait(LONGEST_SECONDS)
    return runs


def begin_raw(config: Path) -> BaseProcess:
    """Start the stage `raw` over a corpus that is there, in one process."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    run = context.Process(target=run_raw_of, args=(config, dict(os.environ)))
    run.start()
    return run


def run_raw_of(config: Path, environment: Mapping[str, str]) -> None:
    """Run `raw` over a corpus, with an environment."""
    os.environ.update(environment)
    import dagster as dg
    from builders import open_corpus

    from pipeline_defs.definitions import build_defs

    job = build_defs(open_corpus(config)).resolve_job_def("build_corpus")
    with dg.DagsterInstance.get() as instance:
        job.execute_in_process(instance=instance, asset_selection=[dg.AssetKey("raw")])


def exit_codes(runs: list[BaseProcess]) -> list[int | None]:
    """Wait for runs, and return their exit codes."""
    for run in runs:
        run.join()
    return [run.exitcode for run in runs]
