"""The partitions of a step are committed side by side, each for itself."""

from __future__ import annotations

from dataclasses import replace
from threading import Barrier
from typing import Any

import pytest

from resources.materialize.materialization import publish_partitions
from resources.source_faults import SourceFaults
from resources.stage import Metadata, Stage
from resources.store.records import Manifest, PartRecord, Stats
from resources.tasks import Plan, Task

NAMES = ["prose", "letters", "notes", "web"]


def add_part(task: Task[Any]) -> list[PartRecord]:
    return [task.writer().publish(Stats(1, 1))]


def plan(corpus: Any, partition: str) -> Plan:
    return Plan([Task(corpus.store.root, "probe", partition, "p", "f" * 32, 1)], {})


def probe(describe: Any) -> Stage[Any, Any]:
    return Stage(
        name="probe",
        code_version="1",
        description="A stage of empty parts.",
        group="ingest",
        partitions="source",
        after=(),
        kinds=frozenset({"polars"}),
        provenance=dict,
        numbers=dict,
        plan=plan,
        work=add_part,
        describe=describe,
    )


def test_what_is_shown_of_two_partitions_is_read_at_once(corpus: Any) -> None:
    both = Barrier(2)

    def describe(_: Any, __: Any) -> Metadata:
        return {"place": both.wait(timeout=30)}

    done = publish_partitions(
        with_workers(corpus, 2), probe(describe), NAMES, SourceFaults(stops=False)
    )
    assert [each.manifest.partition for each in done] == NAMES


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_one_that_cannot_be_described_leaves_the_others(corpus: Any, workers: int) -> None:
    def describe(_: Any, manifest: Manifest) -> Metadata:
        if manifest.partition == "letters":
            raise OSError("no luck")
        return {}

    faults = SourceFaults(stops=False)
    done = publish_partitions(with_workers(corpus, workers), probe(describe), NAMES, faults)
    assert [each.manifest.partition for each in done] == ["prose", "notes", "web"]
    assert {name: str(error) for name, error in faults.failed.items()} == {"letters": "no luck"}


def with_workers(corpus: Any, workers: int) -> Any:
    engine = corpus.settings.engine.model_copy(update={"workers": workers})
    return replace(corpus, settings=corpus.settings.model_copy(update={"engine": engine}))
