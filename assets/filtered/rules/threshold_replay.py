"""Replay other thresholds over stored decisions, without the text.

A change is named by its rule (`gopher_repetition.duplicate_lines`) or by its key in pipeline.yaml
(`gopher_repetition.max_duplicate_lines`), laid over the rules that made the decisions, and checked
by the same models. Every rule that a document breaks is a bit of its mask; documents are counted
per mask, and all else (kept, alone, pairs) follows from the few masks that occur. Memory grows with
the number of different masks, not with the documents.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from assets.filtered.rules.rules import TOO_MANY_VALUES, Rule
from resources.errors import UsageError, unknown_name
from resources.settings.faults import dotted
from resources.settings.filtering.presets import lay_over
from resources.settings.filtering.rules import RulesConfig
from resources.settings.limits import without_forms

OFF = ("null", "none", "off")
FLAGS = {"true": True, "on": True, "false": False}
COMPARED = "inclusive"  # no threshold: it changes the comparison, not the score
BITS = 63  # rules per mask column
CUSTOM = "custom"

Value = (
    str | float | bool | list[str] | dict[str, "Value"] | None
)  # of a field; the rules' models check it
Overlay = dict[str, dict[str, Value] | None]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Change:
    """Another value for one field of a group of rules; without a field: for the whole group."""

    group: str
    field: str
    value: Value


@dataclass
class Tally:
    """Documents and bytes, all and kept; per rule those that break it, and that break only it."""

    documents: int = 0
    bytes: int = 0
    kept: int = 0
    kept_bytes: int = 0
    contradicted: int = 0  # documents whose stored verdict differs from these rules'
    broken: Counter[str] = field(default_factory=Counter)
    broken_bytes: Counter[str] = field(default_factory=Counter)
    alone: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, other: "Tally") -> None:
        """Add the counts of other documents."""
        for name in ("documents", "bytes", "kept", "kept_bytes", "contradicted"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("broken", "broken_bytes", "alone", "pairs"):
            getattr(self, name).update(getattr(other, name))


def rule_groups() -> dict[str, type[BaseModel]]:
    """Return the model of every group of rules, by the group's name."""
    return {
        name: model
        for name, info in RulesConfig.model_fields.items()
        for model in get_args(info.annotation) or (info.annotation,)
        if isinstance(model, type) and issubclass(model, BaseModel)
    }


def thresholds() -> dict[str, tuple[str, str]]:
    """Return (group, field) of every threshold, by the rule's name and by group.field."""
    fields = [
        (name, key, info.json_schema_extra)
        for name, model in rule_groups().items()
        for key, info in model.model_fields.items()
        if isinstance(info.json_schema_extra, dict)
    ]
    by_field = {f"{name}.{key}": (name, key) for name, key, _ in fields}
    return by_field | {f"{name}.{rule['fault']}": (name, key) for name, key, rule in fields}


def parse_change(assignment: str, custom: Sequence[str] = ()) -> Change:
    """Read KEY=VALUE; `custom` are the names of custom rules. UsageError names the fault."""
    key, is_given, text = (part.strip() for part in assignment.partition("="))
    if not (is_given and text):
        raise UsageError(f"{assignment!r}: write KEY=VALUE, such as length.min_chars=200")
    group, name = find_field(key, custom)
    if name:
        return Change(group, name, _parse_value(text, _annotation(group, name)))
    if text.lower() not in OFF:
        raise UsageError(f"{assignment!r}: a whole group can only be switched off: {key}=off")
    return Change(group, "", None)


def find_field(key: str, custom: Sequence[str] = ()) -> tuple[str, str]:
    """Return (group, field) of a threshold, (group, "") of a group; UsageError otherwise."""
    key = key.removeprefix("filters.").removeprefix("rules.")
    known = thresholds() | {f"{CUSTOM}.{name}": (CUSTOM, name) for name in custom}
    groups = rule_groups()
    group, _, name = key.partition(".")
    is_setting = group in groups and name in groups[group].model_fields
    if key in known:
        return known[key]
    if (is_setting and name == COMPARED) or (group in groups and not name):
        return group, name
    if key == TOO_MANY_VALUES.name:
        raise UsageError(
            f"{key} cannot be changed: a document with more than {TOO_MANY_VALUES.threshold:,} "
            "values of personal data is not searched to its end, and so is not kept. Split it into "
            "documents, or mask it before it is read."
        )
    if is_setting:
        raise UsageError(
            f"{key} is no threshold: it changes the score itself, and the decisions hold scores, "
            f"not texts. Set filters.rules.{key} in pipeline.yaml and materialize `filtered` again."
        )
    raise UsageError(unknown_name("rule", key, known))


def _annotation(group: str, name: str) -> Any:
    return float if group == CUSTOM else rule_groups()[group].model_fields[name].annotation


