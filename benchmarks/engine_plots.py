"""Tables and plots of benchmarks/engines.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from engines import WAYS, Run

from assets.report.plots import SLICES, label, svg

LEFT, TOP, WIDTH, HEIGHT, LEGEND = 70, 30, 420, 260, 110  # pixels
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
    """Draw lines over logarithmic axes, with a legend."""
    every = [point for points in lines.values() for point in points]
    across = Axis([x for x, _ in every], WIDTH)
    up = Axis([y for _, y in every], HEIGHT)
    floor = TOP + HEIGHT
    shapes = [label(LEFT, 16, title), label(LEFT + WIDTH / 2, floor + 34, below, "middle")]
    for power in range(*across.powers):
        x = LEFT + across.place(10.0**power)
        shapes.append(f'<path d="M{x:.1f} {TOP}V{floor}" stroke="#dddddd"/>')
        shapes.append(label(x, floor + 16, short(power), "middle"))
    for power in range(*up.powers):
        y = floor - up.place(10.0**power)
        shapes.append(f'<path d="M{LEFT} {y:.1f}h{WIDTH}" stroke="#dddddd"/>')
        shapes.append(label(LEFT - 6, y + 4, short(power), "end"))
    for points, colour in zip(lines.values(), SLICES, strict=False):
        places = [(LEFT + across.place(x), floor - up.place(y)) for x, y in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        shapes.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        shapes += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
    for row, (name, colour) in enumerate(zip(lines, SLICES, strict=False)):
        y = TOP + 10 + 20 * row
        shapes.append(f'<path d="M{LEFT + WIDTH + 10} {y}h20" stroke="{colour}" stroke-width="2"/>')
        shapes.append(label(LEFT + WIDTH + 36, y + 4, name))
    return svg(LEFT + WIDTH + LEGEND + 20, floor + 44, shapes)


class Axis:
    """A logarithmic axis of some pixels: its powers of ten, and the place of a value."""

    def __init__(self, values: Sequence[float], pixels: int) -> None:
        logs = [math.log10(value) for value in values]
        self.first, last = math.floor(min(logs)), math.ceil(max(logs))
        last = max(last, self.first + 1)
        self.powers = (self.first, last + 1)
        self.unit = pixels / (last - self.first)

    def place(self, value: float) -> float:
        """Return the pixels from the axis' start."""
        return (math.log10(value) - self.first) * self.unit


def short(power: int) -> str:
    """Return a power of ten as people write it."""
    return f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"
