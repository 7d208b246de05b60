"""Times and runs of manifests, by Dagster's records: the store has no clock."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import dagster as dg
import msgspec

from resources.materialize.asset_events import partition_key

MOST_EVENTS = 2000  # of a partition: five years of nights

VERSION = "dagster/data_version"


class Committed(msgspec.Struct, frozen=True):
    """The event by which a manifest was reported: its time, run, and parts computed and reused.

    The run is "" where a command reported it.
    """

    fingerprint: str
    seconds: float
    run_id: str
    parts_computed: int
    parts_reused: int


def commits_of(instance: dg.DagsterInstance, stage: str, partition: str) -> list[Committed]:
    """Return the events of a partition that brought another state, the newest first."""
    key = partition_key(partition)
    wanted = dg.AssetRecordsFilter(dg.AssetKey(stage), asset_partitions=[key] if key else None)
    records = instance.fetch_materializations(wanted, limit=MOST_EVENTS).records
    groups = [list(group) for _, group in groupby(map(committed, records), lambda e: e.fingerprint)]
    if len(records) == MOST_EVENTS:
        groups = groups[:-1]  # it may have begun earlier
    return [group[-1] for group in groups]  # later ones found the same state


def committed(record: dg.EventLogRecord) -> Committed:
    """Return what a record says of a materialization."""
    found = record.asset_materialization
    assert found is not None, "only materializations were asked for"
    computed, reused = (count(found, name) for name in ("parts_computed", "parts_reused"))
    version = (found.tags or {}).get(VERSION, "")
    return Committed(version, record.timestamp, record.run_id, computed, reused)


def count(found: dg.AssetMaterialization, name: str) -> int:
    """Return a number of an event's metadata, 0 without it: zeros are left out."""
    value = getattr(found.metadata.get(name), "value", 0)
    return value if isinstance(value, int) else 0


def matched(fingerprints: Sequence[str], commits: Sequence[Committed]) -> list[Committed | None]:
    """Return the event of each manifest, both the newest first; None where there is none.

    A fingerprint may come twice, after a rollback: events are matched in order.
    """
    left = list(commits)
    found: list[Committed | None] = []
    for fingerprint in fingerprints:
        place = next((n for n, each in enumerate(left) if each.fingerprint == fingerprint), None)
        found.append(None if place is None else left[place])
        if place is not None:
            del left[: place + 1]
    return found
