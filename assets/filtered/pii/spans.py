"""Spans of personal data as rows of an array: number of the text, start, end, number of the kind.

Starts and ends are characters (Unicode code points); spans are sorted by text and start.
"""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.text.buffers import text_buffers
from resources.settings.filtering.filter_steps import KINDS, PiiKind

Integers = NDArray[np.int64]

NO_SPANS = np.zeros((0, 4), np.int64)
_TEXT = 1 << 40  # characters, more than a text has: orders places of many texts


def without_overlap(spans: Integers) -> tuple[Integers, Integers]:
    """Return the spans to keep, sorted, and those dropped for one that does not hold them.

    Of two that overlap the longer counts, of equal ones the kind listed first, a phone number last.
    """
    from assets.filtered.kernels.span_edit import HIDDEN, KEPT, choose_spans

    rows, starts, ends, kinds = spans.T
    spans = spans[np.lexsort((kinds, -ends, starts, rows))]
    lengths = spans[:, 2] - spans[:, 1]
    is_phone = spans[:, 3] == KINDS.index("phone")
    marks = choose_spans(spans, (lengths * 2 + ~is_phone) * len(KINDS) - spans[:, 3])
    return spans[marks == KEPT], spans[marks == HIDDEN]


def rows_near(places: Integers, spans: Integers, reach: int) -> Integers:
    """Return the texts with a place, in any order, at most `reach` characters from a span."""
    if not len(spans):
        return np.zeros(0, np.int64)
    starts = spans[:, 0] * _TEXT + spans[:, 1]
    firsts, lasts = (places[:, 0] * _TEXT + places[:, k] for k in (1, 2))
    after = np.searchsorted(starts, firsts, side="right")
    before = spans[np.maximum(after - 1, 0)]
    follows = (after > 0) & (before[:, 0] * _TEXT + before[:, 2] + reach >= firsts)
    follows &= before[:, 0] == places[:, 0]
    next_one = np.minimum(after, len(spans) - 1)
    leads = (after < len(spans)) & (starts[next_one] <= lasts + reach)
    leads &= spans[next_one, 0] == places[:, 0]
    return np.unique(places[follows | leads, 0])


def redact(texts: pl.Series, spans: Integers, placeholders: dict[PiiKind, str]) -> pl.Series:
    """Return texts (String, no nulls) with placeholders in place of their spans."""
    import pyarrow as pa

    from assets.filtered.kernels.span_edit import replace_spans, to_bytes

    data, offsets = text_buffers(texts.rechunk())
    spans = spans.copy()
    to_bytes(data, offsets, spans)
    words = [placeholders[kind].encode() for kind in KINDS]
    ends = np.cumsum([len(word) for word in words])
    held = np.frombuffer(b"".join(words), np.uint8)
    edited, starts = replace_spans(data, offsets, spans, held, ends)
    buffers = [pa.py_buffer(starts), pa.py_buffer(edited)]
    return pl.Series(pa.LargeStringArray.from_buffers(len(texts), *buffers), dtype=pl.String)


def in_original(spans: Integers, replaced: Integers, placeholders: dict[PiiKind, str]) -> Integers:
    """Move spans of redacted texts to the originals; a placeholder in one is its whole span."""
    sizes = np.array([len(placeholders[kind]) for kind in KINDS])[replaced[:, 3]]
    growth = sizes - (replaced[:, 2] - replaced[:, 1])
    total = np.concatenate([[0], growth.cumsum()])
    first = np.searchsorted(replaced[:, 0], replaced[:, 0])  # of the span's text
    starts = replaced[:, 1] + total[:-1] - total[first]
    ends = starts + sizes
    marks = replaced[:, 0] * _TEXT + starts
    moved = spans.copy()
    for k in (1, 2):
        keys = spans[:, 0] * _TEXT + spans[:, k] - (k == 2)
        mark = np.searchsorted(marks, keys, side="right") - 1
        is_after = (mark >= 0) & (replaced[mark, 0] == spans[:, 0])
        beyond = spans[:, k] - ends[mark]
        moved[is_after, k] = np.where(beyond < 0, replaced[mark, k], beyond + replaced[mark, 2])[
            is_after
        ]
    return moved
