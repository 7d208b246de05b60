"""`buckets`: training sequences from documents, and classes of them by label, quality or length.

The modes and their costs are in docs/packing.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from resources.settings.frozen_model import FrozenModel
from resources.settings.key_types import ASCENDING, ascending, power_of_two

PERCENTILE = "quality_percentile"
TOKENS = "tokens"  # the score that is a document's own length
Steps = tuple[tuple[float, float], ...]  # (border, weight): of scores below the border


class DocumentClasses(FrozenModel):
    """Classes of documents by a label, a score, or both: those of a class are packed together.

    Olmo 3 is trained on a mix of such classes: the lowest 40 % of its web pages are left out, the
    highest 5 % are repeated up to seven times (Dolma 3, Olmo team 2025).
    """

    label: str | None = Field(
        default=None,
        exclude_if=lambda label: label is None,  # configs without it keep their fingerprints
        description="label of an annotator, such as topics.topic: each label is a class, class-art "
        "or, with limits, class-art-0, class-art-1. Documents without the label are in no class",
    )
    score: str = Field(
        default=PERCENTILE,
        min_length=1,
        description="score of `filtered` (as in decisions), meta.<name>, or tokens (the length of "
        "the document), by which documents are in classes. quality_percentile is the rank among "
        "the documents of the same source and language, measured once (`quality_scale`): later "
        "documents do not move earlier ones",
    )
    limits: Annotated[tuple[float, ...], ASCENDING] = Field(
        default=(),
        min_length=1,
        exclude_if=lambda limits: not limits,
        description="ascending scores at which a class ends and the next begins: [0.4, 0.95] makes "
        "class-0 below 0.4, class-1 from 0.4 on, class-2 from 0.95 on. Documents without the score "
        "are in no class. Without limits classes are by `label` alone",
    )
    min_tokens: int = Field(
        default=0,
        ge=0,
        exclude_if=lambda tokens: not tokens,  # configs without it keep their fingerprints
        description="documents of a class with fewer tokens in its source are in no class there",
    )

    @model_validator(mode="after")
    def check_limits(self) -> Self:
        """Refuse classes by nothing, and a score without limits."""
        if not self.limits and (self.label is None or self.score != PERCENTILE):
            raise ValueError("`limits` are missing, at which classes by `score` end")
        return self

    @property
    def is_counted(self) -> bool:
        """Whether the classes of a source depend on its documents."""
        return self.label is not None or self.min_tokens > 0


def class_names(limits: Sequence[float]) -> list[str]:
    """Return the names of the classes, by ascending score: "class-0", "class-1".

    Of more than ten they are "class-00", "class-01", ..., since the names of groups are sorted.
    """
    digits = len(str(len(limits)))
    return [f"class-{number:0{digits}}" for number in range(len(limits) + 1)]


def check_steps(steps: Steps) -> None:
    """Raise ValueError for steps with borders that do not ascend, or weights that draw nothing."""
    borders, weights = zip(*steps, strict=True)
    ascending(borders)
    for border, weight in steps:
        if not math.isfinite(weight) or weight < 0:
            raise ValueError(f"the weight below {border:g} is {weight}; it must be 0 or more")
    if not any(weights):
        raise ValueError("all weights of `upsample` are 0; give at least one class a weight")


def class_weights(steps: Steps, limits: Sequence[float]) -> tuple[Fraction, ...]:
    """Return the weight of each class: that of the first step that reaches its upper limit.

    Raises ValueError if the steps do not end at limits, or do not reach beyond the last.
    """
    *inner, last = (border for border, _ in steps)
    check_borders(inner, limits)
    if last <= limits[-1]:
        raise ValueError(
            f"it ends at {last:g}, so that scores from {limits[-1]:g} on have no weight (classes "
            f"end at {told(limits)}). Add a last pair for them, such as [1.0, 1]"
        )
    return tuple(
        next(exact(weight) for border, weight in steps if border >= upper)
        for upper in (*limits, last)
    )


def exact(number: float) -> Fraction:
    """Return a number as it is written: 0.1 is a tenth."""
    return Fraction(repr(float(number)))


def class_lengths(lengths: Mapping[int, float], limits: Sequence[float]) -> tuple[int, ...]:
    """Return the key of `lengths` that holds for each class: the greatest up to its first length.

    Raises ValueError for a key that is no limit of classes.
    """
    check_borders([border for border in lengths if border], limits)
    return tuple(max(border for border in lengths if border <= low) for low in (0, *limits))


def check_borders(borders: Iterable[float], limits: Sequence[float]) -> None:
    """Raise ValueError for a border that is no limit of classes."""
    for border in borders:
        if border not in limits:
            raise ValueError(
                f"{border:.12g} is not a border of classes; they end at {told(limits)}. Take one "
                "of these, or add it to `buckets.classes.limits`, which packs all documents again"
            )


def told(limits: Iterable[float]) -> str:
    """Return limits as text: "8192, 32768"."""
    return ", ".join(f"{limit:.12g}" for limit in limits)


Mode = Literal["pack", "buckets", "concat", "decompose"]
MAX_SEQUENCE_LENGTH = 1 << 24
# Each is a shard at least of every source and generation, and a look at each part for its rows.
MOST_BUCKETS = 4096
LONG = "long_conversations"  # in the fingerprints of conversations alone
PAD = "pad_documents_to"
PACKING_KEYS = ("sequence_length", "max_documents", "seed")
KEYS_OF_MODE: dict[str, frozenset[str]] = {
    "pack": frozenset(
        {*PACKING_KEYS, LONG, PAD, "long_documents", "overlap", "extend_rests", "neighbours"}
    ),
    "buckets": frozenset({"edges"}),
    "concat": frozenset({"sequence_length", LONG}),
    "decompose": frozenset({*PACKING_KEYS, LONG, "min_length"}),
}
VALIDATION = "validation"  # the group of documents that are held out of training
KEYS_OF_ALL = frozenset({"mode", "window_tokens", "classes"})
NEWER = (LONG, PAD)  # in fingerprints only where they are set
SEQUENCE_LENGTH = 2048

WINDOW_SEQUENCES = 1024  # half a sequence of padding a window, or 0.05 %
WINDOW_TOKENS = range(1 << 23, (1 << 25) + 1)  # from the tokens of half a part to 134 MB of memory


def usual_window(config: Mapping[str, Any]) -> int:
    """Return the tokens of a window for the sequence length of a config.

    A night packs again every window that it changes: windows are as small as padding allows.
    """
    tokens = WINDOW_SEQUENCES * int(config.get("sequence_length", SEQUENCE_LENGTH))
    return min(max(tokens, WINDOW_TOKENS[0]), WINDOW_TOKENS[-1])


class BucketConfig(FrozenModel):
    """Mode and size of the sequences that documents become."""

    mode: Mode = Field(
        default="pack",
        description="way to make sequences. pack: documents side by side in sequences of one "
        "length, cut only if they are longer; buckets: one document per sequence, in length "
        "buckets; concat: documents end to end, cut at every sequence_length; decompose: segments "
        "of one document, whose lengths are powers of two",
    )
    sequence_length: int = Field(
        default=SEQUENCE_LENGTH,
        ge=2,
        le=MAX_SEQUENCE_LENGTH,
        description="tokens of a sequence (pack, concat), or of the longest segment (decompose: a "
        "power of two)",
    )
    edges: Annotated[tuple[Annotated[int, Field(ge=1)], ...], ASCENDING] = Field(
        default=(128, 256, 512, 1024),
        min_length=1,
        max_length=255,
        description="buckets: longest sequence of each bucket, in tokens; one more bucket takes "
        "longer sequences",
    )
    min_length: int = Field(
        default=64,
        ge=1,
        description="decompose: shortest segment, a power of two; shorter rests are packed into "
        "sequences of this length",
    )
    long_documents: Literal["split", "truncate"] = Field(
        default="split",
        description="pack: treatment of a document longer than a sequence. split: into sequences "
        "and a rest; truncate: the tokens beyond are cut off (counted as tokens_truncated)",
    )
    long_conversations: Literal["cut_turns", "drop", "error"] = Field(
        default="cut_turns",
        description="treatment of a conversation (`kind: chat`) longer than a sequence; none is "
        "ever cut within a turn. cut_turns: its first turns are kept, up to the last answer that "
        "fits, and it is left out if none does; drop: it is left out; error: its source fails",
    )
    overlap: int = Field(
        default=0,
        ge=0,
        description="pack: tokens that each segment of a split document repeats from the one "
        "before",
    )
    extend_rests: Literal[False] = Field(
        default=False,
        description="pack: tokens are not repeated in place of padding; there is no other way any "
        "more, and configs that name this one stay valid",
    )
    pad_documents_to: int = Field(
        default=1,
        ge=1,
        description="pack: the tokens of each document in a sequence are filled up to a multiple "
        "of this number. Context parallelism over n ranks cuts each document into 2 n chunks of "
        "one length: take 2 n",
    )
    max_documents: int | None = Field(
        default=None,
        ge=1,
        description="pack, decompose: maximum number of documents in a sequence (null: no limit); "
        "hundreds of tiny documents in one slow down attention with document masks",
    )
    window_tokens: int = Field(
        default_factory=usual_window,
        ge=1,
        description="most tokens of the consecutive parts that are packed together; a larger part "
        "is packed alone. More pad less, take more memory (4 bytes per token), and are packed "
        "again when a document among them changes. Where it is not given, as many as 1,024 "
        "sequences have, but 8,388,608 to 33,554,432",
    )
    neighbours: Literal["similar"] | None = Field(
        default=None,
        exclude_if=lambda neighbours: neighbours is None,  # configs without it keep fingerprints
        description="pack: documents that come into the same sequence. similar: those with rarer "
        "tokens in common; null: any",
    )
    seed: int = Field(
        default=0,
        ge=0,
        description="pack, decompose: seed of the order of documents of equal length",
    )

    classes: DocumentClasses | None = Field(
        default=None,
        description="classes of documents by label, quality or length, each packed by itself, for "
        "`upsample` or `lengths` of a phase; null: all documents are packed together",
    )

    @model_validator(mode="after")
    def check_keys(self) -> Self:
        """Refuse a key that the mode does not use, and keys that contradict each other."""
        for key in sorted(self.model_fields_set - KEYS_OF_MODE[self.mode] - KEYS_OF_ALL):
            modes = " or ".join(mode for mode, keys in KEYS_OF_MODE.items() if key in keys)
            raise ValueError(
                f"{key} has no meaning in mode {self.mode}. Remove it, or write `mode: {modes}`"
            )
        if self.mode == "decompose":
            self._check_powers()
        if self.overlap and self.long_documents == "truncate":
            raise ValueError(
                "overlap needs `long_documents: split`: a truncated document has one segment only"
            )
        if self.overlap >= self.sequence_length:
            raise ValueError(
                f"overlap {self.overlap} must be less than sequence_length "
                f"{self.sequence_length}: segments would not advance"
            )
        if self.sequence_length % self.pad_documents_to:
            raise ValueError(
                f"{PAD} is {self.pad_documents_to}, of which sequence_length "
                f"{self.sequence_length} is no multiple. Change one of the two"
            )
        if self.classes:
            check_count(self, len(class_names(self.classes.limits)))
        return self

    def _check_powers(self) -> None:
        for key in ("min_length", "sequence_length"):
            try:
                power_of_two(getattr(self, key))
            except ValueError as error:
                raise ValueError(f"{key}, in mode decompose: {error}") from None
        if self.min_length > self.sequence_length:
            raise ValueError(
                f"min_length {self.min_length} must not be above sequence_length "
                f"{self.sequence_length}"
            )

    @model_serializer(mode="wrap")
    def _dump_keys_of_mode(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Dump the keys of the mode only: another key's default cannot change a fingerprint."""
        dump: Mapping[str, Any] = handler(self)
        kept = KEYS_OF_MODE[self.mode] | KEYS_OF_ALL
        return {
            key: value
            for key, value in dump.items()
            if key in kept
            and (key != "classes" or value is not None)
            and (key not in NEWER or value != BucketConfig.model_fields[key].default)
        }


