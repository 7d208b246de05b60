"""Classes of the sources of a phase with `upsample`: each is drawn by itself, by its weight.

What is drawn is named after source and class, "web/class-2"; no source has a slash in its name.
Documents without a score are in no class: they weigh 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from assets.mixed.budgets import Classes, ClassTokens, MixError
from assets.mixed.phase_source_files import PhaseShard, PhaseSource, phase_source
from resources.settings.classes import class_names, class_weights
from resources.settings.phases import PhaseConfig
from resources.store.records import Manifest, as_json_object

NO_CLASS = "no-class"  # documents without a score, beside some that have one
UNSCORED = Fraction(1)  # their weight


def drawn_source(config: PhaseConfig, manifest: Manifest[Any, Any]) -> PhaseSource:
    """Return a source's shards of the buckets of a phase; with `upsample` also by class.

    Raises MixError if its shards have no classes, or others than `upsample` weighs.
    """
    source = phase_source(manifest, config.buckets)
    if config.upsample is None:
        return source
    weights = weights_of(config, source.name, manifest)
    by_class: dict[str, list[PhaseShard]] = {name: [] for name in [*weights, ""]}
    for shard in source.shards:
        by_class[class_of(shard.bucket)].append(shard)
    if not any(by_class[name] for name in weights):
        return source
    classes = (
        PhaseSource(
            f"{source.name}/{name or NO_CLASS}", tuple(shards), weight=weights.get(name, UNSCORED)
        )
        for name, shards in by_class.items()
    )
    return replace(source, classes=tuple(each for each in classes if each.tokens))


def weights_of(
    config: PhaseConfig, source: str, manifest: Manifest[Any, Any]
) -> dict[str, Fraction]:
    """Return the weights of the classes that the shards of a source were packed in, by name."""
    limits = limits_of(manifest)
    if limits is None or config.upsample is None:
        raise MixError(
            f"phase {config.name!r} has `upsample`, but {source!r} was packed without classes. "
            "Materialize `bucketed` and `sharded` for it first."
        )
    try:
        weights = class_weights(config.upsample, limits)
    except ValueError as error:
        raise MixError(
            f"phase {config.name!r}, `upsample`: {error}. {source!r} was packed in these classes: "
            "materialize `bucketed` and `sharded` for it if the config has others."
        ) from error
    return dict(zip(class_names(limits), weights, strict=True))


def limits_of(manifest: Manifest[Any, Any]) -> list[float] | None:
    """Return the limits of the classes that a source was packed in, None if it has no classes."""
    classes = as_json_object(manifest.provenance).get("classes")
    return None if classes is None else classes["limits"]


def class_of(bucket: str) -> str:
    """Return the class of a bucket's documents: "class-2" of "2048.class-2", "" without one."""
    return bucket.partition(".")[2]


def class_tokens(sources: Iterable[PhaseSource]) -> Classes:
    """Return the tokens and weights of the classes of the sources that have some."""
    return {
        source.name: {each.name: ClassTokens(each.tokens, each.weight) for each in source.classes}
        for source in sources
        if source.classes
    }


def check_classes(config: PhaseConfig, sources: Sequence[PhaseSource]) -> None:
    """Raise MixError if a phase weighs classes, and no document of its sources is in one."""
    if config.upsample is not None and not any(source.classes for source in sources):
        names = ", ".join(repr(source.name) for source in sources)
        raise MixError(
            f"phase {config.name!r} has `upsample`, but no document of {names} has the score of "
            "`buckets.classes`. Take `upsample` out, or a score that `filtered` stores for them."
        )
