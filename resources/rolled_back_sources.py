"""Runs leave sources in the earlier state that they are rolled back to (`corpus states rollback`).

The stages that read documents one by one, up to `signatures`, stay in that state. What all sources
decide together applies to such a source, too: no document of another source is then removed for one
that is not there, and all are encoded by one tokenizer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from resources.corpus import Corpus
from resources.stage import Stage
from resources.store.named_states import Rollback, read_rollbacks
from resources.store.records import Manifest
from resources.tasks import Plan, Task, tasks_of


def with_rollbacks(corpus: Corpus) -> Corpus:
    """Return the corpus with the rollbacks of now."""
    rollbacks = read_rollbacks(corpus.store.root)
    return replace(corpus, rollbacks=rollbacks, behind=corpus.behind | rollbacks.keys())


def rollback_of(corpus: Corpus, stage: Stage[Any, Any], partition: str) -> Rollback | None:
    """Return the rollback that keeps a partition as it is, None if a run plans it."""
    return corpus.rollbacks.get(partition) if stage.stays_rolled_back else None


def rolled_back_manifest(
    corpus: Corpus, stage: Stage[Any, Any], rollback: Rollback
) -> Manifest | None:
    """Return the manifest that a partition is rolled back to, None if it has none.

    A stage that the rollback does not name stays as it is.
    """
    folder = corpus.store.partition(stage.name, rollback.source)
    number = rollback.number(stage.name)
    return folder.newest_manifest() if number is None else folder.read_manifest(number)


def rolled_back_plan(corpus: Corpus, stage: Stage[Any, Any], partition: str) -> Plan | None:
    """Return the plan of a partition that is rolled back: its parts. None if it is not."""
    rollback = rollback_of(corpus, stage, partition)
    if rollback is None:
        return None
    manifest = rolled_back_manifest(corpus, stage, rollback)
    if manifest is None:
        return Plan([], {})
    make = tasks_of(corpus, stage, partition)
    tasks: list[Task[Any]] = [
        make.with_fingerprint(part.name, part.fingerprint, {}, work_bytes=0)
        for part in manifest.parts
    ]
    return Plan(tasks, manifest.config, manifest.provenance)


def rolled_back_line(stage: str, rollback: Rollback) -> str:
    """Return the line of a run's log on a source that it leaves as it is."""
    return (
        f"{stage} skips {rollback.source!r}, which is rolled back to state {rollback.state}: its "
        f"documents stay as they are. `corpus states rollback {rollback.source} --release` ends it."
    )
