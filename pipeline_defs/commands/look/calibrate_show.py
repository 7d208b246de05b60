"""Show the limits that `corpus calibrate` proposes."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import msgspec
import yaml

from assets.filtered.rules.threshold_replay import Overlay
from pipeline_defs.commands.look.whatif_show import Kept, plain
from pipeline_defs.commands.terminal.output import new_table, table_console
from resources.settings.limits import EVERY_LANGUAGE

FEW_LANGUAGES = 3  # whose limits fit into a cell


class Removed(msgspec.Struct, frozen=True):
    """Limit of a rule now and then, and what it removes then.

    alone      documents that no other rule removes
    examples   ids of documents
    """

    now: Any
    then: Any
    documents: int
    bytes: int
    alone: int
    examples: list[str]


class LanguageKept(msgspec.Struct, frozen=True):
    """Documents of a language, and those kept now and then."""

    documents: int
    now: int
    then: int


class Calibration(msgspec.Struct, frozen=True):
    """Proposed limits of a source.

    keep       share that was asked for
    filters    keys to lay over the source's filters
    settings   the same for `corpus whatif --set`
    """

    source: str
    keep: float
    kept: Kept
    languages: dict[str, LanguageKept]
    rules: dict[str, Removed]
    filters: dict[str, Overlay]
    settings: list[str]
    notes: list[str]


def show(result: Calibration) -> None:
    """Print the result for people."""
    console = table_console()
    kept = new_table("documents kept", ["language"], ["documents", "now", "then"])
    for lang, counts in result.languages.items():
        shares = [f"{part:,} ({part / counts.documents:.1%})" for part in (counts.now, counts.then)]
        name = lang if lang != EVERY_LANGUAGE else "others" if len(result.languages) > 1 else "all"
        kept.add_row(name, f"{counts.documents:,}", *shares)
    console.print(kept)
    rules = new_table(
        f"limits that keep {result.keep:.1%} of {result.source}",
        ["rule", "now", "then"],
        ["removes", "share", "MB", "alone"],
    )
    for name, removed in result.rules.items():
        share = removed.documents / max(1, result.kept.documents)
        numbers = [f"{removed.documents:,}", f"{share:.2%}", f"{removed.bytes / 1e6:,.2f}"]
        limits = (limit_cell(removed.now), limit_cell(removed.then))
        rules.add_row(name, *limits, *numbers, f"{removed.alone:,}")
    console.print(rules)
    for line in (*examples(result), *result.notes, *proposal(result)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def limit_cell(limit: Any) -> str:
    """Return a limit as people write it; of many languages, the least and the largest."""
    if not isinstance(limit, Mapping) or len(limit) <= FEW_LANGUAGES:
        return plain(limit)
    numbers = [number for number in limit.values() if number is not None]
    return f"{min(numbers):g} to {max(numbers):g}" if numbers else "off"


def examples(result: Calibration) -> list[str]:
    """Name documents that each limit removes."""
    lines = [
        f"  {name}: {' '.join(removed.examples)}"
        for name, removed in result.rules.items()
        if removed.examples
    ]
    return ["Removed documents, for `corpus trace`:", *lines] if lines else []


def proposal(result: Calibration) -> list[str]:
    """Return the limits as YAML, and the command that replays them."""
    filters = yaml.safe_dump(msgspec.to_builtins(result.filters), sort_keys=False, width=1000)
    replay = ["corpus", "whatif", "--source", result.source]
    replay += [part for setting in result.settings for part in ("--set", setting)]
    return [
        f"To have these limits, lay this over the filters of {result.source}:",
        filters.rstrip(),
        f"To replay them: {shlex.join(replay)}",
    ]
