"""Charts drawn as SVG, by matplotlib: the same chart has the same bytes.

Importing matplotlib takes a second and a chart 30 ms, so those that are drawn are kept for a month
under DAGSTER_HOME, by their content: a night with nothing to do draws none. The colours are of
Okabe and Ito's palette, which colour-blind readers can tell apart.
"""

from __future__ import annotations

import re
import time
import warnings
from base64 import b64decode, b64encode
from functools import cache
from io import StringIO
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from resources.charts import Areas, Bars, Chart, Panel, Panels
from resources.dagster_home import dagster_home, write_record
from resources.store.inventory import PICTURES, RUNS
from resources.store.records import fingerprint_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

VERSION = "1"  # of the drawings
KEPT_SECONDS = 30 * 86_400
BLUE, ORANGE, GREY, INK = "#0072B2", "#D55E00", "#999999", "#222222"
SLICES = (BLUE, "#E69F00", "#009E73", "#CC79A7", "#56B4E9", ORANGE, "#F0E442", GREY)
WIDTH, ROW, NAME, TEXT = 720, 18, 250, 190  # pixels
ACROSS, PANEL, LEAST = 3, 110, 0.015  # panels in a row; their height; of a column that is not 0
LONGEST = 44  # of a name
LAST = {"usual": BLUE, "drift": ORANGE}  # column of a panel
STYLE = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "tokenmill",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 11,
    "text.color": INK,
    "path.simplify": False,
}
PIXELS = re.compile(r'(\d)pt"')  # browsers show points larger
IMAGE = re.compile(r"\(chart:([\w+/=]+)\)")
_drawing = Lock()  # matplotlib's settings are those of the process


def with_pictures(markdown: str) -> str:
    """Draw the charts of a Markdown text into it, as SVG."""
    return IMAGE.sub(lambda found: f"({as_address(b64decode(found[1]))})", markdown)


def as_address(chart: bytes) -> str:
    """Return a chart, given as JSON, as an address that holds its picture."""
    svg = kept_picture(msgspec.json.decode(chart, type=Chart))
    return f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"


def kept_picture(chart: Chart) -> str:
    """Return the picture of a chart, drawn unless it was before."""
    folder = dagster_home() / RUNS / PICTURES
    digest = fingerprint_of([VERSION, msgspec.json.encode(chart).decode()])
    path = folder / f"{digest}.svg"
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        svg = draw(chart)
        remove_old(folder)
        write_record(path, svg.encode())
        return svg


@cache
def remove_old(folder: Path) -> None:
    """Remove the pictures that were drawn a month ago, once per process."""
    for path in folder.glob("*.svg"):
        if path.stat().st_mtime < time.time() - KEPT_SECONDS:
            path.unlink(missing_ok=True)


def draw(chart: Chart) -> str:
    """Draw a chart; return its SVG element."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    with _drawing, rc_context(STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that the font by which it measures lacks
        if isinstance(chart, Bars):
            figure = bars_of(chart)
        elif isinstance(chart, Panels):
            figure = panels_of(chart)
        else:
            figure = areas_of(chart)
        text = StringIO()
        FigureCanvasSVG(figure)
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(text, format="svg", metadata=nothing)
    svg = text.getvalue()
    return PIXELS.sub(r'\1"', svg[svg.index("<svg") :], count=2)


def shown(name: str, longest: int = LONGEST) -> str:
    """Return a name as it is drawn: short, and without what XML or a reader cannot take."""
    cut = name if len(name) <= longest else f"{name[:longest]}…"
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in cut)


def figure_of(height: float, title: str) -> Figure:
    """Return an empty figure of some pixels below its title."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH / 72, (height + 26) / 72), dpi=72)
    figure.text(6 / WIDTH, 1 - 17 / (height + 26), shown(title, 90), weight="bold")
    return figure


