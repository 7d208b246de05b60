"""Show the result of `corpus whatif` as tables and as a drawing (SVG)."""

from __future__ import annotations

import html
import json
from typing import Any

import msgspec
from rich.console import Console
from rich.markup import escape

from assets.filtered.rules.threshold_replay import Overlay
from pipeline_defs.commands.terminal.output import new_table, table_console
from resources.settings.limits import limit_text

COLORS = {"now": "#8c96a8", "then": "#1f6fb4"}  # told apart without colour vision too
LABEL_WIDTH, BAR_WIDTH, NUMBER_WIDTH, ROW_HEIGHT, MARGIN = 330, 420, 170, 40, 20
STYLE = "font: 13px sans-serif; fill: #222"


class Amount(msgspec.Struct, frozen=True):
    """Documents, and bytes of their texts."""

    documents: int
    bytes: int


class Kept(msgspec.Struct, frozen=True):
    """All documents and bytes, and those that are kept now and then."""

    documents: int
    bytes: int
    now: Amount
    then: Amount


class Thresholds(msgspec.Struct, frozen=True):
    """Threshold of a rule now and then; None: off."""

    now: Any
    then: Any


class SourceKept(Kept, frozen=True, kw_only=True):
    """Amounts of a source, the changes behind them, and the keys to lay over its filters."""

    changes: dict[str, Thresholds]
    filters: dict[str, Overlay]
    notes: list[str]


class Broken(msgspec.Struct, frozen=True):
    """Documents and bytes that a rule breaks, and documents that only it breaks."""

    documents: int
    bytes: int
    alone: int


class RuleCounts(msgspec.Struct, frozen=True):
    """Documents that a rule breaks, now and then."""

    now: Broken
    then: Broken


class Overlap(msgspec.Struct, frozen=True):
    """Documents that two rules break together."""

    rules: tuple[str, str]
    now: int
    then: int


class WhatIf(msgspec.Struct, frozen=True):
    """Amounts by source and in total, documents by rule, and the most frequent pairs of rules."""

    sources: dict[str, SourceKept]
    total: Kept
    rules: dict[str, RuleCounts]
    overlaps: list[Overlap]


def show(result: WhatIf) -> None:
    """Print the result for people."""
    console = table_console()
    kept = new_table("kept", ["source"], ["documents", "now", "then", "MB", "MB now", "MB then"])
    for name, amounts in with_total(result).items():
        kept.add_row(name, *kept_row(amounts))
    console.print(kept)
    rules = new_table(
        "documents that a rule breaks",
        ["rule", "threshold"],
        ["now", "then", "MB now", "MB then", "alone now", "alone then"],
    )
    for name, counts in result.rules.items():
        rules.add_row(name, threshold_text(result, name), *rule_row(counts))
    console.print(rules)
    pairs = new_table("documents that two rules break", ["rule", "and rule"], ["now", "then"])
    for overlap in result.overlaps:
        pairs.add_row(*overlap.rules, f"{overlap.now:,}", f"{overlap.then:,}")
    if result.overlaps:
        console.print(pairs)
    print_notes(console, result)


def print_notes(console: Console, result: WhatIf) -> None:
    """Print the notes of each source, and the keys of pipeline.yaml for the changes."""
    for name, source in result.sources.items():
        lines = list(source.notes)
        if source.changes:
            filters = json.dumps(msgspec.to_builtins(source.filters))
            lines.append(f"To have this for {name}, lay over its filters: {filters}")
        for line in lines:
            console.print(line, markup=False, highlight=False, soft_wrap=True)


def with_total(result: WhatIf) -> dict[str, Kept]:
    """Return the sources' amounts, and their sum if there are several."""
    total = {"all": result.total} if len(result.sources) > 1 else {}
    return {**result.sources, **total}


