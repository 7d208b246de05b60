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
HIDDEN = -1  # stands for a kind
_TEXT = 1 << 40  # characters, more than a text has: orders places of many texts


def without_overlap(spans: Integers) -> tuple[Integers, Integers]:
    """Return the spans to keep, sorted, and all of them, with the kind HIDDEN for some.

    Of two that overlap the longer counts, of equal ones the kind listed first, a phone number last.
    Hidden is one dropped for another that does not hold it. Changes the array given.
    """
    from assets.filtered.kernels import span_edit

    if not span_edit.are_sorted(spans):
        rows, starts, ends, kinds = spans.T
        spans = spans[np.lexsort((kinds, -ends, starts, rows))]
    marks = span_edit.choose_spans(spans, KINDS.index("phone"), len(KINDS))
    kept = spans[marks == span_edit.KEPT]
    spans[marks == span_edit.HIDDEN, 3] = HIDDEN
    return kept, spans


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
