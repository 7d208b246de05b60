"""Runs that begin at once, each of the stage `raw` over a corpus of its own."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

PRELOAD = ["pipeline_defs.definitions", "builders", "many_runs"]


def run_raw(folder: Path, start: Any) -> None:
    """Write a corpus, wait until all others have theirs, and run `raw`."""
    import dagster as dg
    from builders import open_corpus, write_corpus

    from pipeline_defs.definitions import build_defs

    steps = {"steps": "in_process", "kind": "in_process"}
    corpus = open_corpus(write_corpus(folder, engine=steps))
    job = build_defs(corpus).resolve_job_def("build_corpus")
    start.wait()
    with dg.DagsterInstance.get() as instance:
        job.execute_in_process(instance=instance, asset_selection=[dg.AssetKey("raw")])


def run_at_once(folder: Path, number: int) -> list[int | None]:
    """Run that many at once; return their exit codes."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    start = context.Barrier(number)
    folders = [folder / f"corpus-{index:02}" for index in range(number)]
    runs = [context.Process(target=run_raw, args=(each, start)) for each in folders]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    return [run.exitcode for run in runs]
