"""Plan the partitions of a stage: those that wait for other machines beside the others."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from resources.corpus import Corpus, stops_on_error
from resources.engine.system_errors import final_errors_explained
from resources.progress import current
from resources.settings.sources import is_elsewhere
from resources.side_by_side import rounds
from resources.source_faults import SourceFaults, names_of
from resources.stage import Stage
from resources.tasks import Plan

logger = logging.getLogger("tokenmill")


def plan_rounds(
    corpus: Corpus, stage: Stage[Any, Any], partitions: Sequence[str], faults: SourceFaults
) -> Iterator[dict[str, Plan]]:
    """Yield the plans of partitions as they are made; `faults` takes the errors of each.

    All come at once, except sources whose server is slow to answer: they come when they are
    planned, and delay none of the others.
    """
    corpus = replace(corpus, shared={})

    def plan(name: str) -> Plan:
        with final_errors_explained(corpus.store.root):
            return stage.plan(corpus, name)

    slow = [name for name in partitions if waits_for_others(corpus, stage, name)]
    plans: dict[str, Plan] = {}
    in_rounds = rounds({name: partial(plan, name) for name in slow})
    for name in partitions:
        if name not in slow:
            with faults.of(name, is_planned=False):
                plans[name] = plan(name)
    for ended in in_rounds:
        slow = [name for name in slow if name not in ended]
        for name, answer in ended.items():
            with faults.of(name, is_planned=False):
                plans[name] = answer.result()
        current().planned_meanwhile = slow
        if slow:
            others = "; the others begin without it" if plans else ""
            logger.warning("%s: still planning %s%s", stage.name, names_of(slow), others)
        yield {name: plans[name] for name in partitions if name in plans}
        plans = {}


def waits_for_others(corpus: Corpus, stage: Stage[Any, Any], name: str) -> bool:
    """Return whether a plan asks other machines; where the first error ends all, none begins."""
    is_source = stage.inputs is not None and not stops_on_error(corpus)
    return is_source and is_elsewhere(corpus.settings.source(name))
