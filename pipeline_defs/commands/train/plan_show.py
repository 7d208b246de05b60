"""Show the result of `corpus plan` as tables and as a picture (SVG)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import UNSET, UnsetType

from assets.bucketed.leakage import MOST_SHARE
from assets.mixed.advice import Proposals
from assets.mixed.report import Drawn, shares_chart, stacked
from assets.report.plots import bar_chart, pie_chart
from pipeline_defs.commands.terminal.output import new_table, percentages, table_console

NUMBERS = ("weight", "available tokens", "planned tokens", "epochs", "cap", "samples")


class SourceTotal(msgspec.Struct, frozen=True, kw_only=True):
    """Available and planned tokens of a source, over all phases."""

    available_tokens: int
    counted_in: str
    planned_tokens: int
    epochs: float


class SourceShare(SourceTotal, frozen=True, kw_only=True):
    """Tokens and samples that one phase draws from a source, and from its classes if it weighs any.

    The classes are named as they are drawn, "web/class-2". drawn_before: tokens of the phases that
    this one continues; they count in its epochs. weights_at: at each knot of a phase whose weights
    change, of which `weight` is the mean.
    """

    weight: float
    cap: float
    samples: int
    drawn_before: int | UnsetType = UNSET
    weights_at: tuple[float, ...] | UnsetType = UNSET
    classes: dict[str, SourceShare] | UnsetType = UNSET

    @property
    def units(self) -> dict[str, SourceShare]:
        """Its classes, by what is drawn; none if all is drawn alike."""
        return {} if self.classes is UNSET else self.classes


class PlannedPhase(msgspec.Struct, frozen=True):
    """Verdict on a phase, and its sources."""

    verdict: str
    tokens: int
    warnings: list[str]
    faults: list[str]
    feasible: Proposals
    notes: list[str]
    sources: dict[str, SourceShare]


class SourceLeakage(msgspec.Struct, frozen=True):
    """What documents for training have in common with held-out ones.

    left_out: of `documents`, those that no phase draws for it; worst: largest share of a document's
    13-grams that one held-out document has, among the others.
    """

    documents: int
    left_out: int
    worst: float


class PlanReport(msgspec.Struct, frozen=True):
    """Planned phases, and the sources and warnings over all of them.

    leakage: by source, if documents are held out of training.
    """

    store: str
    phases: dict[str, PlannedPhase]
    sources: dict[str, SourceTotal]
    warnings: list[str]
    leakage: dict[str, SourceLeakage] | UnsetType = UNSET


def show(report: PlanReport) -> None:
    """Print the plan for people."""
    console = table_console()
    planned = {name: phase for name, phase in report.phases.items() if phase.sources}
    shares = [share for phase in planned.values() for share in phase.sources.values()]
    is_continued = any(share.drawn_before for share in shares)
    is_changing = any(share.weights_at for share in shares)
    more = {"drawn before": is_continued, "from start to end": is_changing}
    numbers = (*NUMBERS, *(name for name, is_shown in more.items() if is_shown))
    table = new_table("phases", ["phase", "source", "counted in"], numbers)
    for name, phase in planned.items():
        for source, share in phase.sources.items():
            for drawn, of_unit in {source: share, **share.units}.items():
                before = [f"{of_unit.drawn_before or 0:,}"] if is_continued else []
                weights = [percentages(of_unit.weights_at)] if is_changing else []
                table.add_row(name, drawn, *share_cells(of_unit), *before, *weights)
        table.add_row(name, "all", "", "", "", f"{phase.tokens:,}", end_section=True)
    if planned:
        console.print(table)
    if len(planned) > 1:
        totals = ["available tokens", "planned tokens", "epochs"]
        whole = new_table("all phases", ["source", "counted in"], totals)
        for source, total in report.sources.items():
            tokens = (f"{total.available_tokens:,}", f"{total.planned_tokens:,}")
            whole.add_row(source, total.counted_in, *tokens, f"{total.epochs:.2f}")
        console.print(whole)
    for line in verdict_lines(report):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def share_cells(share: SourceShare) -> list[str]:
    """Return the cells of one source of one phase."""
    return [
        share.counted_in,
        f"{share.weight:.1%}",
        f"{share.available_tokens:,}",
        f"{share.planned_tokens:,}",
        f"{share.epochs:.2f}",
        f"{share.cap:g}",
        f"{share.samples:,}",
    ]


def verdict_lines(report: PlanReport) -> list[str]:
    """Return lines about each phase, the verdict first."""
    lines = []
    for name, phase in report.phases.items():
        lines.append(f"{name}: {phase.verdict}")
        lines += [f"  {text}" for text in (*phase.faults, *phase.warnings, *phase.notes)]
    return [*lines, *leakage_lines(report), *report.warnings]


def leakage_lines(report: PlanReport) -> Iterator[str]:
    """Yield a line for each source on what it has in common with held-out documents."""
    for source, of in (report.leakage or {}).items():
        yield (
            f"{source}: worst overlap of a training document with a held-out one: "
            f"{of.worst:.1%} of its 13-grams; left out for more than {MOST_SHARE:.0%}: "
            f"{of.left_out:,} of {of.documents:,} documents"
        )


def to_svg(report: PlanReport, mixed: Mapping[str, Drawn]) -> str:
    """Draw each phase's mix and the epochs of its sources, then these over all phases.

    `mixed` has the realised mix of the phases that are materialized.
    """
    charts = []
    for name, phase in report.phases.items():
        drawn = {
            unit: of_unit
            for source, share in phase.sources.items()
            for unit, of_unit in (share.units or {source: share}).items()
        }
        tokens = {unit: share.planned_tokens for unit, share in drawn.items()}
        charts.append(pie_chart(f"{name}: {phase.tokens:,} tokens, {phase.verdict}", tokens))
        charts.append(bar_chart(f"{name}: epochs of each source", epoch_bars(drawn)))
        if name in mixed:
            charts.append(shares_chart(f"{name}: tokens as they are drawn", mixed[name]))
    if len(report.phases) > 1:
        charts.append(bar_chart("all phases: epochs of each source", epoch_bars(report.sources)))
    return stacked(charts)


def epoch_bars(sources: Mapping[str, SourceTotal]) -> list[tuple[str, tuple[float], str]]:
    """Return a bar for each source."""
    return [
        (source, (total.epochs,), f"{total.epochs:.2f} epochs of {total.available_tokens:,}")
        for source, total in sources.items()
    ]
