"""Compare a number of a partition with its value in earlier runs.

It warns and stops nothing: a jump may be intended. The history is Dagster's own: the
metadata of the partition's earlier materializations.
"""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from resources.corpus import Corpus
from resources.stage import HistoryCheck, Refusal, WarningCheck

RUNS = 10  # earlier materializations that are read, one query a partition


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
        earlier = earlier_numbers(context, partition, check.number)
        has_jumped, facts[partition] = check.has_jumped(corpus, number, earlier)
        jumped += [partition] * has_jumped
    return dg.AssetCheckResult(
        check_name=check.name,
        passed=not jumped,
        severity=dg.AssetCheckSeverity.WARN,
        description="; ".join(sentence(name, facts[name]) for name in jumped) or None,
        metadata={"jumped": jumped, "partitions": {name: dict(facts[name]) for name in facts}},
    )


def earlier_numbers(context: dg.AssetExecutionContext, partition: str, number: str) -> list[float]:
    """Return the number in the newest materializations of a partition, the newest first."""
    is_partitioned = context.assets_def.partitions_def is not None
    wanted = dg.AssetRecordsFilter(
        context.asset_key, asset_partitions=[partition] if is_partitioned else None
    )
    found = context.instance.fetch_materializations(wanted, limit=RUNS).records
    shown = [each.asset_materialization for each in found]
    numbers = [number_of(each.metadata.get(number)) for each in shown if each]
    return [value for value in numbers if value is not None]


def number_of(value: Any) -> float | None:
    """Return a number of Dagster's metadata, None for any other value."""
    if isinstance(value, dg.FloatMetadataValue | dg.IntMetadataValue):
        value = value.value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None


def sentence(partition: str, facts: Mapping[str, float]) -> str:
    """Return a sentence such as `prose: rate 0.4, median 0.1, runs 10`."""
    return f"{partition}: " + ", ".join(f"{name} {value:.3g}" for name, value in facts.items())
