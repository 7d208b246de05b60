"""`phases`: shares of the sources, length and order of a phase of training.

    budgets        tokens per source                          (assets/mixed/budgets.py)
    samples        number of samples nearest to the budgets   (assets/mixed/samples.py)
    order          position of each sample                    (corpus_loader/order.py)

Shares are given as weights or budgets, or follow from the sizes of the sources: `natural` (as they
are), `temperature` (sizes to the power of `exponent`; mT5 and XLM-R take 0.3), `unimax` (equal
shares, no source beyond its cap of epochs; Chung et al. 2023, arXiv 2304.09151).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    field_validator,
    model_validator,
)

from resources.settings.buckets import (
    Steps,
    check_steps,
    class_lengths,
    class_weights,
    exact,
)
from resources.settings.faults import nearest
from resources.settings.frozen_model import FrozenModel
from resources.settings.key_types import EACH_ONCE
from resources.settings.shards import FormatName

Weighting = Literal["natural", "temperature", "unimax"]
SUM_TOLERANCE = Fraction(1, 10**6)  # 0.333333 three times counts as 1
SHARES = ("weights", "weights_at", "weighting", "budgets")


class Continued(FrozenModel):
    """The earlier phase, and the position in it at which the training left it."""

    phase: str = Field(description="name of the earlier phase")
    at: int | None = Field(
        default=None,
        ge=1,
        description="samples of the earlier phase before the position where the training left it: "
        "`cursor` of a saved state; null: at the end of its epoch",
    )


NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
SOME = Field(min_length=1)
Upsample = Annotated[Steps, SOME] | Annotated[dict[str, NonNegative], SOME]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class FittedTo(FrozenModel):
    """The files of proxy runs that weights were fitted to, by the SHA-256 of their bytes."""

    ratios: Sha256 = Field(description="SHA-256 of the mixtures of the runs")
    metrics: Sha256 = Field(description="SHA-256 of what was measured of each run")


def _named(given: Any) -> Any:
    return {"phase": given} if isinstance(given, str) else given


def check_knots(knots: Iterable[float]) -> None:
    """Raise ValueError for shares of a phase that do not ascend from 0 to 1."""
    given = list(knots)
    is_ascending = all(map(math.isfinite, given)) and given == sorted(given)
    if not is_ascending or given[:1] != [0] or given[-1:] != [1]:
        raise ValueError(
            f"`weights_at` is for the shares {given} of the phase; they must ascend from 0.0 to 1.0"
        )


Continues = Annotated[Continued, BeforeValidator(_named, json_schema_input_type=Continued | str)]


class PhaseConfig(FrozenModel):
    """One phase of training: shares of the sources, length, caps on epochs, and order."""

    name: str = Field(description="name of the phase, and of its partition in the UI")
    weights: dict[str, float] | None = Field(
        default=None, description="share of tokens per source, normalised to sum to 1"
    )
    fitted: FittedTo | None = Field(
        default=None,
        exclude_if=lambda fitted: fitted is None,  # phases without it keep their fingerprints
        description="where the weights are from, as `corpus mix fit` prints it; it changes nothing",
    )
    weights_at: dict[float, dict[str, float]] | None = Field(
        default=None,
        exclude_if=lambda weights: weights is None,  # phases without it keep their fingerprints
        description="weights that change over the phase, instead of weights: by share of its "
        "tokens, from 0.0 to 1.0, and linear in between. {0.0: {web: 0.8, books: 0.2}, 1.0: {web: "
        "0.2, books: 0.8}}; a source that one of them leaves out has weight 0 there",
    )
    weighting: Weighting | None = Field(
        default=None,
        description="shares by the sizes of the sources, instead of weights: natural, temperature "
        "or unimax",
    )
    budgets: dict[str, int] | None = Field(
        default=None, description="tokens per source, instead of weights"
    )
    sources: tuple[str, ...] | None = Field(
        default=None, description="with weighting: sources of the phase; null: all"
    )
    exponent: float = Field(
        default=0.3,
        ge=0,
        le=1,
        description="with weighting temperature: share ~ tokens^exponent (0: equal, 1: natural)",
    )
    tokens: int | None = Field(
        default=None,
        ge=1,
        description="tokens of the phase; null: as many as need no second epoch of any source",
    )
    one_epoch_of: str | None = Field(
        default=None,
        description="source whose single epoch gives the length of the phase, instead of tokens",
    )
    warn_epochs: float = Field(
        default=4.0,
        gt=0,
        allow_inf_nan=False,
        description="epochs of a source above which a warning is given (and unimax stops): up to 4 "
        "epochs are nearly as good as new data (Muennighoff et al. 2023, arXiv 2305.16264)",
    )
    max_epochs: float = Field(
        default=16.0,
        gt=0,
        allow_inf_nan=False,
        description="epochs of a source above which the phase is refused: beyond 16 epochs nearly "
        "nothing is learned (the same paper)",
    )
    epochs: dict[str, float] = Field(
        default_factory=dict,
        description="cap of epochs by source, instead of max_epochs (with unimax: warn_epochs)",
    )
    buckets: Annotated[tuple[str, ...], EACH_ONCE] | None = Field(
        default=None, min_length=1, description="buckets that the phase draws from; null: all"
    )
    upsample: Upsample | None = Field(
        default=None,
        exclude_if=lambda steps: steps is None,  # phases without it keep their fingerprints
        description="pairs [border, weight] by ascending score: how often the classes of "
        "`buckets.classes` up to each border are drawn, relative to each other. [[0.4, 0], "
        "[0.95, 1], [1.0, 7]] leaves out scores below 0.4 and draws those from 0.95 on seven "
        "times. Or the weight of each class by name, of all sources: {class-art: 2}; others have "
        "1. null: all classes alike",
    )
    lengths: dict[Annotated[int, Field(ge=0)], float] | None = Field(
        default=None,
        min_length=1,
        exclude_if=lambda lengths: lengths is None,  # phases without it keep their fingerprints
        description="share of the phase's tokens by the length of the documents they are of, from "
        "so many tokens on: {0: 0.4, 8192: 0.3, 32768: 0.3}. It needs `buckets.classes: {score: "
        "tokens, limits: [8192, 32768]}`; the shares of the sources stay as they are",
    )
    loss_weights: dict[str, NonNegative] | None = Field(
        default=None,
        min_length=1,
        exclude_if=lambda weights: weights is None,  # phases without it keep their fingerprints
        description="factor of the loss of each token by source, apart from how often it is drawn; "
        "with `upsample` or `lengths` also by class: {web/class-0: 0.5, books: 2}. Others have 1",
    )
    batch_samples: int = Field(
        default=512,
        ge=1,
        le=4096,
        description="samples of a block: the global batch, or a multiple or divisor of it; every "
        "aligned block holds the phase's mix to within two samples per source",
    )
    one_bucket_batches: bool = Field(
        default=False,
        exclude_if=lambda is_used: not is_used,  # phases without it keep their fingerprints
        description="draw every block of batch_samples from one bucket, so that batches pad rows "
        "to the lengths of one bucket only",
    )
    window_shards: int | None = Field(
        default=None,
        ge=1,
        description="shards of a source in the window that is shuffled, for remote reading; null: "
        "the whole source",
    )
    formats: tuple[FormatName, ...] = Field(
        default=(), description="formats in which the phase is also written as shards, in its order"
    )
    target_bytes: int = Field(
        default=64 << 20,
        ge=1024,
        le=2 << 30,  # as in `shards`: MDS and litData have 32-bit offsets
        description="bytes of token ids in a shard of the phase",
    )
    seed: int = Field(default=0, ge=0, description="seed of the order of the phase")
    continues: Continues | None = Field(
        default=None,
        exclude_if=lambda continued: continued is None,  # phases without it keep fingerprints
        description="earlier phase whose order this one goes on with, so that nothing that was "
        "seen is drawn again before its source is used up: its name, or {phase: NAME, at: SAMPLES}",
    )

    @field_validator("upsample")
    @classmethod
    def check_upsample(cls, given: Upsample | None) -> Upsample | None:
        """Refuse borders that do not ascend, and their weights that are negative or all 0."""
        if isinstance(given, tuple):
            check_steps(given)
        return given

    @field_validator("lengths")
    @classmethod
    def check_lengths(cls, lengths: dict[int, float] | None) -> dict[int, float] | None:
        """Sort the lengths; refuse some that do not begin with 0, and shares without the sum 1."""
        if lengths is None:
            return None
        if 0 not in lengths:
            raise ValueError(f"the lengths are {sorted(lengths)}; the first must be 0")
        is_share = all(math.isfinite(share) and share >= 0 for share in lengths.values())
        if not is_share or abs(sum(map(exact, lengths.values()), Fraction()) - 1) > SUM_TOLERANCE:
            raise ValueError(
                f"the shares are {[*lengths.values()]}; each must be 0 or more, and their sum 1"
            )
        return dict(sorted(lengths.items()))  # JSON has them by their digits

    @model_validator(mode="after")
    def check_classes(self) -> Self:
        """Refuse `lengths` beside other weights of classes, and with shares that follow caps."""
        if self.lengths is not None and self.upsample is not None:
            raise ValueError(
                "`upsample` and `lengths` both weigh the classes of `buckets.classes`, which are "
                "by a score or by length, not by both: leave one of them out"
            )
        if self.lengths is not None and self.weighting == "unimax":
            raise ValueError(
                "`lengths` does not go with `weighting: unimax`: sources that are used up would "
                "change the shares of lengths. Give `weights`, or another `weighting`"
            )
        return self

    @model_validator(mode="after")
    def check_shares(self) -> Self:
        """Refuse shares given in two ways, negative or infinite ones, and those that sum to 0."""
        if sum(getattr(self, key) is not None for key in SHARES) != 1:
            raise ValueError("give either `weights`, `weighting` or `budgets`, or `weights_at`")
        for shares in self.weights_at.values() if self.weights_at else [self.given_shares() or {}]:
            for source, share in shares.items():
                if not math.isfinite(share) or share < 0:
                    raise ValueError(f"weight of {source!r} is {share}; it must be 0 or more")
            if self.weighting is None and sum(shares.values()) <= 0:
                raise ValueError("the weights sum to 0; give at least one source a positive weight")
        for source, cap in self.epochs.items():
            if not math.isfinite(cap) or cap <= 0:
                raise ValueError(f"epochs of {source!r} is {cap}; it must be more than 0")
        return self

    @model_validator(mode="after")
    def check_weights_at(self) -> Self:
        """Refuse weights at shares that are not from 0 to 1, and for blocks of one bucket.

        Refuse `fitted` without weights, too.
        """
        if self.fitted is not None and self.weights is None:
            raise ValueError("`fitted` says where `weights` are from, of which there are none")
        if self.weights_at is not None:
            check_knots(self.weights_at)
        if self.weights_at is not None and self.one_bucket_batches:
            raise ValueError(
                "`weights_at` does not go with `one_bucket_batches`: each bucket would take its "
                "turns with weights of its own. Leave one of them out"
            )
        return self

    @model_validator(mode="after")
    def check_companions(self) -> Self:
        """Refuse keys without the keys that they need, and keys that exclude each other."""
        lengths = [key for key in ("tokens", "one_epoch_of") if getattr(self, key) is not None]
        if self.budgets is not None and lengths:
            raise ValueError(
                f"`{lengths[0]}` goes with `weights` or `weighting`; `budgets` already say how many"
            )
        if len(lengths) == 2:
            raise ValueError("give either `tokens` or `one_epoch_of`")
        if self.sources is not None and self.weighting is None:
            raise ValueError("`sources` goes with `weighting`; `weights` and `budgets` name theirs")
        if self.sources is not None and not self.sources:
            raise ValueError("`sources` is empty; name some, or leave it out for all")
        if self.loss_weights is not None and self.formats:
            raise ValueError(
                "`loss_weights` does not go with `formats`: only `corpus_loader` gives the "
                "weights, and other readers would train without them. Leave one of the two out"
            )
        if self.continues is not None and "seed" in self.model_fields_set:
            raise ValueError("`seed` does not go with `continues`: the order is the earlier one's")
        if self.continues is not None and not lengths and self.budgets is None:
            raise ValueError("`continues` needs a length: give `tokens` or `one_epoch_of`")
        if "exponent" in self.model_fields_set and self.weighting != "temperature":
            raise ValueError("`exponent` goes with `weighting: temperature`")
        named = self.sources_of(())
        if self.one_epoch_of is not None and named and self.one_epoch_of not in named:
            raise ValueError(f"`one_epoch_of` names {self.one_epoch_of!r}, which has no share here")
        return self

    @property
    def draws_classes(self) -> bool:
        """Whether each class of a source is drawn by itself."""
        return self.upsample is not None or self.lengths is not None

    def given_shares(self) -> Mapping[str, float] | None:
        """Return the weight or budget of each named source, the greatest of those that change."""
        if self.weights_at is None:
            return self.weights if self.weights is not None else self.budgets
        greatest: dict[str, float] = {}
        for weights in self.weights_at.values():
            greatest |= {name: max(given, greatest.get(name, 0)) for name, given in weights.items()}
        return greatest

    def sources_of(self, every_source: tuple[str, ...]) -> tuple[str, ...]:
        """Return the phase's sources; those of weight or budget 0 are left out."""
        shares = self.given_shares()
        if shares is not None:
            return tuple(source for source, share in shares.items() if share > 0)
        return every_source if self.sources is None else tuple(dict.fromkeys(self.sources))

    def named_sources(self, every_source: tuple[str, ...]) -> tuple[str, ...]:
        """Return the phase's sources, with those of weight or budget 0."""
        shares = self.given_shares()
        return self.sources_of(every_source) if shares is None else tuple(shares)

    def references(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield (key path, name) of every source that the phase names."""
        for key in ("weights", "budgets", "epochs"):
            yield from (((key, name), name) for name in getattr(self, key) or {})
        for name in self.loss_weights or {}:
            yield ("loss_weights", name), name.partition("/")[0]
        for knot, weights in (self.weights_at or {}).items():
            yield from ((("weights_at", str(knot), name), name) for name in weights)
        yield from ((("sources", i), name) for i, name in enumerate(self.sources or ()))
        if self.one_epoch_of is not None:
            yield ("one_epoch_of",), self.one_epoch_of


def class_draws(
    phase: PhaseConfig, limits: Sequence[float], names: Iterable[str]
) -> dict[str, tuple[Fraction, int]]:
    """Return how a phase draws each class: its weight and 0, or by `lengths` a share and its key.

    The share is that of all classes of its key together. The names of classes with limits end with
    their number. Raises ValueError for borders that are no limits of classes.
    """
    if isinstance(phase.upsample, dict):
        weights = dict.fromkeys(names, 1.0) | phase.upsample
        return {name: (exact(weight), 0) for name, weight in weights.items()}
    if not limits:
        raise ValueError("classes by a label alone have no borders: weigh them by their names")
    if phase.lengths is not None:
        keys = class_lengths(phase.lengths, limits)
        draws = [(exact(phase.lengths[key]), key) for key in keys]
    else:
        assert phase.upsample is not None, "the phase draws classes"
        draws = [(weight, 0) for weight in class_weights(phase.upsample, limits)]
    return {name: draws[int(name.rpartition("-")[2])] for name in names}


class ValidationPhase(PhaseConfig):
    """The documents that are held out: each row once, in the formats of all phases."""


SAME_ORDER = ("window_shards", "buckets")  # keys that decide the order of a source by itself


def continues_fault(phase: PhaseConfig, phases: Sequence[PhaseConfig]) -> str | None:
    """Return the fault of the phase that a phase continues, None if there is none."""
    by_name = {each.name: each for each in phases}
    seen, current = [phase.name], phase
    while current.continues is not None:
        name = current.continues.phase
        if name not in by_name:
            if current is not phase:
                return None  # the phase before has this fault itself
            return (
                f"unknown phase{nearest(name, list(by_name))}; the phases are {', '.join(by_name)}"
            )
        if name in seen:
            return f"the phases continue each other in a circle: {' -> '.join([*seen, name])}"
        seen.append(name)
        current = by_name[name]
    return None if phase.continues is None else other_order(phase, by_name[phase.continues.phase])


def other_order(phase: PhaseConfig, earlier: PhaseConfig) -> str | None:
    """Return the key by which two phases differ, and with it their orders of each source."""
    for key in SAME_ORDER:
        own, other = getattr(phase, key), getattr(earlier, key)
        if own != other:
            return (
                f"phase {earlier.name!r} has {key} {shown(other)}, this one {shown(own)}, and so "
                "other orders of its sources: give both the same"
            )
    if phase.draws_classes != earlier.draws_classes:
        return (
            f"one of this phase and {earlier.name!r} has `upsample` or `lengths`, and draws "
            "classes of sources by themselves: give both some, or none"
        )
    if phase.one_bucket_batches or earlier.one_bucket_batches:
        return "does not go with `one_bucket_batches`, in this phase or in the one it continues"
    return None


def shown(value: Any) -> Any:
    """Return a value as it is in pipeline.yaml."""
    return "null" if value is None else list(value) if isinstance(value, tuple) else value
