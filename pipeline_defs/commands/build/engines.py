"""`corpus engines`: when threads, processes or Ray pay on this machine, and why."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated

import msgspec
from cyclopts import Parameter

from pipeline_defs.commands.terminal import Json, print_json, print_table, say
from pipeline_defs.forecast.engine_trial import Trial, process_bytes, try_engines
from pipeline_defs.load_corpus import load_corpus
from resources.auto_choice import keep_measured

RAY_SECONDS = 15.0  # in which a Ray of this machine starts (docs/engines.md)
MACHINES = (2, 10)


class EngineChoice(msgspec.Struct, frozen=True):
    """What was measured, for programs: bytes of work from which processes pay, null for never."""

    workers: int
    text_bytes: int
    is_own_text: bool
    process_bytes: int | None
    stages: dict[str, int | None]


def engines(
    *,
    keep: Annotated[
        bool, Parameter(help="Let `engine.kind: auto` choose by it.", negative="--no-keep")
    ] = True,
    json: Json = False,
) -> int:
    """Measure threads and processes on a sample of text; the exit code is 0."""
    corpus = load_corpus()
    workers = corpus.settings.engine.num_workers()
    trial = try_engines(corpus, workers)
    found = choice_of(trial)
    file = keep_measured(found.process_bytes) if keep else None
    if json:
        print_json(found)
        return 0
    show(trial)
    say(*advice(trial, found))
    if file is not None:
        say(f"`engine.kind: auto` chooses by this from now on: {file}")
    return 0


def choice_of(trial: Trial) -> EngineChoice:
    """Return the choice that a trial leads to."""
    return EngineChoice(
        trial.workers,
        trial.text_bytes,
        trial.is_own_text,
        whole(process_bytes(trial.stages)),
        {each.stage: whole(process_bytes([each])) for each in trial.stages},
    )


def whole(work: float) -> int | None:
    """Return bytes of work, None for never."""
    return None if math.isinf(work) else math.ceil(work)


def show(trial: Trial) -> None:
    """Print a table of the stages."""
    text = "your own text" if trial.is_own_text else "the shipped sample's text"
    title = f"{trial.text_bytes / 1e6:,.0f} MB of {text}, {trial.workers} workers"
    rows = []
    for each in trial.stages:
        timed = (each.threads, each.processes)
        cells = (f"{n:,.2f}" for one in timed for n in (one.least, one.per_byte * 1e9))
        rows.append((each.stage, *cells, amount(whole(process_bytes([each])))))
    numbers = ("threads s", "and s/GB", "processes s", "and s/GB", "processes from")
    print_table(title, ("stage",), numbers, rows)


def amount(work: int | None) -> str:
    """Return bytes of work in words."""
    return "never" if work is None else f"{work / 1e6:,.0f} MB"


def advice(trial: Trial, found: EngineChoice) -> Iterator[str]:
    """Yield a sentence on each engine."""
    later = sum(each.processes.least - each.threads.least for each in trial.stages)
    a_stage = later / len(trial.stages)
    if found.process_bytes is None:
        yield f"Threads (in_process): for any work; {trial.workers} processes gain nothing here."
    else:
        yield f"Threads (in_process): below {amount(found.process_bytes)} of work in a stage."
        yield f"Processes: from there on. A stage begins {a_stage:.2f} s later, then each worker"
        yield "  has an interpreter of its own, where threads wait for one lock."
    yield f"Ray (ray): by name only, since it needs machines. It starts in {RAY_SECONDS:.0f} s,"
    yield "  and ends sooner than this machine alone from about:"
    for machines in MACHINES:
        size = ray_bytes(trial, machines)
        yield f"  {size / 1e9:,.1f} GB of text on {machines} machines like this one"


def ray_bytes(trial: Trial, machines: int) -> float:
    """Return the bytes of text from which a Ray cluster ends sooner than one machine does."""
    seconds = sum(
        each.work_bytes * min(each.threads.per_byte, each.processes.per_byte)
        for each in trial.stages
    )
    return RAY_SECONDS / (seconds / trial.text_bytes * (1 - 1 / machines))
