"""Check what a run adds to a partition against the partition's own history.

The history is in Dagster's records: each materialization has the profile of what its run added, a
few hundred bytes. It outlives the manifests that are kept, and the store has no clock in it. The
check warns and stops nothing: a drift may be intended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
import msgspec

from resources.drawn_charts import with_pictures
from resources.profiles import Judgement, Profile
from resources.stage import DriftCheck
from resources.store.records import Manifest, fingerprint_of

DRIFT_RUNS = 60  # earlier materializations that are read: some added nothing
CHECK_DRIFT = "drift"
PROFILE = "drift_profile"
DRIFT_DESCRIPTION = (
    "what the run added is like what earlier runs added: kept share, reasons, languages, lengths, "
    "tokens per byte, copies"
)


def drift_spec(asset: str) -> dg.AssetCheckSpec:
    """Return the check as Dagster lists it."""
    return dg.AssetCheckSpec(CHECK_DRIFT, asset=asset, description=DRIFT_DESCRIPTION)


def made_under(manifest: Manifest[Any, Any]) -> str:
    """Return a digest of the code version and the config of a manifest."""
    return fingerprint_of(manifest.code_version, manifest.config)[:12]


def check_drift(
    context: dg.AssetExecutionContext,
    check: DriftCheck,
    profiles: Mapping[str, Profile],
    states: Mapping[str, Sequence[str]],
) -> dg.AssetCheckResult:
    """Return one result for all partitions of a run that added something, and log its drifts.

    `states` has the drifts of whole states by partition.
    """
    found = {
        name: check.judge(profile, earlier_profiles(context, name))
        for name, profile in profiles.items()
    }
    lines = [f"{name}: {drift}" for name, drifts in states.items() for drift in drifts]
    lines += [f"{name}: {drift}" for name, each in found.items() for drift in each.drifts]
    if lines:
        stage = context.asset_key.to_user_string()
        context.log.warning("\n".join(f"drift of {stage}, {line}" for line in lines))
    noted: dict[str, list[str]] = {}
    for name, each in found.items():
        noted.setdefault(each.note, []).append(name)
    notes = [f"{', '.join(names)}: {note}" for note, names in noted.items() if note]
    return dg.AssetCheckResult(
        check_name=CHECK_DRIFT,
        passed=not lines,
        severity=dg.AssetCheckSeverity.WARN,
        description="\n\n".join([*lines, *notes]) or None,  # as Markdown, each is a line
        metadata=check_metadata(found, lines),
    )


def check_metadata(found: Mapping[str, Judgement], lines: Sequence[str]) -> dict[str, Any]:
    """Return the drifts, the numbers of every partition, and a picture of each."""
    facts = {name: {of: dict(f) for of, f in each.facts.items()} for name, each in found.items()}
    pictures = [f"**{name}**\n\n{each.picture}" for name, each in found.items() if each.picture]
    shown: dict[str, Any] = {"drifts": list(lines)} if lines else {}
    if pictures:
        shown["pictures"] = dg.MetadataValue.md(with_pictures("\n\n".join(pictures)))
    return shown | ({"partitions": dg.MetadataValue.json(facts)} if any(facts.values()) else {})


def drifts_of_run(instance: dg.DagsterInstance, run_id: str) -> tuple[str, ...]:
    """Return the drifts that a run has found, a line each."""
    records = instance.get_records_for_run(
        run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION
    ).records
    lines: list[str] = []
    for record in records:
        event = record.event_log_entry.dagster_event
        found = event.asset_check_evaluation_data if event else None
        if found is not None and found.check_name == CHECK_DRIFT and not found.passed:
            drifts = found.metadata["drifts"].value
            stage = found.asset_key.to_user_string()
            lines += [f"{stage}, {line}" for line in drifts]  # type: ignore[union-attr]
    return tuple(lines)


def earlier_profiles(context: dg.AssetExecutionContext, partition: str) -> list[Profile]:
    """Return the profiles in the newest materializations of a partition, the newest first."""
    is_partitioned = context.assets_def.partitions_def is not None
    wanted = dg.AssetRecordsFilter(
        context.asset_key, asset_partitions=[partition] if is_partitioned else None
    )
    found = context.instance.fetch_materializations(wanted, limit=DRIFT_RUNS).records
    shown = (each.asset_materialization for each in found)
    values = (each.metadata.get(PROFILE) for each in shown if each)
    return [
        msgspec.convert(value.data, Profile)
        for value in values
        if isinstance(value, dg.JsonMetadataValue)
    ]
