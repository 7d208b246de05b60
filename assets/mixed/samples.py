"""Turn tokens into samples: count the samples of a source that come nearest to its budget.

If all samples are equally long, it is a division. Otherwise tokens are counted in the order in
which the phase draws them, block by block; whole epochs have all tokens of the source, so that only
the last one is counted. Memory: 4 bytes per sample of the source.

Sources that give no sample, the padding of a batch, and the samples that fill no whole block of one
bucket are known without counting: from the first row that the phase draws, and from the rows of
each bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from assets.mixed.budgets import Budget, drawable
from resources.settings.buckets import split_bucket
from resources.settings.phases import PhaseConfig

BLOCK = 1 << 20
BATCH = 8  # samples of the batch whose padding is estimated
MANY_IN_RESTS = 0.1  # share of a phase's samples

Lengths = npt.NDArray[np.uint32]
RowsAt = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]]  # j-th draws of a source -> rows


@dataclass(frozen=True)
class SourceRows:
    """Rows of a source that a phase draws from.

    `first`: tokens of the first row that is drawn; `buckets`: (rows, stored tokens) by bucket.
    """

    first: int
    buckets: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def none_drawn(budgets: Sequence[Budget], rows: Mapping[str, SourceRows]) -> list[Budget]:
    """Return the budgets that give no sample: at most half of the first (see `nearest_count`)."""
    return [
        unit
        for unit in drawable(budgets)
        if unit.source in rows and 2 * unit.planned <= rows[unit.source].first
    ]


def num_lengths(rows: Mapping[str, SourceRows]) -> int:
    """Count the buckets that a phase draws from, whatever the group of their documents."""
    return len({split_bucket(name)[0] for source in rows.values() for name in source.buckets})


def padding_share(budgets: Sequence[Budget], rows: Mapping[str, SourceRows]) -> float:
    """Estimate the share of padding in a batch of 8 rows, filled up to its longest one.

    A row counts with its bucket's mean length: the estimate is low for buckets with a range.
    """
    drawn = [
        (stored / count, unit.planned / unit.available * count)
        for unit in drawable(budgets)
        if unit.source in rows
        for count, stored in rows[unit.source].buckets.values()
        if count
    ]
    lengths, samples = np.array(sorted(drawn)).reshape(-1, 2).T
    if not samples.sum():
        return 0.0
    share = samples / samples.sum()
    none_longer = np.minimum(np.cumsum(share), 1) ** BATCH  # P(longest of a batch <= length)
    longest = float((np.diff(none_longer, prepend=0) * lengths).sum())
    return 1 - float((share * lengths).sum()) / longest


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


def nearest_equal_samples(planned: int, sample_tokens: int) -> tuple[int, int]:
    """Return the (samples, tokens) nearest to `planned` where every sample has `sample_tokens`.

    Of two equally near counts, this and the functions below return the smaller.
    """
    count, rest = divmod(planned, sample_tokens)
    count += int(2 * rest > sample_tokens)
    return count, count * sample_tokens


def nearest_samples(planned: int, lengths: Lengths, rows_at: RowsAt) -> tuple[int, int]:
    """Return the (samples, tokens) nearest to `planned`; `lengths` are the tokens of each row.

    `rows_at` maps draws to rows; every `len(lengths)` draws visit all rows once.
    """
    size = len(lengths)
    epochs, rest = divmod(planned, int(lengths.sum(dtype=np.int64)))
    samples, tokens = epochs * size, planned - rest
    for start in range(0, size, BLOCK):
        draws = np.arange(start, min(start + BLOCK, size), dtype=np.int64) + epochs * size
        reached = np.cumsum(lengths[rows_at(draws)], dtype=np.int64)
        count = nearest_count(reached, rest)
        if count < len(reached) or int(reached[-1]) >= rest:
            return samples + count, tokens + (int(reached[count - 1]) if count else 0)
        samples, tokens, rest = samples + count, tokens + int(reached[-1]), rest - int(reached[-1])
    return samples, tokens


def tokens_of_first(samples: int, lengths: Lengths, rows_at: RowsAt) -> int:
    """Count the tokens of the first draws of a source; `lengths`, `rows_at`: `nearest_samples`."""
    epochs, rest = divmod(samples, len(lengths))
    tokens = epochs * int(lengths.sum(dtype=np.int64))
    for start in range(0, rest, BLOCK):
        draws = np.arange(start, min(start + BLOCK, rest), dtype=np.int64) + epochs * len(lengths)
        tokens += int(lengths[rows_at(draws)].sum(dtype=np.int64))
    return tokens


def nearest_count(reached: npt.NDArray[np.int64], wanted: int) -> int:
    """Return the number of samples whose running total is nearest to `wanted` (fewer, on a tie)."""
    above = int(np.searchsorted(reached, wanted))
    if above == reached.size:
        return above
    below_total = int(reached[above - 1]) if above else 0
    return above + 1 if int(reached[above]) - wanted < wanted - below_total else above