def kept_row(amounts: Kept) -> list[str]:
    """Return the cells of one source: all, now and then, in documents and in MB."""
    cells = []
    for unit, scale, digits in (("documents", 1, 0), ("bytes", 1e6, 1)):
        whole = getattr(amounts, unit)
        cells.append(f"{whole / scale:,.{digits}f}")
        for side in (amounts.now, amounts.then):
            part = getattr(side, unit)
            cells.append(f"{part / scale:,.{digits}f} ({part / max(1, whole):.1%})")
    return cells


def rule_row(counts: RuleCounts) -> list[str]:
    """Return the cells of one rule."""
    sides = (counts.now, counts.then)
    documents = [f"{side.documents:,}" for side in sides]
    sizes = [f"{side.bytes / 1e6:,.1f}" for side in sides]
    return [*documents, *sizes, *(f"{side.alone:,}" for side in sides)]


def threshold_text(result: WhatIf, name: str) -> str:
    """Return "0.2 -> 0.25" for a rule that changes, else an empty text."""
    changes = [source.changes.get(name) for source in result.sources.values()]
    texts = {f"{plain(change.now)} -> {plain(change.then)}" for change in changes if change}
    return texts.pop() if len(texts) == 1 else "differs by source" if texts else ""


def plain(threshold: Any) -> str:
    """Return a threshold as people write it."""
    return "off" if threshold is None else escape(limit_text(threshold))


def to_svg(result: WhatIf) -> str:
    """Draw the kept share of each source, and the documents that each rule breaks."""
    shares = {
        name: {
            side: getattr(amounts, side).documents / max(1, amounts.documents) for side in COLORS
        }
        for name, amounts in with_total(result).items()
    }
    broken = {
        name: {side: float(getattr(counts, side).documents) for side in COLORS}
        for name, counts in result.rules.items()
    }
    broken = dict(sorted(broken.items(), key=lambda item: -max(item[1].values())))
    top = max((max(sides.values()) for sides in broken.values()), default=0.0)
    rows = [title_row("Documents kept (share)"), *bar_rows(shares, 1.0, ".1%"), legend_row()]
    rows += [title_row("Documents that a rule breaks"), *bar_rows(broken, top, ",.0f")]
    width = LABEL_WIDTH + BAR_WIDTH + NUMBER_WIDTH
    height = 2 * MARGIN + ROW_HEIGHT * len(rows)
    placed = "".join(
        f'<g transform="translate({MARGIN} {MARGIN + ROW_HEIGHT * number})">{row}</g>\n'
        for number, row in enumerate(rows)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">\n'
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n{placed}</svg>\n'
    )


def bar_rows(values: dict[str, dict[str, float]], top: float, form: str) -> list[str]:
    """Draw one row per name: two bars, from 0 to `top`, each with its number."""
    rows = []
    for name, sides in values.items():
        row = label(0, 22, name)
        for number, (side, color) in enumerate(COLORS.items()):
            length = BAR_WIDTH * sides[side] / (top or 1)
            y = 4 + 16 * number
            row += f'<rect x="{LABEL_WIDTH}" y="{y}" width="{length:.1f}" height="14" '
            row += f'fill="{color}"/>'
            row += label(LABEL_WIDTH + length + 6, y + 12, format(sides[side], form))
        rows.append(row)
    return rows


def title_row(text: str) -> str:
    """Draw a heading."""
    return f'<text x="0" y="26" style="{STYLE}" font-weight="bold">{html.escape(text)}</text>'


def legend_row() -> str:
    """Draw the legend: one colour for now, one for then."""
    row = ""
    for number, (side, color) in enumerate(COLORS.items()):
        x = LABEL_WIDTH + 90 * number
        row += f'<rect x="{x}" y="8" width="14" height="14" fill="{color}"/>'
        row += label(x + 20, 20, side)
    return row


def label(x: float, y: float, text: str) -> str:
    """Draw a text at a position."""
    return f'<text x="{x:.1f}" y="{y:.1f}" style="{STYLE}">{html.escape(text)}</text>'
