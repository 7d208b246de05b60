"""Find personal data and secrets in texts, and replace them by typed placeholders.

Ten kinds: e-mail, public IP addresses, phone numbers, US social security numbers, payment cards,
IBANs, secrets in URLs, passwords, API keys and private keys. `patterns` lists their patterns and
validators.
Trade-off: Rust patterns search every text, Python checks only the candidates. Check digits, issued
ranges and the few characters around a candidate decide, never a model of the language. Names and
street addresses are not detected. Placeholders are words in brackets, which no pattern matches;
rows where a span may have hidden another are searched again, so redaction is idempotent.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.filtered.pii.candidates import candidates_in
from assets.filtered.pii.checks import REJECTED, check_candidates
from assets.filtered.pii.clues import clue_tables, windows_of
from assets.filtered.pii.long_texts import LONG, MAX_CHANGES, Found, changes, is_dense, search_again
from assets.filtered.pii.patterns import SCANS
from assets.filtered.pii.scan import Scan
from assets.filtered.pii.spans import HIDDEN, NO_SPANS, in_original, redact, without_overlap
from assets.text.buffers import text_buffers
from assets.text.list_columns import list_series
from assets.text.table_rows import replace_rows
from resources.made_once import made_once
from resources.settings.filtering.filter_steps import KINDS, PiiConfig, PiiKind

if TYPE_CHECKING:
    from assets.filtered.kernels.clue_scan import ClueTables

# The text beside a span can become a span once the first is replaced.
_MAX_ROUNDS = 4
_REACH = 120  # characters; a check reads at most 100 before a candidate

# Regexes' matches take 150 bytes each: a list of addresses of 50 MB has four million.
_MAX_WINDOWS = 1 << 16
_MAX_PLACES = 1 << 18  # of candidates, for whose checks there is room beside them: 100 bytes each

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]

_SPAN = pl.Struct({"kind": pl.String, "start": pl.Int64, "end": pl.Int64})


def find_pii(texts: pl.Series, config: PiiConfig) -> tuple[pl.Series, pl.DataFrame]:
    """Return `texts` (String, no nulls), redacted or unchanged, and the spans of each text.

    The frame has `pii_spans`, List(Struct{kind: String, start, end: Int64}), in characters (Unicode
    code points) of the original texts, sorted, without overlap; then one Int64 count `pii_<kind>`
    per kind in the order of the config, and `pii_total`. Of two spans that overlap the longer
    counts, of equal ones the kind listed first in `PiiKind`, a phone number last: its form says
    least.
    """
    scans = [scan for scan in SCANS if scan.kind in config.kinds]
    spans = _find_all(texts, scans, config.placeholders)
    rows = np.unique(spans[:, 0])
    if config.action == "redact" and 0 < len(rows) == len(texts):
        texts = redact(texts, spans, config.placeholders).alias(texts.name)
    elif config.action == "redact" and len(rows):
        spans_of_rows = spans.copy()
        spans_of_rows[:, 0] = np.searchsorted(rows, spans[:, 0])
        redacted = redact(texts.gather(rows), spans_of_rows, config.placeholders)
        texts = replace_rows(texts, pl.Series(rows, dtype=pl.get_index_type()), redacted)
    return texts, _report(spans, len(texts), config.kinds)


@made_once
def _clues_of_all_kinds() -> "ClueTables":
    """Return the tables of the default kinds, which `clue_tables` then has."""
    return clue_tables(tuple(SCANS))


def _find_all(
    texts: pl.Series, scans: Sequence[Scan], placeholders: dict[PiiKind, str]
) -> Integers:
    """Return the spans of all texts, sorted; a long text is searched by itself."""
    sizes = texts.str.len_bytes().to_numpy()
    longs = np.flatnonzero(sizes >= LONG)
    if not len(longs) or len(texts) == 1:
        return _find_rounds(texts, scans, placeholders)
    groups = [np.flatnonzero(sizes < LONG), *longs[:, None]]
    found = [_find_rounds(texts.gather(rows), scans, placeholders) for rows in groups]
    for spans, rows in zip(found, groups, strict=True):
        spans[:, 0] = rows[spans[:, 0]]
    spans = np.concatenate(found)
    return spans[np.argsort(spans[:, 0], kind="stable")]


def _find_rounds(
    texts: pl.Series, scans: Sequence[Scan], placeholders: dict[PiiKind, str]
) -> Integers:
    """Return the spans of all texts; the redacted texts are searched again."""
    found = _search(*text_buffers(texts.rechunk()), scans)
    spans, unsure = _choose(found, len(texts))
    is_long = len(texts) == 1 and texts.str.len_bytes().item() >= LONG
    replaced = NO_SPANS
    for _ in range(_MAX_ROUNDS - 1):
        if not len(unsure):
            break
        # A rejected candidate can be accepted later only if a neighbour was replaced.
        before, replaced = replaced, spans
        if len(unsure) < len(texts):
            replaced = spans[np.isin(spans[:, 0], unsure)]
            replaced[:, 0] = np.searchsorted(unsure, replaced[:, 0])
        has_few_changes = is_long and len(replaced) - len(before) < MAX_CHANGES
        is_kept = has_few_changes and is_dense(found, texts)
        if not is_kept:
            found.clear()  # of a long list as large as what is found now
        left = redact(texts.gather(unsure), replaced, placeholders)
        if is_kept:
            once, now = _placed(texts, before), _placed(texts, replaced)
            zones = changes(once, now, _sizes(placeholders))
            found = search_again(found, zones, text_buffers(left)[0], scans, _search)
        else:
            found = _search(*text_buffers(left), scans)
        more, still_unsure = _choose(found, len(left))
        if len(more):
            moved = in_original(more, replaced, placeholders)
            moved[:, 0] = unsure[moved[:, 0]]
            spans, _ = without_overlap(np.concatenate([spans, moved]))
        unsure = unsure[still_unsure]
    return spans


def _placed(texts: pl.Series, spans: Integers) -> Integers:
    """Return start, end and kind of spans of one text, then start and end in bytes."""
    from assets.filtered.kernels.span_edit import to_bytes

    places = spans.copy()
    to_bytes(*text_buffers(texts.rechunk()), places)
    return np.column_stack([spans[:, 1:], places[:, 1:3]])


def _sizes(placeholders: dict[PiiKind, str]) -> Integers:
    words = [placeholders[kind] for kind in KINDS]
    return np.array([[len(word), len(word.encode())] for word in words])


def find_once(texts: pl.Series, scans: Sequence[Scan]) -> tuple[Integers, Integers]:
    """Return the spans of the texts, and the rows to search again once redacted, ascending.

    The latter have a rejected candidate so near to a span that its check may have read the span.
    """
    return _choose(_search(*text_buffers(texts.rechunk()), scans), len(texts))


def _choose(found: list[Found], num_texts: int) -> tuple[Integers, Integers]:
    """Return what `find_once` does."""
    from assets.filtered.kernels.span_edit import mark_near

    blocks = [block for own in found for block in own.blocks]
    counts = np.cumsum([0, *((block[:, 3] != REJECTED).sum() for block in blocks)])
    chosen = np.empty((counts[-1], 4), np.int64)  # half a gigabyte less than joined parts
    for block, first, last in zip(blocks, counts, counts[1:], strict=False):
        chosen[first:last] = block[block[:, 3] != REJECTED, :4]
    spans, chosen = without_overlap(chosen)
    is_near = np.zeros(num_texts, np.uint8)
    mark_near(chosen, HIDDEN, spans, _REACH, is_near)
    for block in blocks:
        mark_near(block, REJECTED, spans, _REACH, is_near)
    return spans, np.flatnonzero(is_near)


def _search(data: Bytes, offsets: Integers, scans: Sequence[Scan]) -> list[Found]:
    """Return the spans and the rejected candidates of each scan, as `check_candidates` does."""
    found = []
    for scan, windows in zip(scans, windows_of(data, offsets, scans), strict=True):
        blocks = []
        for first in range(0, len(windows), _MAX_WINDOWS):
            for places in candidates_in(data, windows[first : first + _MAX_WINDOWS], scan):
                for start in range(0, len(places), _MAX_PLACES):
                    own = places[start : start + _MAX_PLACES]
                    blocks.append(check_candidates(data, offsets, scan, own))
        found.append(Found([block for block in blocks if len(block)], len(windows) > 0))
    return found


def _report(spans: Integers, num_rows: int, kinds: Sequence[PiiKind]) -> pl.DataFrame:
    rows, starts, ends, numbers = spans.T
    columns = {
        "kind": pl.Series(KINDS, dtype=pl.String).gather(numbers),
        "start": starts,
        "end": ends,
    }
    listed = pl.DataFrame(columns, schema=_SPAN.to_schema()).to_struct().to_arrow()
    offsets = np.concatenate([[0], np.bincount(rows, minlength=num_rows).cumsum()])
    frame = pl.DataFrame([list_series(listed, offsets).cast(pl.List(_SPAN)).alias("pii_spans")])
    counts = {
        f"pii_{kind}": np.bincount(rows[numbers == KINDS.index(kind)], minlength=num_rows)
        for kind in kinds
    }
    total = sum(counts.values(), np.zeros(num_rows, np.int64))
    return frame.hstack(
        [
            pl.Series(name, count, dtype=pl.Int64)
            for name, count in (counts | {"pii_total": total}).items()
        ]
    )
