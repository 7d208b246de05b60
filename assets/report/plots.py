"""Small plots as SVG text, for Markdown metadata, reports and files; no plotting package.

All text is escaped: names of rules may come from a user's file, languages from a document. The
colours are of Okabe and Ito's palette, which colour-blind readers can tell apart.
"""

import base64
import math
import re
from collections.abc import Mapping, Sequence
from html import escape

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#999999"
SLICES = (BLUE, "#E69F00", GREEN, "#CC79A7", "#56B4E9", ORANGE, "#F0E442", GREY)
ROW, LABELS, BARS, NUMBERS, CELL = 18, 250, 300, 170, 52  # pixels
NAME_CHARS = 34  # what fits into LABELS
SIZE = re.compile(r'width="(\d+)" height="(\d+)"')
FONT = 'font-family="sans-serif" font-size="12"'


def svg(width: int, height: int, shapes: Sequence[str]) -> str:
    """Return an SVG document of the given size in pixels, on white."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" {FONT}>'
        f'<rect width="{width}" height="{height}" fill="white"/>{"".join(shapes)}</svg>'
    )


def label(x: float, y: float, text: str, anchor: str = "start", colour: str = "#222222") -> str:
    """Draw a line of text; `anchor` is start, middle or end."""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def box(x: float, y: float, size: tuple[float, float], colour: str) -> str:
    """Draw a filled rectangle of (width, height)."""
    width, height = size
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{colour}"/>'


def bar_chart(title: str, bars: Sequence[tuple[str, Sequence[float], str]]) -> str:
    """Draw horizontal bars of (label, one to three values, text).

    The values of a bar are drawn over each other, the longest first, relative to the largest value
    of the chart.
    """
    largest = max((value for _, values, _ in bars for value in values), default=0) or 1
    shapes = [label(4, 14, title)]
    for row, (name, values, text) in enumerate(bars):
        top = 22 + row * ROW
        shapes.append(label(LABELS - 6, top + 13, name, "end"))
        for value, colour in zip(values, (BLUE, "#56B4E9", GREEN), strict=False):
            shapes.append(box(LABELS, top + 2, (BARS * value / largest, ROW - 4), colour))
        shapes.append(label(LABELS + BARS + 6, top + 13, text))
    return svg(LABELS + BARS + NUMBERS, 30 + ROW * len(bars), shapes)


def histogram(
    title: str, bins: Sequence[tuple[str, float]], thresholds: Sequence[tuple[float, str]]
) -> str:
    """Draw columns of (label, count), and lines at thresholds of (position in bins, label)."""
    width, height, column = 420, 130, 400 / max(1, len(bins))
    largest = max((count for _, count in bins), default=0) or 1
    shapes = [label(10, 14, title)]
    path = "".join(
        # Square root: small bins stay visible.
        f"M{10 + i * column:.1f} 104v-{80 * math.sqrt(count / largest):.1f}h{column - 1:.1f}V104"
        for i, (_, count) in enumerate(bins)
        if count
    )
    shapes.append(f'<path d="{path}" fill="{BLUE}"/>')
    if bins:
        shapes += [label(10, 120, bins[0][0]), label(410, 120, bins[-1][0], "end")]
    for place, text in thresholds:
        x = 10 + place * column
        shapes.append(box(x - 1, 20, (2, 86), ORANGE))
        is_left = place < len(bins) / 2
        shapes.append(
            label(x + (4 if is_left else -4), 30, text, "start" if is_left else "end", ORANGE)
        )
    return svg(width, height, shapes)


def heat_map(
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    shares: Mapping[tuple[str, str], float],
) -> str:
    """Draw a square per (row, column) with its share from 0 to 1; larger shares are darker.

    A pair without a share is left white. Long names are cut.
    """
    longest = min(NAME_CHARS, max(map(len, columns), default=0))
    top, width = 40 + 7 * longest, LABELS + CELL * len(columns) + 20
    shapes = [label(4, 14, title)]
    for x, column in enumerate(columns):
        place = LABELS + x * CELL + CELL // 2 + 4
        shapes.append(f'<g transform="translate({place} {top - 6}) rotate(-90)">')
        shapes.append(label(0, 0, column[:NAME_CHARS]) + "</g>")
    for y, row in enumerate(rows):
        shapes.append(label(LABELS - 6, top + y * ROW + 13, row[:NAME_CHARS], "end"))
        for x, column in enumerate(columns):
            if share := shares.get((row, column)):
                shapes += _cell(LABELS + x * CELL, top + y * ROW, share)
    return svg(max(width, 420), top + ROW * len(rows) + 10, shapes)


def _cell(x: float, y: float, share: float) -> tuple[str, str]:
    """Draw a coloured square with its number; by the square root, small shares stay visible."""
    depth = math.sqrt(min(1.0, share))
    red, green, blue = (round(255 + (int(BLUE[i : i + 2], 16) - 255) * depth) for i in (1, 3, 5))
    number = f"{share:.1%}" if share >= 0.001 else "<0.1%"
    ink = "#ffffff" if depth > 0.6 else "#222222"
    shape = box(x, y, (CELL - 1, ROW - 1), f"#{red:02x}{green:02x}{blue:02x}")
    return shape, label(x + CELL / 2, y + 13, number, "middle", ink)


def pie_chart(title: str, shares: Mapping[str, float]) -> str:
    """Draw a pie of the seven largest shares and the sum of the others, with a legend."""
    ranked = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
    slices = ranked[:7]
    if len(ranked) > 7:
        slices.append(("others", sum(value for _, value in ranked[7:])))
    total = sum(value for _, value in slices) or 1
    shapes, begin = [label(10, 14, title)], 0.0
    for i, (name, value) in enumerate(slices):
        share = value / total
        shapes.append(_slice(begin, share, SLICES[i]))
        shapes += [box(200, 26 + 18 * i, (12, 12), SLICES[i])]
        shapes += [label(218, 37 + 18 * i, f"{name}  {share:.1%}  ({value:,.0f})")]
        begin += share
    return svg(420, 190, shapes)


def _slice(begin: float, share: float, colour: str) -> str:
    if share >= 1:
        return f'<circle cx="95" cy="105" r="78" fill="{colour}"/>'
    points = [_on_circle(begin), _on_circle(begin + share)]
    (x1, y1), (x2, y2) = points
    large = int(share > 0.5)
    path = f"M95 105 L{x1:.2f} {y1:.2f} A78 78 0 {large} 1 {x2:.2f} {y2:.2f} Z"
    return f'<path d="{path}" fill="{colour}"/>'


def _on_circle(turn: float) -> tuple[float, float]:
    angle = 2 * math.pi * turn - math.pi / 2
    return 95 + 78 * math.cos(angle), 105 + 78 * math.sin(angle)


def stacked(charts: Sequence[str]) -> str:
    """Return one SVG with the charts one below the other."""
    sizes = [tuple(map(int, SIZE.findall(chart)[0])) for chart in charts]
    tops = [sum(height for _, height in sizes[:i]) for i in range(len(sizes) + 1)]
    placed = [
        chart.replace("<svg ", f'<svg y="{top}" ', 1)
        for chart, top in zip(charts, tops, strict=False)
    ]
    return svg(max((width for width, _ in sizes), default=0), tops[-1], placed)


def as_markdown(plot: str, title: str) -> str:
    """Return a Markdown image with the plot inside (`title` must be plain text)."""
    encoded = base64.b64encode(plot.encode()).decode()
    return f"![{title}](data:image/svg+xml;base64,{encoded})"
