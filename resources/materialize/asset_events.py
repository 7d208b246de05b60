"""Events of a step: one materialization per partition, with a data version of its own.

Dagster gives all partitions of a run one data version, and counts all of them as materialized, the
failed ones too. So a step yields these events itself, and Dagster's own are left out by the tag
that it has for assets whose events come from elsewhere, set only while a step yields its result.
(A tag of the stored run would also leave out what the UI shows as planned.)
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import dagster as dg

from resources.store.records import Manifest
from resources.tasks import GLOBAL

DEFERRED = "dagster/defer_asset_events"
NO_EVENT = "NULL"


def provenance_tags(context: dg.AssetExecutionContext) -> dict[str, str]:
    """Return the tags that name code version and newest inputs: what Dagster calls stale by them.

    The newest event of an input, of whatever partition: later ones are news for every partition.
    """
    node = context.job_def.asset_layer.asset_graph.get(context.asset_key)
    tags = {"dagster/code_version": node.code_version or context.run.run_id}
    for key in node.parent_keys:
        record = context.instance.get_latest_data_version_record(key)
        entry = record.event_log_entry if record else None
        version = (entry.tags or {}).get("dagster/data_version") if entry else None
        name = key.to_user_string()
        tags[f"dagster/input_data_version/{name}"] = version or "INITIAL"
        pointer = NO_EVENT if record is None else str(record.storage_id)
        tags[f"dagster/input_event_pointer/{name}"] = pointer
    return tags


def materialized(
    key: dg.AssetKey, manifest: Manifest, metadata: Mapping[str, Any], tags: Mapping[str, str]
) -> dg.AssetMaterialization:
    """Return the event of a partition whose manifest was committed: its version is that state."""
    return dg.AssetMaterialization(
        key,
        partition=partition_key(manifest.partition),
        metadata=metadata,
        tags={
            **tags,
            "dagster/data_version": manifest.fingerprint,
            "dagster/data_version_is_user_provided": "true",
        },
    )


def observed(asset: str, manifest: Manifest, version: str) -> dg.AssetObservation:
    """Return the event of the inputs from outside that a manifest is of."""
    return dg.AssetObservation(
        dg.AssetKey(asset),
        partition=partition_key(manifest.partition),
        tags={"dagster/data_version": version},
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
