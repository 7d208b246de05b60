"""Mixture of a phase: the samples of each source, and the fingerprint of their order.

The order is computed from the mixture (corpus_loader/order.py), never stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import UNSET

from assets.mixed.budgets import Budget
from assets.mixed.mixed_records import MixNumbers, SourceMix
from assets.mixed.phase_source_files import (
    PhaseSource,
    PhaseStart,
    row_lengths,
    same_or_none,
    source_order,
)
from assets.mixed.plan import PhasePlan
from assets.mixed.report import Drawn, shares_over_position
from assets.mixed.samples import nearest_equal_samples, nearest_samples, tokens_of_first
from assets.tokenized.tokenized_records import TokenFacts
from corpus_loader.mixture import MIXTURE_FILE, Mixture, MixtureSource, Shard, parse_mixture
from resources.settings.phases import PhaseConfig, ValidationPhase
from resources.store.records import FileRecord, Manifest, as_json_object, fingerprint_of
from resources.store.store import Store


@dataclass(frozen=True)
class PhaseInputs:
    """Input of the task that mixes a phase; `sources` are those of the plan's units, in order."""

    config: PhaseConfig
    plan: PhasePlan
    sources: tuple[PhaseSource, ...]
    tokens: TokenFacts
    code_version: str  # of the stage
    start: PhaseStart

    @property
    def is_written(self) -> bool:
        """True if its samples are written as shards; there may be none that are held out."""
        return bool(self.config.formats and self.sources)


def mix_numbers(mixture: Mixture) -> MixNumbers:
    """Return the numbers of a mixture for its manifest."""
    fields = SourceMix.__struct_fields__
    mix = {
        source.name: SourceMix(
            **{field: getattr(source, field) for field in fields if field != "weights_at"},
            weights_at=source.weights_at or UNSET,
        )
        for source in mixture.sources
    }
    return MixNumbers(mix, list(mixture.warnings))


def mixture_of(root: Path, inputs: PhaseInputs) -> Mixture:
    """Mix a phase: count the samples of its sources, and fingerprint their order."""
    config, plan, tokens, start = inputs.config, inputs.plan, inputs.tokens, inputs.start
    drawn = tuple(
        mixture_source(root, config, source, budget, start)
        for source, budget in zip(inputs.sources, plan.units, strict=True)
    )
    removed = {source.name: removed_digests(root, source) for source in inputs.sources}
    return Mixture(
        phase=config.name,
        seed=start.seed,
        epoch_samples=sum(source.samples for source in drawn),
        tokens=sum(source.realised_tokens for source in drawn),
        batch_samples=block_samples(config, drawn),
        one_bucket_batches=config.one_bucket_batches,
        window_shards=config.window_shards,
        sequence_length=same_or_none(source.sequence_length for source in inputs.sources),
        fingerprint=order_fingerprint(inputs, drawn, removed),
        sources=drawn,
        warnings=plan.warnings,
        order_phase=start.phase if config.continues else "",
        knots=tuple(config.weights_at or ()),
        is_validation=isinstance(config, ValidationPhase),
        **as_json_object(tokens),
    )


def block_samples(config: PhaseConfig, sources: tuple[MixtureSource, ...]) -> int:
    """Return the samples of a block: one where all of a phase with changing weights is in one.

    Samples are permuted within blocks, so that one block has the mean of the weights throughout.
    """
    samples = sum(source.samples for source in sources)
    is_one_block = config.weights_at is not None and samples <= config.batch_samples
    return 1 if is_one_block else config.batch_samples


def order_fingerprint(
    inputs: PhaseInputs,
    sources: tuple[MixtureSource, ...],
    removed: Mapping[str, Mapping[str, str]],
) -> str:
    """Fingerprint the data and the order of a phase: a saved position is valid under it only.

    The same samples from other files have another fingerprint: to know that they are the same would
    take a look at every row. Rows removed from shards that the phase does not draw from change
    nothing.
    """
    drawn = [
        (
            source.name,
            source.samples,
            [shard_fingerprint_fields(s, removed[source.name]) for s in source.shards],
        )
        for source in sources
        if source.samples
    ]
    config, tokenizer = inputs.config, inputs.tokens.tokenizer_fingerprint
    order: tuple[Any, ...] = (
        inputs.start.seed,
        block_samples(config, sources),
        config.window_shards,
        tokenizer,
        drawn,
    )
    if config.weights_at is not None:
        weights = [source.weights_at for source in sources if source.samples]
        order = (*order, "weights_at", list(config.weights_at), weights)
    if config.continues is not None:
        starts = [source.start for source in sources if source.samples]
        return fingerprint_of(*order, "continues", starts)
    if config.one_bucket_batches:
        buckets = [[s.bucket for s in source.shards] for source in sources if source.samples]
        return fingerprint_of(*order, buckets)
    return fingerprint_of(*order)


