"""Tell whether a run has parts to compute: one that has none needs no processes for its steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit

from assets.raw.asset import RAW
from assets.stages import used_stages
from resources.corpus import Corpus
from resources.stage import Stage
from resources.tasks import GLOBAL


def has_pending_work(corpus: Corpus, names: Sequence[str]) -> bool:
    """Return whether a part of some stages, in the flow's order, is still to be computed.

    A stage is planned from the newest manifests, which are right where all before it is published.
    Sources on the web count as work: they are to be asked once a run. So does what cannot be
    planned: the step that meets the error reports it.
    """
    stages = [stage for name, stage in used_stages(corpus.settings).items() if name in names]
    try:
        return any(
            has_pending_part(corpus, stage, partition)
            for stage in stages
            for partition in partitions_in(corpus, stage)
        )
    except Exception:  # noqa: BLE001 - whatever it is
        return True


def has_pending_part(corpus: Corpus, stage: Stage[Any, Any], partition: str) -> bool:
    """Return whether a partition has a part that is not published."""
    if stage is RAW:
        places = corpus.settings.source(partition).where
        if any(urlsplit(place).scheme in ("http", "https") for place in places):
            return True
    tasks = stage.plan(corpus, partition).tasks
    return any(task.published() is None for task in tasks)


def partitions_in(corpus: Corpus, stage: Stage[Any, Any]) -> Iterable[str]:
    """Return all partitions of a stage."""
    settings = corpus.settings
    names = {"source": settings.source_names(), "phase": settings.phase_names(), "none": [GLOBAL]}
    return names[stage.partitions]
