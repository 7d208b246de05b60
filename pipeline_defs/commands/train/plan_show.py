"""The result of `corpus plan` as tables for the terminal, and as a picture (SVG)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from assets.mixed.report import Drawn, shares_chart, stacked
from assets.report.plots import bar_chart, pie_chart
from pipeline_defs.commands.look.whatif_show import PIPE_WIDTH, new_table

NUMBERS = ("weight", "available tokens", "planned tokens", "epochs", "cap", "samples")


def show(found: dict[str, Any]) -> None:
    """Print the plan for people."""
    console = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH)
    table = new_table("phases", ["phase", "source", "counted in"], NUMBERS)
    planned = {name: phase for name, phase in found["phases"].items() if phase["sources"]}
    for name, phase in planned.items():
        for source, numbers in phase["sources"].items():
            table.add_row(name, source, *source_row(numbers))
        table.add_row(name, "all", "", "", "", f"{phase['tokens']:,}", end_section=True)
    if planned:
        console.print(table)
    if len(planned) > 1:
        whole = new_table(
            "all phases", ["source", "counted in"], ["available tokens", "planned tokens", "epochs"]
        )
        for source, numbers in found["sources"].items():
            available, planned = (numbers[f"{of}_tokens"] for of in ("available", "planned"))
            whole.add_row(
                source,
                numbers["counted_in"],
                f"{available:,}",
                f"{planned:,}",
                f"{numbers['epochs']:.2f}",
            )
        console.print(whole)
    for line in verdict_lines(found):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def source_row(numbers: dict[str, Any]) -> list[str]:
    """Cells of one source of one phase."""
    return [
        numbers["counted_in"],
        f"{numbers['weight']:.1%}",
        f"{numbers['available_tokens']:,}",
        f"{numbers['planned_tokens']:,}",
        f"{numbers['epochs']:.2f}",
        f"{numbers['cap']:g}",
        f"{numbers['samples']:,}",
    ]


def verdict_lines(found: dict[str, Any]) -> list[str]:
    """What is to be said of each phase, the verdict first."""
    lines = []
    for name, phase in found["phases"].items():
        lines.append(f"{name}: {phase['verdict']}")
        for key in ("faults", "warnings", "notes"):
            lines += [f"  {text}" for text in phase[key]]
    return [*lines, *found["warnings"]]


def plot(found: dict[str, Any], mixed: Mapping[str, Drawn]) -> str:
    """An SVG: for each phase its mix and the epochs of its sources; then these over all phases.

    `mixed` has what was drawn of the phases that are materialized.
    """
    charts = []
    for name, phase in found["phases"].items():
        sources = phase["sources"]
        tokens = {source: numbers["planned_tokens"] for source, numbers in sources.items()}
        charts.append(pie_chart(f"{name}: {phase['tokens']:,} tokens, {phase['verdict']}", tokens))
        charts.append(bar_chart(f"{name}: epochs of each source", epoch_bars(sources)))
        if name in mixed:
            charts.append(shares_chart(f"{name}: tokens as they are drawn", mixed[name]))
    if len(found["phases"]) > 1:
        charts.append(bar_chart("all phases: epochs of each source", epoch_bars(found["sources"])))
    return stacked(charts)


def epoch_bars(sources: dict[str, Any]) -> list[tuple[str, tuple[float], str]]:
    """A bar for each source."""
    return [
        (
            source,
            (numbers["epochs"],),
            f"{numbers['epochs']:.2f} epochs of {numbers['available_tokens']:,}",
        )
        for source, numbers in sources.items()
    ]
