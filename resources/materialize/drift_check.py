"""Check what a run adds to a partition against the partition's own history, as a Dagster check.

The history is in Dagster's records: each materialization has the profile of what its run added, a
few hundred bytes. It outlives the manifests that are kept, and the store has no clock in it. The
check warns and stops nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
import msgspec

from resources.profiles import Judgement, Profile
from resources.stage import DriftCheck
from resources.store.records import Manifest, fingerprint_of

CHECK_DRIFT = "drift"
PROFILE = "drift_profile"
RUNS = 60  # materializations that are read: of those that added nothing there is no profile
DESCRIPTION = (
    "what the run added is like what earlier runs added: kept share, reasons, languages, lengths, "
    "tokens per byte, copies"
)


def drift_spec(asset: str) -> dg.AssetCheckSpec:
    """Return the check as Dagster lists it."""
    return dg.AssetCheckSpec(CHECK_DRIFT, asset=asset, description=DESCRIPTION)


def made_under(manifest: Manifest[Any, Any]) -> str:
    """Return a digest of the code version and the config of a manifest."""
    return fingerprint_of(manifest.code_version, manifest.config)[:12]


def check_drift(
    context: dg.AssetExecutionContext, check: DriftCheck, profiles: Mapping[str, Profile]
) -> dg.AssetCheckResult:
    """Return one result for all partitions of a run that added something."""
    found = {
        name: check.judge(profile, earlier_profiles(context, name))
        for name, profile in profiles.items()
    }
    lines = [f"{name}: {drift}" for name, each in found.items() for drift in each.drifts]
    notes = [f"{name}: {each.note}" for name, each in found.items() if each.note]
    return dg.AssetCheckResult(
        check_name=CHECK_DRIFT,
        passed=not lines,
        severity=dg.AssetCheckSeverity.WARN,
        description="\n".join([*lines, *notes]) or None,
        metadata=check_metadata(found, lines),
    )


def check_metadata(found: Mapping[str, Judgement], lines: Sequence[str]) -> dict[str, Any]:
    """Return the drifts, the numbers of every partition, and a picture of each."""
    facts = {name: {of: dict(f) for of, f in each.facts.items()} for name, each in found.items()}
    pictures = [f"**{name}**\n\n{each.picture}" for name, each in found.items() if each.picture]
    shown = {"pictures": dg.MetadataValue.md("\n\n".join(pictures))} if pictures else {}
    return {"drifts": list(lines), "partitions": dg.MetadataValue.json(facts), **shown}


def profile_metadata(profile: Profile) -> dict[str, Any]:
    """Return a profile as the metadata of a materialization."""
    return {PROFILE: dg.MetadataValue.json(msgspec.to_builtins(profile))}


def earlier_profiles(context: dg.AssetExecutionContext, partition: str) -> list[Profile]:
    """Return the profiles in the newest materializations of a partition, the newest first."""
    is_partitioned = context.assets_def.partitions_def is not None
    wanted = dg.AssetRecordsFilter(
        context.asset_key, asset_partitions=[partition] if is_partitioned else None
    )
    found = context.instance.fetch_materializations(wanted, limit=RUNS).records
    shown = [each.asset_materialization for each in found]
    values = [each.metadata.get(PROFILE) for each in shown if each]
    return [
        msgspec.convert(value.data, Profile)
        for value in values
        if isinstance(value, dg.JsonMetadataValue)
    ]