def _parse_value(text: str, annotation: Any) -> Value:
    types = {annotation, *get_args(annotation)}
    lowered = text.lower()
    if lowered in OFF:
        return False if bool in types else None
    if "tuple" in str(annotation):
        return [item.strip() for item in text.split(",") if item.strip()]
    if bool in types and lowered in FLAGS:
        return FLAGS[lowered]
    if ":" in text and "dict" in str(annotation):
        pairs = (item.partition(":") for item in text.split(","))
        return {lang.strip(): _parse_value(limit.strip(), float) for lang, _, limit in pairs}
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text  # the model says what it wants instead


def overlay_of(rules: RulesConfig, changes: Sequence[Change]) -> Overlay:
    """Return what to write under filters.rules; a group that was off gets the changed rule only."""
    overlay: Overlay = {}
    for change in changes:
        if not change.field:
            overlay[change.group] = None
            continue
        fields = overlay.get(change.group, {} if getattr(rules, change.group) is not None else None)
        if fields is None:
            if change.value is None or change.value is False:
                continue
            fields = all_off(change.group)
        overlay[change.group] = {**fields, change.field: change.value}
    return overlay


def all_off(group: str) -> dict[str, Value]:
    """Return the settings of a group with every rule switched off."""
    model = rule_groups()[group]
    return {
        name: None if NoneType in get_args(info.annotation) else False
        for name, info in model.model_fields.items()
        if isinstance(info.json_schema_extra, dict)
    }


def changed_rules(rules: RulesConfig, overlay: Overlay) -> RulesConfig:
    """Lay an overlay over the rules; UsageError for a value that the models refuse."""
    try:
        return RulesConfig.model_validate(lay_over(rules.model_dump(), overlay))
    except ValidationError as error:
        faults = [
            f"{dotted(without_forms(fault['loc']))}: {fault['msg']} (got {fault['input']!r})"
            for fault in error.errors()
        ]
        raise UsageError("\n".join(faults)) from None


def count_masks(decisions: pl.LazyFrame, rules: Sequence[Rule]) -> pl.LazyFrame:
    """Count decisions (kept, num_bytes and the scores of `rules`) by the rules that they break.

    Columns: kept (as stored), mask_0, mask_1, ... (UInt64: bit i of mask m is rule 63 m + i),
    documents and bytes (Int64); one row per combination that occurs, in no order.
    """
    chunks = [rules[start : start + BITS] for start in range(0, len(rules), BITS)] or [[]]
    masks = {
        f"mask_{number}": pl.sum_horizontal(
            pl.lit(0, pl.UInt64),
            *(rule.broken.cast(pl.UInt64) * (1 << bit) for bit, rule in enumerate(chunk)),
        )
        for number, chunk in enumerate(chunks)
    }
    # A sum of UInt32 is one, and would overflow at 4 GB.
    return (
        decisions.select("kept", pl.col("num_bytes").cast(pl.Int64), **masks)
        .group_by("kept", *masks)
        .agg(documents=pl.len().cast(pl.Int64), bytes=pl.col("num_bytes").sum())
    )


def tally(masks: pl.DataFrame, rules: Sequence[Rule], chosen: Sequence[Rule]) -> Tally:
    """Add up the masks of `count_masks` of `rules`, as if only the rules `chosen` held."""
    columns = [rules.index(rule) for rule in chosen]
    broken = _unpack(masks, len(rules))[:, columns]
    documents = masks["documents"].to_numpy().astype(np.float64)  # exact up to 2**53
    sizes = masks["bytes"].to_numpy().astype(np.float64)
    times = broken.sum(axis=1)
    kept = times == 0
    pairs = (broken * documents[:, None]).T @ broken
    names = [rule.name for rule in chosen]
    upper = zip(*np.nonzero(np.triu(pairs, 1)), strict=True)
    return Tally(
        documents=int(documents.sum()),
        bytes=int(sizes.sum()),
        kept=int(documents[kept].sum()),
        kept_bytes=int(sizes[kept].sum()),
        contradicted=int(documents[kept != masks["kept"].to_numpy()].sum()),
        broken=_counter(names, broken.T @ documents),
        broken_bytes=_counter(names, broken.T @ sizes),
        alone=_counter(names, broken[times == 1].T @ documents[times == 1]),
        pairs=Counter({(names[a], names[b]): int(pairs[a, b]) for a, b in upper}),
    )


def _unpack(masks: pl.DataFrame, num_rules: int) -> Floats:
    """Return a matrix, float64 [masks, rules]: 1 where the rule is broken."""
    bits = np.arange(BITS, dtype=np.uint64)
    columns = [masks[name].to_numpy() for name in masks.columns if name.startswith("mask_")]
    unpacked = [column[:, None] >> bits & np.uint64(1) for column in columns]
    return np.hstack(unpacked).astype(np.float64)[:, :num_rules]


def _counter(names: Sequence[str], counts: Floats) -> Counter[str]:
    return Counter(dict(zip(names, counts.astype(np.int64).tolist(), strict=True)))
