"""`corpus config`: the keys of pipeline.yaml with meaning and default; the presets of rules.

Of the same models is the JSON schema, by which an editor completes keys and marks mistakes.
"""

from __future__ import annotations

import json as json_lines
import sys
from collections.abc import Iterator
from typing import Annotated, NamedTuple

import yaml
from cyclopts import Parameter
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from pipeline_defs.commands.terminal import Json, print_json, say
from resources.errors import UsageError, check_name
from resources.settings.faults import inner_model
from resources.settings.filtering.presets import PRESETS
from resources.settings.pipeline import Settings

SCHEMA = ".pipeline.schema.json"  # hidden: no input of the project, whatever `where` matches


class Key(NamedTuple):
    """A key of pipeline.yaml: its path, such as sources[].where, and its field of a model."""

    path: str
    field: FieldInfo


def config(
    section: Annotated[
        str | None, Parameter(help="Only this key and those below: dedup, filters.rules.")
    ] = None,
    /,
    *,
    schema: Annotated[
        bool, Parameter(help="Print the JSON schema of pipeline.yaml, for an editor.")
    ] = False,
    json: Json = False,
) -> int:
    """Print the keys of pipeline.yaml, or its JSON schema."""
    if schema:
        if section is not None:
            raise UsageError("--schema is of the whole file. Leave out the section, or --schema.")
        sys.stdout.write(schema_text())
        return 0
    keys = list(keys_of(Settings, ""))
    if section is not None:
        plain = section.replace("[]", "")
        check_name("key", plain, (key.path.replace("[]", "") for key in keys))
        keys = [key for key in keys if f"{key.path}.".replace("[]", "").startswith(f"{plain}.")]
    if json:
        sys.stdout.write(json_lines.dumps([as_json(key) for key in keys], indent=1) + "\n")
    else:
        say(*(f"{path}: {meaning(field)}{default_text(field)}" for path, field in keys))
    return 0


def schema_text() -> str:
    """Return the JSON schema of pipeline.yaml."""
    return json_lines.dumps(Settings.model_json_schema(), indent=1, ensure_ascii=False) + "\n"


def presets(
    name: Annotated[str | None, Parameter(help="Preset to print as pipeline.yaml has it.")] = None,
    /,
    *,
    json: Json = False,
) -> int:
    """Print the names of the presets and how many rules each sets, or one as YAML."""
    if name is not None:
        check_name("preset", name, PRESETS)
    if json:
        print_json(PRESETS if name is None else PRESETS[name])
    elif name is None:
        from assets.filtered.rules.rules import rules_for  # Polars, which the keys do not need
        from resources.settings.filtering.filters import FilterConfig

        for preset in PRESETS:
            rules = rules_for(FilterConfig.model_validate({"presets": [preset]}).rules)
            say(f"{preset}: {len(rules)} rules")
    else:
        sys.stdout.write(yaml.safe_dump(PRESETS[name], sort_keys=False))
    return 0


def keys_of(model: type[BaseModel], prefix: str) -> Iterator[Key]:
    """Yield the keys below a config model."""
    for name, field in model.model_fields.items():
        inner = inner_model(field.annotation)
        is_list = "tuple" in str(field.annotation) and inner is not None
        path = f"{prefix}{name}{'[]' if is_list else ''}"
        yield Key(path, field)
        if inner is not None:
            yield from keys_of(inner, f"{path}.")


def as_json(key: Key) -> dict[str, object]:
    """Return a key for programs; a default only if it has no keys below it."""
    path, field = key
    row = {"key": path, "meaning": meaning(field), "required": field.is_required()}
    has_default = not field.is_required() and inner_model(field.annotation) is None
    return row | ({"default": to_jsonable_python(default_of(field))} if has_default else {})


def meaning(field: FieldInfo) -> str:
    """Return the description of a key as a sentence."""
    return as_sentence(field.description or "")


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
    return f" Default: {as_yaml(default_of(field))}."


def default_of(field: FieldInfo) -> object:
    """Return the default of a key."""
    default: object = field.get_default(call_default_factory=True, validated_data={})
    return default


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
