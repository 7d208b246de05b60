"""Tables and plots of benchmarks/engines.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from itertools import pairwise
from pathlib import Path

from engines import WAYS, Run

from resources.drawn_charts import SLICES, STYLE

COLUMNS = ("rows/s", "start s", "work s", "CPU s", "rows per CPU s", "memory MB")
Point = tuple[float, float]
Value = Callable[[Run], float]


def print_tables(runs: Sequence[Run]) -> None:
    """Print Markdown tables: rows a second by size, costs at one size, and crossovers."""
    for line in (*speed_table(runs), "", *cost_table(runs), "", *crossovers(runs)):
        print(line)


def speed_table(runs: Sequence[Run]) -> Iterator[str]:
    """Yield a table of rows a second, of work alone, by size and way."""
    ways = ways_of(runs)
    yield f"| rows | {' | '.join(f'`{way}`' for way in ways)} |"
    yield f"|---:|{'---:|' * len(ways)}"
    for rows in sorted({run.rows for run in runs}):
        by_way = {run.way: run for run in runs if run.rows == rows}
        cells = (f"{by_way[way].rows_per_second:,.0f}" if way in by_way else "-" for way in ways)
        yield f"| {rows:,} | {' | '.join(cells)} |"


def cost_table(runs: Sequence[Run]) -> Iterator[str]:
    """Yield a table of the costs of each way at the largest size that all of them have."""
    ways = ways_of(runs)
    common = set.intersection(*({run.rows for run in runs if run.way == way} for way in ways))
    rows = max(common)
    yield f"| {rows:,} rows | {' | '.join(COLUMNS)} |"
    yield f"|---|{'---:|' * len(COLUMNS)}"
    for run in (run for run in runs if run.rows == rows):
        found = run.found
        timed = (
            f"{found.start:.1f}",
            f"{found.work:.1f}",
            f"{found.cpu:.1f}",
            f"{run.rows / found.cpu:,.0f}",
        )
        cells = (f"{run.rows_per_second:,.0f}", *timed, f"{run.memory / 1e6:,.0f}")
        yield f"| `{run.way}` | {' | '.join(cells)} |"


def crossovers(runs: Sequence[Run]) -> Iterator[str]:
    """Yield the number of rows from which each way ends before each other, start included."""
    ways = ways_of(runs)
    for way in ways:
        for other in ways:
            if way != other and (rows := crossover(line(runs, way), line(runs, other))):
                yield f"`{way}` ends before `{other}` from {rows:,.0f} rows on"


def crossover(points: Sequence[Point], others: Sequence[Point]) -> float | None:
    """Return where one line falls below another for good, between sizes that both have.

    None if it is below from the first size on, or not at the last.
    """
    theirs = dict(others)
    ratios = [
        (rows, math.log(seconds / theirs[rows])) for rows, seconds in points if rows in theirs
    ]
    pairs = list(pairwise(ratios))
    if not pairs or ratios[-1][1] >= 0:
        return None
    for (rows, ratio), (more, then) in reversed(pairs):
        if ratio > 0:
            share = ratio / (ratio - then)
            return float(f"{rows * (more / rows) ** share:.2g}")
    return None


def line(runs: Sequence[Run], way: str) -> list[Point]:
    """Return (rows, seconds with start) of a way."""
    return [(run.rows, elapsed(run)) for run in runs if run.way == way]


def elapsed(run: Run) -> float:
    """Seconds of start and work."""
    return run.found.start + run.found.work


def ways_of(runs: Sequence[Run]) -> list[str]:
    """Return the ways that were measured, in the order of all."""
    return [way for way in WAYS if any(run.way == way for run in runs)]


def write_plots(runs: Sequence[Run], folder: Path) -> None:
    """Write the plots as SVG files."""
    plots: dict[str, tuple[str, Value]] = {
        "rows-per-second": ("rows per second of work", lambda run: run.rows_per_second),
        "elapsed": ("seconds, start included", elapsed),
        "cpu": ("CPU seconds of work, all processes", lambda run: run.found.cpu),
        "memory": ("MB of all processes at most", lambda run: run.memory / 1e6),
    }
    for name, (title, value) in plots.items():
        lines = {
            way: [(float(run.rows), value(run)) for run in runs if run.way == way and value(run)]
            for way in ways_of(runs)
        }
        (folder / f"engines-{name}.svg").write_text(line_chart(title, "rows", lines) + "\n")


def line_chart(title: str, below: str, lines: dict[str, list[Point]]) -> str:
    """Draw lines over logarithmic axes, with a legend; return SVG."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    text = StringIO()
    with rc_context(STYLE):
        figure = Figure(figsize=(8, 4.5), layout="constrained")
        axes = figure.add_subplot()
        for (name, points), colour in zip(lines.items(), SLICES, strict=False):
            across, up = zip(*points, strict=True)
            axes.loglog(across, up, marker="o", markersize=4, label=name, color=colour)
        axes.set(title=title, xlabel=below)
        axes.grid(color="#dddddd")
        figure.legend(loc="outside right upper", frameon=False)
        FigureCanvasSVG(figure)
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()
