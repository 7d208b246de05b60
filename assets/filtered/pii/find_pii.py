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

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.filtered.pii.candidates import candidates
from assets.filtered.pii.checks import REJECTED, check_candidates
from assets.filtered.pii.clues import windows_of
from assets.filtered.pii.patterns import SCANS
from assets.filtered.pii.scan import Scan
from assets.filtered.pii.spans import NO_SPANS, in_original, redact, rows_near, without_overlap
from assets.text.buffers import text_buffers
from assets.text.list_columns import list_series
from assets.text.table_rows import replace_rows
from resources.settings.filtering.filter_steps import KINDS, PiiConfig, PiiKind

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
    if config.action == "redact" and len(spans):
        rows, own = np.unique(spans[:, 0], return_inverse=True)
        spans_of_rows = np.column_stack([own, spans[:, 1:]])
        redacted = redact(texts.gather(rows), spans_of_rows, config.placeholders)
        texts = replace_rows(texts, pl.Series(rows, dtype=pl.get_index_type()), redacted)
    return texts, _report(spans, len(texts), config.kinds)


def _find_all(
    texts: pl.Series, scans: Sequence[Scan], placeholders: dict[PiiKind, str]
) -> Integers:
    """Return the spans of all texts; the redacted texts are searched again."""
    spans, unsure = find_once(texts, scans)
    for _ in range(_MAX_ROUNDS - 1):
        if not len(unsure):
            break
        # A rejected candidate can be accepted later only if a neighbour was replaced.
        replaced = spans[np.isin(spans[:, 0], unsure)]
        replaced[:, 0] = np.searchsorted(unsure, replaced[:, 0])
        left = redact(texts.gather(unsure), replaced, placeholders)
        more, still_unsure = find_once(left, scans)
        moved = in_original(more, replaced, placeholders)
        moved[:, 0] = unsure[moved[:, 0]]
        spans, _ = without_overlap(np.concatenate([spans, moved]))
        unsure = unsure[still_unsure]
    return spans


def find_once(texts: pl.Series, scans: Sequence[Scan]) -> tuple[Integers, Integers]:
    """Return the spans of the texts, and the rows to search again once redacted, ascending.

    The latter have a rejected candidate so near to a span that its check may have read the span.
    """
    checked = _search(*text_buffers(texts.rechunk()), scans)
    is_rejected = checked[:, 3] == REJECTED
    spans, hidden = without_overlap(checked[~is_rejected])
    return spans, rows_near(np.concatenate([checked[is_rejected], hidden]), spans, _REACH)


def _search(data: Bytes, offsets: Integers, scans: Sequence[Scan]) -> Integers:
    """Return the spans and the rejected candidates of all scans, as `check_candidates` does."""
    found = [NO_SPANS]
    for scan, windows in zip(scans, windows_of(data, offsets, scans), strict=True):
        for first in range(0, len(windows), _MAX_WINDOWS):
            places = candidates(data, windows[first : first + _MAX_WINDOWS], scan)
            for start in range(0, len(places), _MAX_PLACES):
                own = places[start : start + _MAX_PLACES]
                found.append(check_candidates(data, offsets, scan, own))
    return np.concatenate(found)


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
