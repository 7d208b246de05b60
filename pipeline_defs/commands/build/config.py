"""`corpus config`: the keys of pipeline.yaml with meaning and default; the presets of rules."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import yaml
from cyclopts import Parameter
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from pipeline_defs.commands.terminal import say
from resources.errors import check_name
from resources.settings.faults import inner_model
from resources.settings.filtering.presets import PRESETS
from resources.settings.pipeline import Settings


def config() -> int:
    """Print every key of pipeline.yaml."""
    say(*key_lines(Settings, ""))
    return 0


def presets(
    name: Annotated[str | None, Parameter(help="Preset to print as pipeline.yaml has it.")] = None,
    /,
) -> int:
    """Print the names of the presets and how many rules each sets, or one as YAML."""
    if name is None:
        from assets.filtered.rules.rules import rules_for  # Polars, which the keys do not need
        from resources.settings.filtering.filters import FilterConfig

        for preset in PRESETS:
            rules = rules_for(FilterConfig.model_validate({"presets": [preset]}).rules)
            say(f"{preset}: {len(rules)} rules")
        return 0
    check_name("preset", name, PRESETS)
    sys.stdout.write(yaml.safe_dump(PRESETS[name], sort_keys=False))
    return 0


def key_lines(model: type[BaseModel], prefix: str) -> Iterator[str]:
    """Yield one line per key below a config model: path, meaning, default."""
    for name, field in model.model_fields.items():
        inner = inner_model(field.annotation)
        is_list = "tuple" in str(field.annotation) and inner is not None
        path = f"{prefix}{name}{'[]' if is_list else ''}"
        yield f"{path}: {as_sentence(field.description or '')}{default_text(field)}"
        if inner is not None:
            yield from key_lines(inner, f"{path}.")


def as_sentence(description: str) -> str:
    """Return a description with a capital at its start and a full stop at its end.

    A description that begins with a name of code (`mode: ...`, snake_case) keeps its first letter.
    """
    text = " ".join(description.split())
    first = text.split(" ", 1)[0].rstrip(",;")
    if first.isalpha() and first.islower():
        text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) or not text else f"{text}."


def default_text(field: FieldInfo) -> str:
    """Return the text of a key's default, or "Required."; empty if the key has keys below it."""
    if field.is_required():
        return " Required."
    if inner_model(field.annotation) is not None:
        return ""
    return f" Default: {as_yaml(field.get_default(call_default_factory=True, validated_data={}))}."


def as_yaml(value: object) -> str:
    """Return a value in YAML's flow style, on one line."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case list() | tuple():
            return f"[{', '.join(as_yaml(item) for item in value)}]"
        case dict():
            return f"{{{', '.join(f'{key}: {as_yaml(item)}' for key, item in value.items())}}}"
        case str():
            return value if value.replace("_", "").replace("-", "").isalnum() else repr(value)
        case _:
            return str(value)
