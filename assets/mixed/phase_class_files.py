"""Classes of the sources of a phase with `upsample` or `lengths`: each is drawn by itself.

What is drawn is named after source and class, "web/class-2"; no source has a slash in its name.
Documents without a score are in no class: they weigh 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from assets.mixed.budgets import Classes, ClassTokens, MixError
from assets.mixed.phase_source_files import PhaseSource, phase_source
from resources.settings.buckets import TOKENS, split_bucket
from resources.settings.phases import PhaseConfig, class_draws
from resources.store.records import Manifest, add_counts, as_json_object

NO_CLASS = "no-class"  # documents without a score, beside some that have one
UNSCORED = (Fraction(1), 0)  # their weight


def drawn_source(config: PhaseConfig, manifest: Manifest[Any, Any]) -> PhaseSource:
    """Return a source's shards of the buckets of a phase, also by class if these are drawn.

    Raises MixError if its shards have no classes, or others than the phase draws.
    """
    source = phase_source(manifest, config)
    if not config.draws_classes:
        return source
    packed = as_json_object(manifest.provenance).get("classes")
    tokens = [(shard.bucket, shard.tokens) for shard in source.shards]
    classes = classes_of(config, source.name, packed, tokens)
    return replace(
        source,
        classes=tuple(
            PhaseSource(
                name,
                tuple(s for s in source.shards if drawn_name(source.name, s.bucket) == name),
                weight=drawn.weight,
                length=drawn.length,
            )
            for name, drawn in classes.items()
        ),
    )


def classes_of(
    config: PhaseConfig,
    source: str,
    packed: Mapping[str, Any] | None,
    tokens: Iterable[tuple[str, int]],
) -> dict[str, ClassTokens]:
    """Return the tokens of the classes of a source and how they are drawn, by what is drawn.

    In: the classes that the source was packed in (`ClassFacts` as JSON), and (bucket, tokens).
    Classes without tokens are left out; none is returned if no document is in a class. Raises
    MixError as `drawn_source` does.
    """
    by_name = ({split_bucket(bucket)[1] or NO_CLASS: count} for bucket, count in tokens if count)
    by_class = add_counts(by_name)
    names = by_class.keys() - {NO_CLASS}
    draws = draws_of(config, source, packed, names)
    return {
        f"{source}/{name}": ClassTokens(count, *draws.get(name, UNSCORED))
        for name, count in by_class.items()
        if names
    }


def draws_of(
    config: PhaseConfig, source: str, packed: Mapping[str, Any] | None, names: Iterable[str]
) -> dict[str, tuple[Fraction, int]]:
    """Return weight and length of some classes that a source was packed in, by name."""
    key = weighing_key(config)
    if packed is None or (config.lengths and packed["score"] != TOKENS):
        classes = "classes" if packed is None else "classes by length"
        raise MixError(
            f"phase {config.name!r} has `{key}`, but {source!r} was packed without {classes}. "
            "Materialize `bucketed` and `sharded` for it first."
        )
    try:
        return class_draws(config, packed["limits"], names)
    except ValueError as error:
        raise MixError(
            f"phase {config.name!r}, `{key}`: {error}. {source!r} was packed in these classes: "
            "materialize `bucketed` and `sharded` for it if the config has others."
        ) from error


def weighing_key(config: PhaseConfig) -> str:
    """Return the key by which a phase draws classes."""
    return "upsample" if config.lengths is None else "lengths"


def drawn_name(source: str, bucket: str) -> str:
    """Return the name under which the documents of a bucket are drawn, "web/class-2"."""
    return f"{source}/{split_bucket(bucket)[1] or NO_CLASS}"


def class_tokens(sources: Iterable[PhaseSource]) -> Classes:
    """Return the tokens and weights of the classes of the sources that have some."""
    return {
        source.name: {c.name: ClassTokens(c.tokens, c.weight, c.length) for c in source.classes}
        for source in sources
        if source.classes
    }


def check_loss_weights(config: PhaseConfig, sources: Iterable[PhaseSource]) -> None:
    """Raise MixError if a phase weighs the loss of what it does not draw."""
    drawn = {name for each in sources for name in (each.name, *(u.name for u in each.units))}
    if unknown := sorted({*(config.loss_weights or {})} - drawn):
        raise MixError(
            f"phase {config.name!r} has a loss weight for {unknown[0]!r}, which it does not draw; "
            f"it draws {', '.join(sorted(drawn))}"
        )


def check_classes(config: PhaseConfig, sources: Iterable[PhaseSource]) -> None:
    """Raise MixError if a phase weighs a class that no document of its sources is in."""
    drawn = {unit.name.partition("/")[2] for source in sources for unit in source.classes}
    if isinstance(config.upsample, dict) and (unknown := sorted({*config.upsample} - drawn)):
        raise MixError(
            f"phase {config.name!r} weighs {unknown[0]!r} (`upsample`), a class that no document "
            f"of its sources is in; there are: {', '.join(sorted(drawn)) or 'none'}"
        )
    if config.upsample is not None and not drawn:
        names = ", ".join(repr(source.name) for source in sources)
        raise MixError(
            f"phase {config.name!r} has `upsample`, but no document of {names} has the score of "
            "`buckets.classes`. Take `upsample` out, or a score that `filtered` stores for them."
        )
