"""The result of `corpus whatif` as tables for the terminal, and as a drawing (SVG)."""

from __future__ import annotations

import html
import json
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

PIPE_WIDTH = 180  # columns, where the output is no terminal
COLORS = {"now": "#8c96a8", "then": "#1f6fb4"}  # told apart without colour vision too
LABEL_WIDTH, BAR_WIDTH, NUMBER_WIDTH, ROW_HEIGHT, MARGIN = 330, 420, 170, 40, 20
STYLE = "font: 13px sans-serif; fill: #222"


def show(found: dict[str, Any]) -> None:
    """Print the result for people."""
    console = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH)
    kept = new_table("kept", ["source"], ["documents", "now", "then", "MB", "MB now", "MB then"])
    for name, numbers in [*found["sources"].items(), ("all", found["total"])]:
        if name != "all" or len(found["sources"]) > 1:
            kept.add_row(name, *kept_row(numbers))
    console.print(kept)
    rules = new_table(
        "documents that a rule breaks",
        ["rule", "threshold"],
        ["now", "then", "MB now", "MB then", "alone now", "alone then"],
    )
    for name, sides in found["rules"].items():
        rules.add_row(name, threshold_text(found, name), *rule_row(sides))
    console.print(rules)
    pairs = new_table("documents that two rules break", ["rule", "and rule"], ["now", "then"])
    for pair in found["overlaps"]:
        pairs.add_row(*pair["rules"], f"{pair['now']:,}", f"{pair['then']:,}")
    if found["overlaps"]:
        console.print(pairs)
    for name, numbers in found["sources"].items():
        for note in numbers["notes"]:
            console.print(note, markup=False, highlight=False, soft_wrap=True)
        if numbers["changes"]:
            text = (
                f"To have this for {name}, lay over its filters: {json.dumps(numbers['filters'])}"
            )
            console.print(text, markup=False, highlight=False, soft_wrap=True)


def new_table(title: str, names: Sequence[str], numbers: Sequence[str]) -> Table:
    """An empty table: text columns on the left, numbers right-aligned."""
    table = Table(title=title, title_justify="left")
    for name in names:
        table.add_column(name)
    for name in numbers:
        table.add_column(name, justify="right")
    return table


def kept_row(numbers: dict[str, Any]) -> list[str]:
    """Cells of one source: all, now and then, in documents and in MB."""
    cells = []
    for unit, scale, digits in (("documents", 1, 0), ("bytes", 1e6, 1)):
        whole = numbers[unit]
        cells.append(f"{whole / scale:,.{digits}f}")
        for side in ("now", "then"):
            part = numbers[side][unit]
            cells.append(f"{part / scale:,.{digits}f} ({part / max(1, whole):.1%})")
    return cells


def rule_row(sides: dict[str, Any]) -> list[str]:
    """Cells of one rule."""
    now, then = sides["now"], sides["then"]
    documents = [f"{side['documents']:,}" for side in (now, then)]
    sizes = [f"{side['bytes'] / 1e6:,.1f}" for side in (now, then)]
    return [*documents, *sizes, *(f"{side['alone']:,}" for side in (now, then))]


def threshold_text(found: dict[str, Any], name: str) -> str:
    """ "0.2 -> 0.25" for a rule that changes, else nothing."""
    changes = [numbers["changes"].get(name) for numbers in found["sources"].values()]
    texts = {f"{plain(c['now'])} -> {plain(c['then'])}" for c in changes if c}
    return texts.pop() if len(texts) == 1 else "differs by source" if texts else ""


def plain(threshold: Any) -> str:
    """A threshold as people write it."""
    if threshold is None:
        return "off"
    return escape(",".join(threshold)) if isinstance(threshold, tuple | list) else f"{threshold:g}"


def plot(found: dict[str, Any]) -> str:
    """An SVG: kept share of each source, and documents broken by each rule, now and then."""
    sources = {**found["sources"], **({"all": found["total"]} if len(found["sources"]) > 1 else {})}
    shares = {
        name: {side: n[side]["documents"] / max(1, n["documents"]) for side in COLORS}
        for name, n in sources.items()
    }
    broken = {
        name: {side: float(numbers[side]["documents"]) for side in COLORS}
        for name, numbers in found["rules"].items()
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
    """One row per name: its two bars, from 0 to `top`, each with its number."""
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
    """A heading."""
    return f'<text x="0" y="26" style="{STYLE}" font-weight="bold">{html.escape(text)}</text>'


def legend_row() -> str:
    """Which colour is now and which is then."""
    row = ""
    for number, (side, color) in enumerate(COLORS.items()):
        x = LABEL_WIDTH + 90 * number
        row += f'<rect x="{x}" y="8" width="14" height="14" fill="{color}"/>'
        row += label(x + 20, 20, side)
    return row


def label(x: float, y: float, text: str) -> str:
    """A text at a place."""
    return f'<text x="{x:.1f}" y="{y:.1f}" style="{STYLE}">{html.escape(text)}</text>'
