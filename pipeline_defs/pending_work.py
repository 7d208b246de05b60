"""Tell whether a run has parts to compute: one that has none needs no processes for its steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assets.raw.asset import RAW
from assets.stages import used_stages
from resources.corpus import Corpus
from resources.held_sources import held_plan, under_holds
from resources.settings.sources import web_places
from resources.stage import Stage, partition_names
from resources.tasks import look_up


def has_pending_work(corpus: Corpus, names: Sequence[str]) -> bool:
    """Return whether a part of some stages, in the flow's order, is still to be computed.

    A stage is planned from the newest manifests, which are right where all before it is published.
    Sources on the web and streams count as work: they are to be asked once a run. So does what
    cannot be planned: the step that meets the error reports it.
    """
    corpus = under_holds(corpus)
    stages = [stage for name, stage in used_stages(corpus.settings).items() if name in names]
    try:
        return any(
            has_pending_part(corpus, stage, partition)
            for stage in stages
            for partition in partition_names(stage, corpus.settings)
        )
    except Exception:  # noqa: BLE001 - whatever it is
        return True


def has_pending_part(corpus: Corpus, stage: Stage[Any, Any], partition: str) -> bool:
    """Return whether a partition has a part that is not published."""
    if held := held_plan(corpus, stage, partition):
        return None in look_up(held.tasks)
    if stage is RAW:
        source = corpus.settings.source(partition)
        if source.is_stream or web_places(source):
            return True
    return None in look_up(stage.plan(corpus, partition).tasks)
