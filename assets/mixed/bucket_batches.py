"""What batches of one bucket do to a phase: the samples that fill no whole block of theirs.

Known before anything is counted, from the rows of each bucket and the epochs of each source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assets.mixed.budgets import Budget, drawable
from assets.mixed.samples import SourceRows, num_lengths
from resources.settings.buckets import split_bucket
from resources.settings.phases import PhaseConfig

MANY_IN_RESTS = 0.1  # share of a phase's samples


def samples_by_bucket(budgets: Sequence[Budget], rows: Mapping[str, SourceRows]) -> dict[str, int]:
    """Estimate the samples that a phase draws of each bucket, whatever their group."""
    drawn: dict[str, float] = {}
    for unit in drawable(budgets):
        if unit.source in rows:
            for name, (count, _) in rows[unit.source].buckets.items():
                bucket = split_bucket(name)[0]
                drawn[bucket] = drawn.get(bucket, 0) + unit.planned / unit.available * count
    return {name: round(count) for name, count in drawn.items()}


def rest_share(samples: Mapping[str, int], batch_samples: int) -> float:
    """Return the share of samples that fill no block of one bucket, 0 to 1."""
    rests = sum(count % batch_samples for count in samples.values())
    return rests / max(1, sum(samples.values()))


def rest_warnings(
    config: PhaseConfig, budgets: Sequence[Budget], rows: Mapping[str, SourceRows]
) -> list[str]:
    """Warn of a phase of one-bucket batches most of whose end is in rests."""
    share = rest_share(samples_by_bucket(budgets, rows), config.batch_samples)
    if not config.one_bucket_batches or num_lengths(rows) < 2 or share <= MANY_IN_RESTS:
        return []
    return [
        f"{share:.0%} of the samples of phase {config.name!r} fill no block of "
        f"{config.batch_samples} samples of one bucket, and come at its end, the shortest first. "
        "Lower `batch_samples` to the global batch, or leave out `buckets` with few rows."
    ]


def bucket_notes(
    config: PhaseConfig, budgets: Sequence[Budget], rows: Mapping[str, SourceRows]
) -> list[str]:
    """Return what `corpus plan` says of a phase that draws from several buckets."""
    if num_lengths(rows) < 2:
        return []
    share = rest_share(samples_by_bucket(budgets, rows), config.batch_samples)
    if not config.one_bucket_batches:
        if share > MANY_IN_RESTS:
            return []
        return [
            "`one_bucket_batches: true` would give every batch rows of one bucket, but for "
            f"{share:.1%} of the samples, at the end of the phase"
        ]
    return [
        f"blocks of {config.batch_samples} samples are of one bucket each; {share:.1%} of the "
        "samples fill none, and come at the end of the phase"
    ]