def shard_fingerprint_fields(shard: Shard, removed: Mapping[str, str]) -> tuple[Any, ...]:
    """Return the fields of a shard that belong to the fingerprint; removed: `removed_digests`."""
    is_removed = [removed[shard.path]] if shard.removed else []
    return (shard.live_rows, shard.files or shard.path, *is_removed)


def removed_digests(root: Path, source: PhaseSource) -> dict[str, str]:
    """Return the hash of the removed rows of each shard that has any, by its path."""
    removed = {shard.path: shard.removed for shard in source.shards if shard.removed}
    return {
        path: hashlib.sha256(rows.read(root).tobytes()).hexdigest()
        for path, rows in removed.items()
    }


def mixture_source(
    root: Path, config: PhaseConfig, source: PhaseSource, budget: Budget, start: PhaseStart
) -> MixtureSource:
    """Describe one source of a mixture: the plan, its realisation and the source's shards."""
    samples, tokens = count_samples(root, config, source, budget.planned, start)
    return MixtureSource(
        name=source.name,
        weight=budget.weight,
        planned_tokens=budget.planned,
        realised_tokens=tokens,
        available_tokens=source.tokens,
        epochs=round((budget.before + tokens) / source.tokens, 6),
        samples=samples,
        rows=source.rows,
        shards=tuple(shard.record() for shard in source.shards),
        removed=source.removed,
        start=start.samples.get(source.name, 0),
        weights_at=tuple(map(float, budget.shares_at)),
        loss_weight=loss_weight(config, source.name),
    )


def loss_weight(config: PhaseConfig, drawn: str) -> float:
    """Return the factor of the loss of what is drawn: that of its class, its source, or 1."""
    given = config.loss_weights or {}
    return given.get(drawn, given.get(drawn.partition("/")[0], 1.0))


def count_samples(
    root: Path, config: PhaseConfig, source: PhaseSource, planned: int, start: PhaseStart
) -> tuple[int, int]:
    """Return the (samples, tokens) nearest to the plan, counted in the order of the phase.

    Of validation each row is a sample.
    """
    if isinstance(config, ValidationPhase):
        return source.rows, source.tokens
    length = source.equal_length
    if length is not None:
        return nearest_equal_samples(planned, length)
    order = source_order(config, source, start.seed)
    lengths = row_lengths(root, source)
    samples, tokens = (drawn.get(source.name, 0) for drawn in (start.samples, start.tokens))
    reached = nearest_samples(planned + tokens, lengths, lambda draws: order.rows(draws)[0])
    return reached[0] - samples, reached[1] - tokens


def tokens_drawn(root: Path, config: PhaseConfig, source: PhaseSource, start: PhaseStart) -> int:
    """Count the tokens of the samples of a source that were drawn before the start of a phase."""
    samples = start.samples.get(source.name, 0)
    if source.equal_length is not None:
        return samples * source.equal_length
    order = source_order(config, source, start.seed)
    lengths = row_lengths(root, source)
    return tokens_of_first(samples, lengths, lambda draws: order.rows(draws)[0])


def read_mixture(store: Store, manifest: Manifest[Any, Any]) -> Mixture:
    """Read the mixture of a phase that is materialized."""
    file = store.part_file(manifest, manifest.parts[0], MIXTURE_FILE)
    return parse_mixture(file.checked().read_bytes())


def mixture_files(mixture: Mixture) -> Iterator[tuple[str, FileRecord]]:
    """Yield (path in the store, record) of the files that a mixture names."""
    for source in mixture.sources:
        if removed := source.removed:
            yield removed.path, FileRecord("", removed.path, 0, removed.bytes, removed.sha256, "")
        for shard in source.shards:
            for suffix, file in shard.files.items():
                path = f"{shard.path}.{suffix}"
                yield path, FileRecord(suffix, path, 0, file.bytes, file.sha256, "")


def realised(mixture: Mixture) -> Drawn:
    """Compute the tokens drawn of each source, and its share of them over the phase."""
    order = mixture.order(mixture.seed)
    shares = shares_over_position(
        lambda positions: order.samples(positions).source,
        len(order),
        [source.realised_tokens / max(1, source.samples) for source in mixture.sources],
        order.batch_samples,
    )
    tokens = {source.name: source.realised_tokens for source in mixture.sources}
    return Drawn(tokens, shares, is_estimated=mixture.sequence_length is None)
