"""The executor of every run, by a job, the command line or a click in the web UI.

It is one of Dagster's own, inside what a run needs from its start to its end: with a process for
each step, or for steps in the run's process, as `engine.steps` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from threading import Event
from typing import Any

import dagster as dg

from assets.stages import BY_NAME
from pipeline_defs.interruption import ended_by_signals
from pipeline_defs.run_guard import guarded
from pipeline_defs.warm_server import PRELOAD, warm_server
from pipeline_defs.work_of_run import needs_processes
from resources.corpus import Corpus
from resources.engine.fork_server import can_be_forked
from resources.engine.step_process import steps_served
from resources.engine.system_errors import final_errors_explained

RETRIES: dict[str, Any] = {"retries": {"enabled": {}}}  # as the assets' policies say
KINDS: dict[str, dict[str, Any]] = {
    "in_process": RETRIES,
    # One at a time: a step's parts take all cores, and two stages would compete for memory.
    "multiprocess": {
        "max_concurrent": 1,
        "start_method": {"forkserver": {"preload_modules": [*PRELOAD]}},
        **RETRIES,
    },
}


def executor_for(corpus: Corpus) -> dg.ExecutorDefinition:
    """Return the executor of runs over a corpus."""

    def create(context: dg.InitExecutorContext) -> CorpusExecutor:
        make: Any = dg.multi_or_in_process_executor.executor_creation_fn
        made = {
            kind: make(context._replace(executor_config={kind: config}))
            for kind, config in KINDS.items()
        }
        return CorpusExecutor(made, corpus)

    return dg.ExecutorDefinition(
        name="corpus_executor", config_schema={}, executor_creation_fn=create
    )


class CorpusExecutor(dg.Executor):
    """Dagster's executors, by kind, in a run over a corpus."""

    def __init__(self, kinds: Mapping[str, dg.Executor], corpus: Corpus) -> None:
        self.kinds = kinds
        self.corpus = corpus

    @property
    def retries(self) -> Any:
        """Retry mode of steps."""
        return self.kinds["in_process"].retries

    @property
    def step_dependency_config(self) -> Any:
        """When a step may start."""
        return self.kinds["in_process"].step_dependency_config

    def execute(self, plan_context: Any, execution_plan: Any) -> Iterator[dg.DagsterEvent]:
        """Yield the events of a run's steps, when no other run works on the store."""
        stages = execution_plan.step_keys_to_execute
        tidy = self.corpus.store.remove_temporaries
        with (
            warm_server(stages, as_fork=can_be_forked()),
            ended_by_signals(plan_context.instance, plan_context.run_id, tidy) as is_interrupted,
            self.corpus.store.session(),
            final_errors_explained(self.corpus.store.root),
        ):
            events = partial(self.events, plan_context, execution_plan, is_interrupted)
            yield from guarded(self.corpus, plan_context, stages, events)

    def events(
        self, plan_context: Any, execution_plan: Any, is_interrupted: Event, lock: int | None
    ) -> Iterator[dg.DagsterEvent]:
        """Yield the events of a run's steps; `lock` is that of the run."""
        from pipeline_defs.compile_kernels import compile_kernels  # numba: not for definitions

        names = execution_plan.step_keys_to_execute
        with dg.raise_execution_interrupts():
            compile_kernels([BY_NAME[name] for name in names if name in BY_NAME])
        with ExitStack() as serving:
            kind = "in_process"
            if needs_processes(self.corpus, plan_context.run_id):
                kind = "multiprocess"
                serving.enter_context(steps_served(lock, self.corpus.store.lease_key()))
            for event in self.kinds[kind].execute(plan_context, execution_plan):
                yield event
                if is_interrupted.is_set():  # no failure, and not retried
                    raise dg.DagsterExecutionInterruptedError
