"""Events of a step: one materialization per partition, with a data version of its own.

Dagster gives all partitions of a run one data version, and counts all of them as materialized, the
failed ones too. So a step yields these events itself, and Dagster's own are left out by the tag
that it has for assets whose events come from elsewhere, set only while a step yields its result.
(A tag of the stored run would also leave out what the UI shows as planned.)

What the newest event of a partition says is not recorded again: a night with nothing new wrote
12 kB for every partition of every stage, in the database of the run and in that of all runs.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dagster as dg

from resources.materialize.history_checks import PROFILE
from resources.materialize.metadata import NUMBERS_OF_RUN
from resources.store.records import Manifest
from resources.tasks import GLOBAL

DEFERRED = "dagster/defer_asset_events"
BACKFILL_TAG = "dagster/backfill"
DATA_VERSION = "dagster/data_version"
INPUT_VERSION = "dagster/input_data_version/"
NO_VERSION, NO_EVENT = "INITIAL", "NULL"
INPUT_EVENT = "dagster/input_event_pointer/"
READ_AT_ONCE = 200  # events of 10 kB


@dataclass(frozen=True)
class Provenance:
    """What Dagster calls the partitions of a step stale by: its code, and the newest inputs.

    of_all     tags of all partitions: of an input of several partitions, those of the newest event
    own        (data version, event) by partition, of each input that has the same partitions
    followed   tags of the events of inputs of which a partition follows one version
    """

    of_all: Mapping[str, str]
    own: Mapping[str, Mapping[str, tuple[str, int]]]
    followed: frozenset[str]

    def tags(self, partition: str) -> dict[str, str]:
        """Return the tags of a partition."""
        tags = dict(self.of_all)
        for name, events in self.own.items():
            tags |= input_tags(name, events.get(partition))
        return tags


def provenance_of(context: dg.AssetExecutionContext) -> Provenance:
    """Return the provenance of what a step does now."""
    graph = context.job_def.asset_layer.asset_graph
    node, instance = graph.get(context.asset_key), context.instance
    of_all = {"dagster/code_version": node.code_version or context.run.run_id}
    own: dict[str, Mapping[str, tuple[str, int]]] = {}
    followed = set[str]()
    for parent in map(graph.get, node.parent_keys):
        name = parent.key.to_user_string()
        if not parent.is_partitioned or parent.partitions_def == node.partitions_def:
            followed.add(f"{INPUT_EVENT}{name}")
        if parent.is_partitioned and parent.partitions_def == node.partitions_def:
            own[name] = newest_versions(instance, parent.key, is_external=parent.is_external)
        else:
            record = instance.get_latest_data_version_record(parent.key)
            version = (record.event_log_entry.tags or {}).get(DATA_VERSION, "") if record else ""
            of_all |= input_tags(name, (version, record.storage_id) if record else None)
    return Provenance(of_all, own, frozenset(followed))


def input_tags(name: str, event: tuple[str, int] | None) -> dict[str, str]:
    """Return the tags of an input by its newest event, None if it has none."""
    version, number = event or (NO_VERSION, NO_EVENT)
    return {f"{INPUT_VERSION}{name}": version or NO_VERSION, f"{INPUT_EVENT}{name}": str(number)}


def newest_versions(
    instance: dg.DagsterInstance, key: dg.AssetKey, *, is_external: bool
) -> dict[str, tuple[str, int]]:
    """Return the data version and the number of the newest event of an asset by partition."""
    types = dg.DagsterEventType
    of = types.ASSET_OBSERVATION if is_external else types.ASSET_MATERIALIZATION
    numbers = instance.get_latest_storage_id_by_partition(key, of)
    tags = instance.event_log_storage.get_latest_tags_by_partition(key, of, [DATA_VERSION])
    return {name: (tags.get(name, {}).get(DATA_VERSION, ""), n) for name, n in numbers.items()}


def news(
    context: dg.AssetExecutionContext,
    events: Sequence[dg.AssetMaterialization],
    followed: frozenset[str],
) -> Iterator[dg.AssetMaterialization]:
    """Yield the events of which the newest one of their partition does not say the same.

    That has the same tags, but those that are `followed` by a version, and the same metadata, but
    the numbers of a run. A backfill, which waits until it has seen its partitions, gets them all.
    """
    if BACKFILL_TAG in context.run.tags:
        yield from events
        return
    node = context.job_def.asset_layer.asset_graph.get(context.asset_key)
    newest = newest_materializations(context.instance, node.key, is_keyed=node.is_partitioned)
    for event in events:
        then = newest.get(event.partition)
        if then is None or said_by(event, followed) != said_by(then, followed):
            yield event


def said_by(event: dg.AssetMaterialization, followed: frozenset[str]) -> tuple[Any, Any]:
    """Return the tags and the metadata of an event that make another one news."""
    of_run = {*NUMBERS_OF_RUN, PROFILE}
    return (
        {tag: value for tag, value in (event.tags or {}).items() if tag not in followed},
        {name: value for name, value in event.metadata.items() if name not in of_run},
    )


def newest_materializations(
    instance: dg.DagsterInstance, key: dg.AssetKey, *, is_keyed: bool
) -> dict[str | None, dg.AssetMaterialization]:
    """Return the newest materialization of an asset by partition."""
    if not is_keyed:
        found = list(instance.fetch_materializations(key, limit=1).records)
    else:
        kind, found = dg.DagsterEventType.ASSET_MATERIALIZATION, list[dg.EventLogRecord]()
        ids = list(instance.get_latest_storage_id_by_partition(key, kind).values())
        for start in range(0, len(ids), READ_AT_ONCE):
            wanted = dg.AssetRecordsFilter(key, storage_ids=ids[start : start + READ_AT_ONCE])
            found += instance.fetch_materializations(wanted, limit=READ_AT_ONCE).records
    events = [record.asset_materialization for record in found]
    return {event.partition: event for event in events if event}


def materialized(
    key: dg.AssetKey, manifest: Manifest, metadata: Mapping[str, Any], tags: Mapping[str, str] = {}
) -> dg.AssetMaterialization:
    """Return the event of a partition whose manifest was committed: its version is that state."""
    return dg.AssetMaterialization(
        key,
        partition=partition_key(manifest.partition),
        metadata=metadata,
        tags={
            **tags,
            DATA_VERSION: manifest.fingerprint,
            "dagster/data_version_is_user_provided": "true",
        },
    )


def observed(asset: str, manifest: Manifest, version: str) -> dg.AssetObservation:
    """Return the event of the inputs from outside that a manifest is of."""
    return dg.AssetObservation(
        dg.AssetKey(asset),
        partition=partition_key(manifest.partition),
        tags={DATA_VERSION: version},
    )


def partition_key(partition: str) -> str | None:
    """Return the key of a partition, None for the one of a stage without partitions."""
    return None if partition == GLOBAL else partition


@contextmanager
def no_events_by_dagster(run: dg.DagsterRun) -> Iterator[None]:
    """Keep Dagster from adding materializations to a result that is yielded meanwhile."""
    tags: dict[str, str] = run.tags  # type: ignore[assignment]
    tags[DEFERRED] = "true"
    try:
        yield
    finally:
        del tags[DEFERRED]