def bucket_names(config: BucketConfig) -> list[str]:
    """Return the names of the buckets, in bucket order.

    buckets: "0-128", "129-256", ..., "1025-up"; decompose: "64", "128", ..., "2048"; pack and
    concat: one, "2048".
    """
    if config.mode == "buckets":
        lows = [0, *(edge + 1 for edge in config.edges)]
        return [f"{low}-{high}" for low, high in zip(lows, [*config.edges, "up"], strict=True)]
    return [str(length) for length in stored_lengths(config)]


def check_count(config: BucketConfig, num_groups: int) -> None:
    """Raise ValueError if the buckets of ordinary training and of groups are too many."""
    lengths = len(bucket_names(config))
    if lengths * (num_groups + 1) > MOST_BUCKETS:
        key = "raise `min_length`" if config.mode == "decompose" else "give fewer `edges`"
        raise ValueError(
            f"{lengths} lengths of rows in each of {num_groups + 1} groups of documents (those "
            f"without a class are one) make {lengths * (num_groups + 1)} buckets; there can be "
            f"{MOST_BUCKETS}. Give fewer `classes.limits`, raise `classes.min_tokens`, or {key}"
        )


def stored_lengths(config: BucketConfig) -> list[int]:
    """Return the tokens of a sequence of each bucket, padding included; none in mode buckets."""
    if config.mode == "buckets":
        return []
    if config.mode == "decompose":
        num_buckets = (config.sequence_length // config.min_length).bit_length()
        return [config.min_length << index for index in range(num_buckets)]
    return [config.sequence_length]


def bucket_length(bucket: str) -> int | None:
    """Return the stored tokens of a bucket's rows by its name; None for a range ("129-256")."""
    plain, _ = split_bucket(bucket)
    return int(plain) if plain.isdigit() else None


def split_bucket(bucket: str) -> tuple[str, str]:
    """Return the name of a bucket without that of its group, and the group's; "" for group 0."""
    plain, _, group = bucket.partition(".")
    return plain, group


@dataclass(frozen=True)
class BucketLayout:
    """Buckets of a source: those of its config, once for each group of documents.

    Documents are packed with those of their group only. Group 0, of ordinary training, has the
    plain names of `bucket_names`; `groups` names the groups 1, 2, ..., whose buckets are
    "2048.<group>". They are sorted, so that the buckets of one group never change places with those
    of another when a third one comes. A group's name has no dot, and is fit for a path.
    """

    config: BucketConfig
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse groups that are not sorted, and more buckets than an index can name."""
        if list(self.groups) != sorted({*self.groups}):
            raise ValueError(f"groups must be sorted and different, got {list(self.groups)}")
        check_count(self.config, len(self.groups))

    @classmethod
    def of(cls, dump: Mapping[str, Any]) -> Self:
        """Return the layout that `dump` wrote into a manifest."""
        config = {key: value for key, value in dump.items() if key != "groups"}
        return cls(BucketConfig.model_validate(config), tuple(dump.get("groups", ())))

    def dump(self) -> dict[str, Any]:
        """Return the keys of the config, and the groups if there are any."""
        groups = {"groups": list(self.groups)} if self.groups else {}
        return self.config.model_dump(mode="json", exclude={LONG}) | groups

    @property
    def names(self) -> list[str]:
        """Names of the buckets, in the order of their indices: group after group."""
        plain = bucket_names(self.config)
        return plain + [f"{name}.{group}" for group in self.groups for name in plain]

    def with_groups_of(self, names: Iterable[str]) -> BucketLayout:
        """Return the layout of buckets that were named under other groups, or under none."""
        groups = {split_bucket(name)[1] for name in names} - {""}
        return BucketLayout(self.config, tuple(sorted(groups)))
