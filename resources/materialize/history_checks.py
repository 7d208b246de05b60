"""Check a partition against its own history, as Dagster checks: a number, and what a run adds.

The history is in Dagster's records: each materialization has the number among its metadata, and the
profile of what its run added, a few hundred bytes. It outlives the manifests that are kept, and the
store has no clock in it. The checks warn and stop nothing: a jump may be intended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
import msgspec

from resources.corpus import Corpus
from resources.profiles import Judgement, Profile
from resources.stage import DriftCheck, HistoryCheck, Refusal, WarningCheck
from resources.store.records import Manifest, fingerprint_of

NUMBER_RUNS = 10  # earlier materializations that are read
DRIFT_RUNS = 60  # of those that added nothing there is no profile
CHECK_DRIFT = "drift"
PROFILE = "drift_profile"
DRIFT_DESCRIPTION = (
    "what the run added is like what earlier runs added: kept share, reasons, languages, lengths, "
    "tokens per byte, copies"
)


def check_spec(check: HistoryCheck | WarningCheck | Refusal, asset: str) -> dg.AssetCheckSpec:
    """Return the check as Dagster lists it; it blocks nothing."""
    return dg.AssetCheckSpec(check.name, asset=asset, description=check.description)


def check_history(
    context: dg.AssetExecutionContext,
    check: HistoryCheck,
    corpus: Corpus,
    metadata: Mapping[str, Mapping[str, Any]],
) -> dg.AssetCheckResult:
    """Return one result for all partitions of a run (`metadata` by partition) that names the jumps.

    A partition without the number is left out.
    """
    jumped: list[str] = []
    facts: dict[str, Mapping[str, float]] = {}
    for partition, shown in metadata.items():
        if (number := number_of(shown.get(check.number))) is None:
            continue
        values = earlier_values(context, partition, check.number, NUMBER_RUNS)
        earlier = [value for value in map(number_of, values) if value is not None]
        has_jumped, facts[partition] = check.has_jumped(corpus, number, earlier)
        jumped += [partition] * has_jumped
    return dg.AssetCheckResult(
        check_name=check.name,
        passed=not jumped,
        severity=dg.AssetCheckSeverity.WARN,
        description="; ".join(sentence(name, facts[name]) for name in jumped) or None,
        metadata={"jumped": jumped, "partitions": {name: dict(facts[name]) for name in facts}},
    )


def number_of(value: Any) -> float | None:
    """Return a number of Dagster's metadata, None for any other value."""
    if isinstance(value, dg.FloatMetadataValue | dg.IntMetadataValue):
        value = value.value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None


def sentence(partition: str, facts: Mapping[str, float]) -> str:
    """Return a sentence such as `prose: rate 0.4, median 0.1, runs 10`."""
    return f"{partition}: " + ", ".join(f"{name} {value:.3g}" for name, value in facts.items())


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


def profile_metadata(profile: Profile) -> dict[str, Any]:
    """Return a profile as the metadata of a materialization."""
    return {PROFILE: dg.MetadataValue.json(msgspec.to_builtins(profile))}


def earlier_profiles(context: dg.AssetExecutionContext, partition: str) -> list[Profile]:
    """Return the profiles in the newest materializations of a partition, the newest first."""
    values = earlier_values(context, partition, PROFILE, DRIFT_RUNS)
    return [
        msgspec.convert(value.data, Profile)
        for value in values
        if isinstance(value, dg.JsonMetadataValue)
    ]


def earlier_values(
    context: dg.AssetExecutionContext, partition: str, name: str, runs: int
) -> list[Any]:
    """Return a metadata value of a partition's newest materializations, the newest first.

    None where a materialization does not have it. `runs` of them are read, by one query.
    """
    is_partitioned = context.assets_def.partitions_def is not None
    wanted = dg.AssetRecordsFilter(
        context.asset_key, asset_partitions=[partition] if is_partitioned else None
    )
    found = context.instance.fetch_materializations(wanted, limit=runs).records
    shown = [each.asset_materialization for each in found]
    return [each.metadata.get(name) for each in shown if each]
