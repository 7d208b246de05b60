"""The executor of every run, by a job, the command line or a click in the web UI.

It is Dagster's own, in the run's process or with a process per step as `engine.steps` says, inside
what a run needs from its start to its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from threading import Event
from typing import Any

import dagster as dg

from pipeline_defs.interruption import ended_by_signals
from pipeline_defs.run_guard import guarded
from pipeline_defs.warm_server import PRELOAD, warm_server
from resources.corpus import Corpus
from resources.engine.system_errors import final_errors_explained


def executor_for(corpus: Corpus) -> dg.ExecutorDefinition:
    """Return the executor that `engine.steps` names."""
    in_process = corpus.settings.engine.steps == "in_process"
    dagsters = dg.in_process_executor if in_process else dg.multiprocess_executor

    def create(context: dg.InitExecutorContext) -> CorpusExecutor:
        return CorpusExecutor(dagsters.executor_creation_fn(context), corpus)  # type: ignore[misc]

    executor = dg.ExecutorDefinition(
        name=f"corpus_{dagsters.name}",
        config_schema=dagsters.config_schema,  # type: ignore[arg-type]
        requirements=dagsters.get_requirements,
        executor_creation_fn=create,
    )
    forkserver = {"forkserver": {"preload_modules": list(PRELOAD)}}
    return executor.configured({} if in_process else {"start_method": forkserver})


class CorpusExecutor(dg.Executor):
    """One of Dagster's executors, in a run over a corpus."""

    def __init__(self, executor: dg.Executor, corpus: Corpus) -> None:
        self.executor = executor
        self.corpus = corpus

    @property
    def retries(self) -> Any:
        """Retry mode of steps."""
        return self.executor.retries

    @property
    def step_dependency_config(self) -> Any:
        """When a step may start."""
        return self.executor.step_dependency_config

    def execute(self, plan_context: Any, execution_plan: Any) -> Iterator[dg.DagsterEvent]:
        """Yield the events of a run's steps, when no other run works on the store."""
        stages = execution_plan.step_keys_to_execute
        tidy = self.corpus.store.remove_temporaries
        with (
            ended_by_signals(plan_context.instance, plan_context.run_id, tidy) as is_interrupted,
            final_errors_explained(self.corpus.store.root),
        ):
            events = self.events(plan_context, execution_plan, is_interrupted)
            yield from guarded(self.corpus, plan_context, stages, events)

    def events(
        self, plan_context: Any, execution_plan: Any, is_interrupted: Event
    ) -> Iterator[dg.DagsterEvent]:
        """Yield the events of a run's steps; an interruption is no failure, and not retried."""
        with self.server(execution_plan.step_keys_to_execute):
            for event in self.executor.execute(plan_context, execution_plan):
                yield event
                if is_interrupted.is_set() and not self.has_step_processes:
                    raise dg.DagsterExecutionInterruptedError

    @property
    def has_step_processes(self) -> bool:
        """Return whether steps have processes of their own; they are told of an interruption."""
        return self.corpus.settings.engine.steps == "multiprocess"

    def server(self, stages: list[str]) -> AbstractContextManager[None]:
        """Return the warm server if steps are its forks."""
        return warm_server(stages) if self.has_step_processes else nullcontext()
