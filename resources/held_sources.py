"""Sources that are held in an earlier state (`corpus states rollback`): what a run does of them.

The stages that read documents one by one, up to `signatures`, stay in the state of the hold. What
all sources decide together applies to a held source, too: no document of another source is then
removed for one that is not there, and all are encoded by one tokenizer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from resources.corpus import Corpus
from resources.stage import Stage
from resources.store.named_states import HeldSource, read_holds
from resources.store.records import Manifest
from resources.tasks import Plan, Task, tasks_of


def under_holds(corpus: Corpus) -> Corpus:
    """Return the corpus with the holds of now."""
    held = read_holds(corpus.store.root)
    return replace(corpus, held=held, behind=corpus.behind | held.keys())


def hold_of(corpus: Corpus, stage: Stage[Any, Any], partition: str) -> HeldSource | None:
    """Return the hold that keeps a partition as it is, None if a run plans it."""
    return corpus.held.get(partition) if stage.is_held else None


def held_manifest(corpus: Corpus, stage: Stage[Any, Any], hold: HeldSource) -> Manifest | None:
    """Return the manifest that a partition is held in, None if it has none.

    A stage that the hold does not name stays as it is.
    """
    folder, number = corpus.store.partition(stage.name, hold.source), hold.number(stage.name)
    return folder.newest_manifest() if number is None else folder.read_manifest(number)


def held_plan(corpus: Corpus, stage: Stage[Any, Any], partition: str) -> Plan | None:
    """Return the plan of a partition that is held: its published parts. None if it is not."""
    hold = hold_of(corpus, stage, partition)
    if hold is None:
        return None
    manifest = held_manifest(corpus, stage, hold)
    if manifest is None:
        return Plan([], {})
    make = tasks_of(corpus, stage, partition)
    tasks: list[Task[Any]] = [
        make.with_fingerprint(part.name, part.fingerprint, {}, work_bytes=0)
        for part in manifest.parts
    ]
    return Plan(tasks, manifest.config, manifest.provenance)


def held_line(stage: str, hold: HeldSource) -> str:
    """Return the line of a run's log on a source that it leaves as it is."""
    return (
        f"{stage} skips {hold.source!r}, which is held in state {hold.state}: its documents stay "
        f"as they are. `corpus states rollback {hold.source} --release` ends it."
    )
