"""The executor of every run, by a job, the command line or a click in the web UI.

It is Dagster's own for steps in the run's process, inside what a run needs from its start to its
end. A process per step would cost a run with nothing new three times the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from typing import Any

import dagster as dg

from assets.stages import BY_NAME
from pipeline_defs.interruption import ended_by_signals
from pipeline_defs.run_guard import guarded
from pipeline_defs.warm_server import warm_server
from resources.corpus import Corpus
from resources.engine.fork_server import can_be_forked
from resources.engine.system_errors import final_errors_explained


def executor_for(corpus: Corpus) -> dg.ExecutorDefinition:
    """Return the executor of runs over a corpus."""
    dagsters = dg.in_process_executor

    def create(context: dg.InitExecutorContext) -> CorpusExecutor:
        return CorpusExecutor(dagsters.executor_creation_fn(context), corpus)  # type: ignore[misc]

    executor = dg.ExecutorDefinition(
        name="corpus_in_process",
        config_schema=dagsters.config_schema,  # type: ignore[arg-type]
        requirements=dagsters.get_requirements,
        executor_creation_fn=create,
    )
    return executor.configured({})


class CorpusExecutor(dg.Executor):
    """Dagster's executor, in a run over a corpus."""

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
            warm_server(stages, as_fork=can_be_forked()),
            ended_by_signals(plan_context.instance, plan_context.run_id, tidy) as is_interrupted,
            self.corpus.store.session(),
            final_errors_explained(self.corpus.store.root),
        ):
            events = self.events(plan_context, execution_plan, is_interrupted)
            yield from guarded(self.corpus, plan_context, stages, events)

    def events(
        self, plan_context: Any, execution_plan: Any, is_interrupted: Event
    ) -> Iterator[dg.DagsterEvent]:
        """Yield the events of a run's steps."""
        from pipeline_defs.compile_kernels import compile_kernels  # numba: not for definitions

        stages = [BY_NAME[name] for name in execution_plan.step_keys_to_execute if name in BY_NAME]
        with dg.raise_execution_interrupts():
            compile_kernels(stages)
        for event in self.executor.execute(plan_context, execution_plan):
            yield event
            if is_interrupted.is_set():  # no failure, and not retried
                raise dg.DagsterExecutionInterruptedError
