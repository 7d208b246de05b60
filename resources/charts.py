"""Charts as data, for Markdown metadata and the report: what is shown, not how it is drawn.

A report of a stage names its charts; they are drawn when it is written (`drawn_charts.py`), and not
while they stay the same.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence

import msgspec

MOST_SHARES = 7  # the palette has eight colours
TICK = tuple[float, str]  # a place on the axis of bins, and its label


class Bars(msgspec.Struct, frozen=True, tag=True):
    """Horizontal bars of (name, value, text beside it)."""

    title: str
    bars: tuple[tuple[str, float, str], ...]


class Panel(msgspec.Struct, frozen=True):
    """Columns side by side, with ticks below them and limits (vertical lines) across them.

    `last` is "usual" or "drift" if the last column is compared with the others.
    """

    title: str
    heights: tuple[float, ...]
    ticks: tuple[TICK, ...]
    limits: tuple[TICK, ...] = ()
    last: str = ""


class Panels(msgspec.Struct, frozen=True, tag=True):
    """Small charts of columns, side by side."""

    title: str
    panels: tuple[Panel, ...]


class Areas(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Shares of the names, which add up to 1, at points of a phase: [points, names].

    `colours` are places in the palette; without them, the first name has the first one.
    """

    title: str
    names: tuple[str, ...]
    shares: tuple[tuple[float, ...], ...]
    colours: tuple[int, ...] = ()


Chart = Bars | Panels | Areas


def share_bars(title: str, amounts: Mapping[str, float]) -> Bars:
    """Show the MOST_SHARES largest amounts, and the sum of the others, with their shares of all."""
    ranked = sorted(amounts.items(), key=lambda item: (-item[1], item[0]))
    shown = ranked[:MOST_SHARES]
    if len(ranked) > MOST_SHARES:
        shown.append(("others", sum(value for _, value in ranked[MOST_SHARES:])))
    total = sum(amounts.values()) or 1
    texts = ((name, value, f"{value / total:.1%} ({value:,.0f})") for name, value in shown)
    return Bars(title, tuple(texts))


def histogram(title: str, bins: Sequence[tuple[str, float]], axis: str = "") -> Panels:
    """Show columns of (label, count), of which the first, the last and some between are labelled.

    `axis` says what the columns stand for.
    """
    step = -(-len(bins) // 5) or 1
    ticks = [(place + 0.5, bins[place][0]) for place in range(0, len(bins), step)]
    return Panels(title, (Panel(axis, tuple(count for _, count in bins), tuple(ticks)),))


def with_limits(chart: Panels, limits: Sequence[TICK]) -> Panels:
    """Add lines at limits to a histogram."""
    panels = (msgspec.structs.replace(each, limits=tuple(limits)) for each in chart.panels)
    return Panels(chart.title, tuple(panels))


def as_markdown(chart: Chart, title: str) -> str:
    """Return a Markdown image of a chart that is still to be drawn (`title` is plain text)."""
    return f"![{title}](chart:{b64encode(msgspec.json.encode(chart)).decode()})"