def bars_of(chart: Bars) -> Figure:
    """Draw horizontal bars, the first on top."""
    number, length = len(chart.bars), WIDTH - NAME - TEXT
    figure = figure_of(ROW * number + 4, chart.title)
    share = ROW * number / (ROW * number + 30)
    axes = figure.add_axes((NAME / WIDTH, 0, length / WIDTH, share or 0.1))
    axes.set_axis_off()
    axes.set_ylim(number - 0.5, -0.5)
    axes.set_xlim(0, length)
    largest = max((value for _, value, _ in chart.bars), default=0) or 1
    lengths = [length * value / largest for _, value, _ in chart.bars]
    axes.barh(range(number), lengths, height=0.75, color=BLUE)
    for row, (name, _, text) in enumerate(chart.bars):
        axes.text(-6, row, shown(name), ha="right", va="center_baseline")
        axes.text(lengths[row] + 6, row, shown(text), va="center_baseline")
    return figure


def panels_of(chart: Panels) -> Figure:
    """Draw small charts of columns in one pair of axes: one each takes four times as long."""
    rows = -(-len(chart.panels) // ACROSS)
    across = min(ACROSS, len(chart.panels)) or 1
    figure = figure_of(PANEL * rows, chart.title)
    axes = figure.add_axes((0, 0, 1, PANEL * rows / (PANEL * rows + 26) or 0.1))
    axes.set_axis_off()
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(PANEL * rows or 1, 0)
    width = WIDTH / across - 24
    for number, panel in enumerate(chart.panels):
        left = 12 + (width + 24) * (number % across)
        draw_panel(axes, panel, (left, PANEL * (number // across) + 84), width)
    return figure


def draw_panel(axes: Axes, panel: Panel, corner: tuple[float, float], width: float) -> None:
    """Draw one chart of columns from its lower left corner on."""
    left, floor = corner
    heights = np.array(panel.heights, np.float64)
    tallest = heights.max(initial=0) or 1
    tall = np.where(heights > 0, np.maximum(heights / tallest, LEAST), 0) * 50
    edges = left + width * np.linspace(0, 1, len(tall) + 1)
    step = width / max(1, len(tall))
    axes.text(left, floor - 70, shown(panel.title), size=10)
    axes.plot([left, left + width], [floor, floor], color=GREY, linewidth=0.8)
    if len(tall):
        colour = GREY if panel.last else BLUE
        axes.stairs(floor - tall, edges, baseline=floor, fill=True, color=colour)
    if colour := LAST.get(panel.last, ""):
        axes.stairs(floor - tall[-1:], edges[-2:], baseline=floor, fill=True, color=colour)
    for place, text in panel.ticks:
        side = side_of(place / max(1, len(tall)))
        axes.text(left + place * step, floor + 12, shown(text), size=9, ha=side)
    for place, text in panel.limits:
        x = left + place * step
        axes.plot([x, x], [floor - 54, floor], color=ORANGE, linewidth=1.5)
        side = "left" if x < left + width / 2 else "right"
        axes.text(x, floor - 56, shown(text), size=9, color=ORANGE, ha=side)


def side_of(share: float) -> str:
    """Return the side from which a label is written at a share of the width: it stays inside."""
    return "left" if share < 0.08 else "right" if share > 0.92 else "center"


def areas_of(chart: Areas) -> Figure:
    """Draw shares from 0 to 1 as stacked areas, the first at the bottom, with a legend."""
    figure = figure_of(214, chart.title)
    if not chart.names:
        return figure
    axes = figure.add_axes((44 / WIDTH, 0.1, 0.68, 0.77))
    shares = np.array([*chart.shares, *chart.shares[-1:]], np.float64)
    points = np.linspace(0, 1, len(shares))
    means = shares[:-1].mean(axis=0)
    labels = [f"{shown(n)}  {mean:.1%}" for n, mean in zip(chart.names, means, strict=True)]
    colours = [SLICES[place] for place in chart.colours or range(len(chart.names))]
    axes.stackplot(points, shares.T, labels=labels, colors=colours, step="post", linewidth=0)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_xticks([0, 0.5, 1], ["0%", "50% of the phase", "100%"])
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"])
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="upper left", bbox_to_anchor=(0.745, 0.9), frameon=False, reverse=True)
    return figure
