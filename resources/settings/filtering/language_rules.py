"""Rules on the language of a source whose language detection is off.

A rule of the whole file is meant for the sources that it can judge: it is skipped for a source
without detection, which it would reject to the last document. The same rule written at that source
is a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from resources.settings.filtering.filters import FilterConfig
from resources.settings.sources import SourceConfig

NAMES = "language_names.yaml"
CODE = re.compile(r"[a-z]{2,3}")
GROUP = ("rules", "language")
NEED_DETECTION = ("min_score", "allowed_detected", "min_paragraph_share")


def is_undetected(filters: FilterConfig) -> bool:
    """Return whether rules on the language are set and none is detected."""
    return filters.language.backend == "none" and filters.rules.language is not None


def own_rules(own: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the rules on the language among a source's own filters."""
    rules = own.get("rules")
    group = rules.get("language") if isinstance(rules, dict) else None
    return group if isinstance(group, dict) else {}


def skipped_rules(filters: FilterConfig, own: Mapping[str, Any], file: FilterConfig) -> list[str]:
    """Name the rules on the language that are skipped for a source, given its laid filters.

    `allowed` judges declared languages too: it stays if the source sets it, or if the file switches
    detection off for all sources.
    """
    rules = filters.rules.language
    if rules is None or not is_undetected(filters):
        return []
    given = rules.model_fields_set
    stays = "allowed" in own_rules(own) or file.language.backend == "none"
    names = [*NEED_DETECTION, *([] if stays else ["allowed"])]
    return [name for name in names if name in given and getattr(rules, name) is not None]


def without_rules(filters: FilterConfig, skipped: list[str]) -> FilterConfig:
    """Return the filters without some rules on the language, without the group if none is left."""
    if not skipped or filters.rules.language is None:
        return filters
    group = filters.rules.language.model_copy(update=dict.fromkeys([*NEED_DETECTION, *skipped]))
    rules = filters.rules.model_copy(update={"language": group if group.allowed else None})
    return filters.model_copy(update={"rules": rules})


def undetected_faults(
    filters: FilterConfig, own: Mapping[str, Any]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield (key path, message) of a source's own rules that need the detection it has not."""
    for name in NEED_DETECTION if is_undetected(filters) else ():
        if own_rules(own).get(name) is not None:
            yield (
                (*GROUP, name),
                "language detection is off here (`language.backend: none`, the default of domain "
                "code). Set `language.backend` of this source, or null for this rule",
            )


def source_layer(source: SourceConfig) -> dict[str, Any]:
    """Return the filters that a source's `language` and `require_language` set.

    A language that is no ISO 639 code, such as "python", is declared only.
    """
    layer: dict[str, Any] = {"language": {"expected": expected_languages(source)}}
    if source.require_language:
        layer["rules"] = {"expected_language": {"required": True}}
    return layer


def expected_languages(source: SourceConfig) -> list[str]:
    """Return the ISO 639 codes among a source's languages, without region."""
    given = (source.language or "").split(",")
    codes = [re.split("[-_]", name.strip().lower())[0] for name in given]
    return [code for code in codes if CODE.fullmatch(code)]


def language_faults(source: SourceConfig, filters: FilterConfig) -> Iterator[str]:
    """Yield a message for each language of a source that is misspelt, or that no detector knows."""
    for name in filter(None, (name.strip() for name in (source.language or "").split(","))):
        code, known = re.split("[-_]", name.lower())[0], codes_by_spelling()
        is_code = CODE.fullmatch(code) is not None
        if known.get(code) == code or (is_code and filters.language.backend == "none"):
            continue
        near = [] if is_code else get_close_matches(code, known, n=1, cutoff=0.85)
        if meant := known.get(code) or next(map(known.get, near), None):
            yield f"{name!r} is no code of a language (did you mean {meant!r}?)"
        elif is_code:
            yield (
                f"{name!r} is no language that the detector knows "
                f"({' '.join(sorted({*known.values()}))}). Correct it, or set "
                "`filters.language.backend: none` for this source"
            )


@cache
def codes_by_spelling() -> dict[str, str]:
    """Return the codes of the languages that a detector knows, by themselves and other names."""
    names = yaml.safe_load(Path(__file__).parents[1].joinpath(NAMES).read_text("utf-8"))
    return {name: code for code, others in names.items() for name in (code, *others.split())}


def required_faults(source: SourceConfig, filters: FilterConfig) -> Iterator[str]:
    """Yield a message if a source requires a language that is not named, or not detected."""
    if not source.require_language:
        return
    if not expected_languages(source):
        yield (
            f"true, but `language` is {source.language!r}. Set it to ISO 639 codes, such as en, or "
            "leave require_language out"
        )
    if filters.language.backend == "none":
        yield (
            "true, but language detection is off here (`language.backend: none`, the default of "
            "domain code). Set `filters.language.backend` of this source, or leave it out"
        )
