"""Find what a phase is mixed from: its plan, its shards, and what earlier phases drew of them.

A phase that `continues` another goes on where that one would stop if it were mixed from the newest
shards: it is planned and counted here again, and the one that it continues, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import structs

from assets.mixed.budgets import MixError
from assets.mixed.mixture_files import PhaseInputs, mixture_of, tokens_drawn
from assets.mixed.phase_class_files import (
    check_classes,
    check_loss_weights,
    class_tokens,
    drawn_source,
)
from assets.mixed.phase_source_files import (
    PhaseStart,
    check_flat,
    one_tokenizer,
    own_start,
    source_rows,
)
from assets.mixed.plan import PhasePlan, plan_phase
from assets.sharded.sharded_records import SHARDED
from corpus_loader.order import PhaseOrder
from resources.corpus import Corpus
from resources.settings.phases import PhaseConfig
from resources.store.records import Manifest


def phase_inputs(
    corpus: Corpus, config: PhaseConfig, code_version: str
) -> tuple[PhaseInputs, list[Manifest[Any, Any]]]:
    """Return the input of the task that mixes a phase, and the `sharded` manifests of its sources.

    Raises MixError if the phase, or one that it continues, is refused.
    """
    drawable = config.sources_of(tuple(corpus.settings.source_names()))
    # Read untyped: `one_tokenizer` says which sources have shards of an older version.
    manifests = [corpus.store.newest(SHARDED.name, source) for source in drawable]
    start = start_of(corpus, config, code_version)
    plan = plan_from_shards(corpus.store.root, config, manifests, start).accepted()
    tokens = one_tokenizer(config.name, manifests)
    rows = corpus.settings.tokenizer.rows_of(tokens.vocab_size)
    tokens = structs.replace(tokens, vocab_size=rows)
    sources = [drawn_source(config, manifest) for manifest in manifests]
    planned = {unit.source for unit in plan.units}
    units = (unit for source in sources for unit in source.units if unit.name in planned)
    return PhaseInputs(config, plan, tuple(units), tokens, code_version, start), manifests


def start_of(corpus: Corpus, config: PhaseConfig, code_version: str) -> PhaseStart:
    """Return where a phase begins; MixError if the phase that it continues is refused."""
    if config.continues is None:
        return own_start(config)
    root, earlier = corpus.store.root, corpus.settings.phase(config.continues.phase)
    inputs, _ = phase_inputs(corpus, earlier, code_version)
    mixture = mixture_of(root, inputs)
    order = mixture.order(mixture.seed)
    assert isinstance(order, PhaseOrder), "the settings refuse phases of one-bucket batches"
    stop = len(order) if config.continues.at is None else config.continues.at
    names = [source.name for source in mixture.sources]
    try:
        reached = dict(zip(names, order.starts_after(stop).tolist(), strict=True))
    except ValueError as error:
        raise MixError(f"phase {config.name!r} continues {earlier.name!r}: {error}") from error
    start = replace(inputs.start, samples={**inputs.start.samples, **reached})
    tokens = {source.name: tokens_drawn(root, earlier, source, start) for source in inputs.sources}
    return replace(start, tokens={**inputs.start.tokens, **tokens})


def plan_from_shards(
    root: Path, config: PhaseConfig, manifests: Sequence[Manifest[Any, Any]], start: PhaseStart
) -> PhasePlan:
    """Plan a phase from the `sharded` manifests of all its sources; the plan carries its faults.

    It is the verdict of `mixed` and of `corpus plan`.
    """
    try:
        sources = [drawn_source(config, manifest) for manifest in manifests]
        one_tokenizer(config.name, manifests)
        check_classes(config, sources)
        check_loss_weights(config, sources)
        if config.formats:
            check_flat(config.name, sources)
        units = [unit for source in sources for unit in source.units]
        rows = {unit.name: source_rows(root, config, unit, start) for unit in units}
    except MixError as error:
        return PhasePlan(config.name, (), faults=(str(error),))
    available = {source.name: source.tokens for source in sources}
    return plan_phase(config, available, rows, class_tokens(sources), start.tokens)
