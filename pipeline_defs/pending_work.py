"""Tell whether a run has so much to compute that its steps need processes of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from assets.raw.raw_records import RAW
from assets.stages import used_stages
from pipeline_defs.compile_kernels import cold_stages
from resources.auto_choice import measured_choice
from resources.corpus import Corpus
from resources.engine.map_parts import takes_threads
from resources.engine.ready_process import first_found
from resources.held_sources import held_plan, under_holds
from resources.settings.engine import EngineConfig
from resources.settings.sources import web_places
from resources.stage import Stage, partition_names
from resources.store.scratch import scratch_of
from resources.tasks import Task, look_up

Amount = Literal["nothing", "little", "much"]
MOST_PLANNED = 1000  # parts: to plan more of them twice would cost more than processes do


def needs_processes(corpus: Corpus, names: Sequence[str]) -> bool:
    """Return whether the steps of some stages, in the flow's order, should be processes."""
    if corpus.settings.engine.steps == "in_process":
        return False
    if is_first_run(corpus, names):
        return True
    return (first_found() or pending_work(corpus, names)) == "much"


def pending_work(corpus: Corpus, names: Sequence[str]) -> Amount:
    """Return how much some stages have to compute.

    A stage is planned from the newest manifests, which are right where all before it is published;
    what new parts will cost in later stages is about what they cost in the first.
    Sources on the web and streams count as much work: they are to be asked once a run. So does what
    cannot be planned: the step that meets the error reports it.
    """
    engine = corpus.settings.engine
    corpus, num_planned, pending = under_holds(corpus), 0, list[int]()
    stages = [stage for name, stage in used_stages(corpus.settings).items() if name in names]
    try:
        for tasks in planned(corpus, stages):
            num_planned += len(tasks)
            found = zip(tasks, look_up(tasks), strict=True)
            pending += [task.work_bytes for task, records in found if records is None]
            if pending and (num_planned > MOST_PLANNED or not is_little(engine, sum(pending))):
                return "much"
        if not pending:
            return "nothing"
        return "much" if cold_stages(stages) else "little"  # a server compiles on every core
    except Exception:  # noqa: BLE001 - whatever it is
        return "much"


def is_first_run(corpus: Corpus, names: Sequence[str]) -> bool:
    """Return whether the last of some stages was never run; of an object store that is not seen."""
    root = corpus.store.root
    return scratch_of(root) is None and not (root / names[-1]).exists()


def is_little(engine: EngineConfig, work_bytes: int) -> bool:
    """Return whether steps with so much work are as fast in one process, which compute it all."""
    return engine.steps == "auto" and takes_threads(measured_choice(engine, work_bytes), work_bytes)


def planned(corpus: Corpus, stages: Sequence[Stage[Any, Any]]) -> Iterator[Sequence[Task[Any]]]:
    """Yield the tasks of each partition; raise NotImplementedError for what only a run can ask."""
    for stage in stages:
        for partition in partition_names(stage, corpus.settings):
            if held := held_plan(corpus, stage, partition):
                yield held.tasks
                continue
            source = corpus.settings.source(partition) if stage.name == RAW.name else None
            if source and (source.is_stream or web_places(source)):
                raise NotImplementedError(f"what is new in {partition} is asked once a run")
            yield stage.plan(corpus, partition).tasks
