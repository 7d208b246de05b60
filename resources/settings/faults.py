"""Mistakes in pipeline.yaml: their place, the value, and the values allowed."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from resources.settings.limits import without_forms

KeyPath = tuple[str | int, ...]
SHOWN = 200  # characters of a wrong value

# Keys of earlier versions by the end of their key path, with the reason of their removal.
REMOVED_KEYS: dict[KeyPath, str] = {
    **{
        ("dedup", key): "`bands` and `rows` decide it: docs/dedup.md has those of a similarity"
        for key in ("near_threshold", "num_perm", "false_negative_weight")
    },
    ("dedup", "max_rate_jump"): "the check `drift` compares the share of copies with earlier runs",
    ("logging",): "handlers of `python_logs` in dagster.yaml get the log of runs",
    ("words", "obfuscation"): "disguised words (sh1t, f*ck) are no longer detected",
    ("code_content", "max_share"): "the part of a page that is code is no longer measured",
    ("code_content", "min_share"): "the part of a page that is code is no longer measured",
    ("tokenizer", "trainer"): "`tokenizers` trains every tokenizer",
    ("continues", "data"): "a phase goes on in the earlier one as it would be mixed now; "
    "`corpus states rollback` holds its sources in the state that was trained on",
    ("dedup", "rehydration"): "nothing read its column `copies`; `cluster_size` of the table "
    "`clusters` tells how many copies a document had",
    ("tokenizer", "offsets"): "the tokenizer.json gives the bytes of a text's tokens",
    **{
        (group, "tokenizer"): "one rule cuts the words of all languages"
        for group in ("gopher_quality", "gopher_repetition", "c4", "fineweb")
    },
}
# Keys of earlier versions by their whole key path, with the new name.
RENAMED_KEYS: dict[KeyPath, str] = {("quality",): "classifier"}


class PlacedError(ValueError):
    """Mistakes that a validator found, each as (key path below the validator's own, message)."""

    def __init__(self, faults: list[tuple[KeyPath, str]]) -> None:
        super().__init__("; ".join(message for _, message in faults))
        self.faults = faults


def node_lines(node: yaml.Node, path: KeyPath) -> Iterator[tuple[KeyPath, int]]:
    """Yield (key path, line number from 1) of every node.

    Raises yaml.MarkedYAMLError for a key that is given twice or is no plain text.
    """
    yield path, node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from node_lines(item, (*path, index))
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.value in seen:
                fault = "given twice" if isinstance(key, yaml.ScalarNode) else "is no plain text"
                raise yaml.MarkedYAMLError(
                    problem=f"key {key.value!r} {fault}", problem_mark=key.start_mark
                )
            seen.add(key.value)
            yield (*path, key.value), key.start_mark.line + 1
            for below, line in node_lines(value, (*path, key.value)):
                if below != (*path, key.value):
                    yield below, line


def faults_of(error: ValidationError, model: type[BaseModel]) -> Iterator[tuple[KeyPath, str]]:
    """Yield (key path, message) of every mistake."""
    # A default that follows from other keys is not made where one of them is wrong.
    faults = [each for each in error.errors() if each["type"] != "default_factory_not_called"]
    for fault in faults:
        keys = without_forms(fault["loc"])
        cause = fault.get("ctx", {}).get("error")
        if isinstance(cause, PlacedError):
            yield from (((*keys, *below), message) for below, message in cause.faults)
        elif fault["type"] != "too_short" or not any(
            other["loc"][: len(keys)] == keys for other in faults if other is not fault
        ):  # pydantic counts a list's bad items as missing
            yield keys, describe(fault, model)


def place(keys: KeyPath, lines: dict[KeyPath, int]) -> str:
    """Return ":LINE: " of the deepest part of the key path that the file has."""
    for length in range(len(keys), -1, -1):
        if keys[:length] in lines:
            return f":{lines[keys[:length]]}: "
    return ": "


def dotted(keys: KeyPath) -> str:
    """Write a key path with dots and brackets: sources[0].where."""
    return "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in keys).lstrip(".")


def describe(fault: Any, model: type[BaseModel]) -> str:
    """Describe a mistake by the value and those allowed, a misspelt key by the nearest one."""
    if fault["type"] == "extra_forbidden":
        if reason := REMOVED_KEYS.get(fault["loc"][-2:]):
            return f"unknown key: it was removed, since {reason}; delete the key"
        allowed = field_names(model, fault["loc"][:-1])
        new_name = RENAMED_KEYS.get(fault["loc"])
        if new_name in allowed:
            return f"unknown key: it was renamed; write `{new_name}` instead"
        hint = nearest(str(fault["loc"][-1]), allowed)
        return f"unknown key{hint}; allowed here: {', '.join(allowed)}"
    if fault["type"] == "missing":
        return "missing: add it"
    message = str(fault["msg"]).removeprefix("Value error, ")
    value = fault.get("input")
    is_plain = isinstance(value, str | int | float | bool | None)
    return message + (f" (got {value!r:.{SHOWN}})" if is_plain else "")


def field_names(model: type[BaseModel], location: KeyPath) -> list[str]:
    """Return the names of the fields of the model at a key path below `model`."""
    current: type[BaseModel] | None = model
    for key in location:
        if isinstance(key, str) and current is not None and key in current.model_fields:
            current = inner_model(current.model_fields[key].annotation)
    return sorted(current.model_fields) if current is not None else []


def inner_model(annotation: Any) -> type[BaseModel] | None:
    """Return the pydantic model inside `X`, `X | None` or `tuple[X, ...]`, None without one."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    candidates = (inner_model(argument) for argument in getattr(annotation, "__args__", ()))
    return next((candidate for candidate in candidates if candidate is not None), None)


def nearest(name: str, allowed: list[str]) -> str:
    """Return " (did you mean 'x'?)" for the nearest name, or nothing."""
    close = difflib.get_close_matches(name, allowed, n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""
