"""Small plots as SVG text, for Markdown metadata and reports; no plotting package.

All text is escaped: names of rules may come from a user's file, languages from a document. The
colours are of Okabe and Ito's palette, which colour-blind readers can tell apart.
"""

import base64
import math
from collections.abc import Mapping, Sequence
from html import escape

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#999999"
SLICES = (BLUE, "#E69F00", GREEN, "#CC79A7", "#56B4E9", ORANGE, "#F0E442", GREY)
ROW, LABELS, BARS, NUMBERS = 18, 250, 300, 170  # pixels
MOST_BARS = 7  # of shares
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


def share_bars(title: str, amounts: Mapping[str, float]) -> str:
    """Draw the MOST_BARS largest amounts, and the sum of the others, with their shares of all."""
    ranked = sorted(amounts.items(), key=lambda item: (-item[1], item[0]))
    shown = ranked[:MOST_BARS]
    if len(ranked) > MOST_BARS:
        shown.append(("others", sum(value for _, value in ranked[MOST_BARS:])))
    total = sum(amounts.values()) or 1
    texts = [(name, (value,), f"{value / total:.1%} ({value:,.0f})") for name, value in shown]
    return bar_chart(title, texts)


def as_markdown(plot: str, title: str) -> str:
    """Return a Markdown image with the plot inside (`title` must be plain text)."""
    encoded = base64.b64encode(plot.encode()).decode()
    return f"![{title}](data:image/svg+xml;base64,{encoded})"
