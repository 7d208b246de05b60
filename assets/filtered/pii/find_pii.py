"""Find personal data and secrets in texts, and replace them by typed placeholders.

Eleven kinds: e-mail, public IP addresses, phone numbers, US social security numbers, payment cards,
IBANs, secrets in URLs, passwords, API keys and private keys, and, if asked for, national ids.
`SCANS` has their patterns and validators.
Trade-off: Rust patterns search every text, Python checks only the candidates. Check digits, issued
ranges and the few characters around a candidate decide, never a model of the language. Names and
street addresses are not detected. Values with something in them that nobody sees are found in the
form of the text (`disguised`). Placeholders are words in brackets, which no pattern matches;
rows where a span may have hidden another are searched again, so redaction is idempotent.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.filtered.pii import (
    email_addresses,
    identity_numbers,
    national_ids,
    passwords,
    phones,
    secret_keys,
)
from assets.filtered.pii.candidates import (
    REJECTED,
    candidates_in,
    check_candidates,
    clue_tables,
    windows_of,
)
from assets.filtered.pii.disguised import find_disguised
from assets.filtered.pii.scan import Scan
from assets.text.buffers import text_buffers
from assets.text.chat_messages import change_messages
from assets.text.list_columns import list_series
from assets.text.table_rows import replace_rows
from resources.made_once import made_once
from resources.settings.filtering.filter_steps import (
    DEFAULT_KINDS,
    KINDS,
    MAX_VALUES,
    PLACEHOLDERS,
    PiiConfig,
    PiiKind,
)

# A Rust pattern finds candidates fast, without their context; a check reads one candidate in its
# text and yields the spans that count. No pattern has look-around, since Polars returns matches
# without places and a kernel finds them again. Every check reads a bounded part of the text.
SCANS: tuple[Scan, ...] = (
    *email_addresses.SCANS,
    *phones.SCANS,
    *identity_numbers.SCANS,
    *passwords.SCANS,
    *secret_keys.SCANS,
    *national_ids.SCANS,
)


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


if TYPE_CHECKING:
    from assets.filtered.kernels.clue_scan import ClueTables

# The text beside a span can become a span once the first is replaced.
_MAX_ROUNDS = 4
_REACH = 120  # characters; a check reads at most 100 before a candidate

# Regexes' matches take 150 bytes each: a list of addresses of 50 MB has four million.
_MAX_WINDOWS = 1 << 16
_MAX_PLACES = 1 << 12  # candidates checked before their values are counted: 0.1 s

Bytes = NDArray[np.uint8]
Booleans = NDArray[np.bool_]

_SPAN = pl.Struct({"kind": pl.String, "start": pl.Int64, "end": pl.Int64})


def find_pii(texts: pl.Series, config: PiiConfig) -> tuple[pl.Series, pl.DataFrame]:
    """Return `texts` (String, no nulls), redacted or unchanged, and the spans of each text.

    The frame has `pii_spans`, List(Struct{kind: String, start, end: Int64}), in characters (Unicode
    code points) of the original texts, sorted, without overlap; then one Int64 count `pii_<kind>`
    per kind in the order of the config, and `pii_total`. Of two spans that overlap the longer
    counts, of equal ones the kind listed first in `PiiKind`, a phone number last: its form says
    least. A text with more than MAX_VALUES values is not searched to its end: it has no spans, a
    total of MAX_VALUES + 1, and is empty if it was to be redacted.
    """
    placeholders = PLACEHOLDERS | config.placeholders
    spans, is_full = _find_all(texts, _scans_of(config.kinds), placeholders)
    if config.action == "redact":
        texts = _redact_rows(texts, spans, placeholders)
        full = pl.Series(np.flatnonzero(is_full), dtype=pl.get_index_type())
        texts = replace_rows(texts, full, pl.Series([""] * len(full), dtype=pl.String))
    return texts, _report(spans, is_full, config.kinds)


def _redact_rows(texts: pl.Series, spans: Integers, placeholders: dict[PiiKind, str]) -> pl.Series:
    """Return texts with placeholders in place of their spans; only those with spans are read."""
    rows = np.unique(spans[:, 0])
    if not len(rows):
        return texts
    if len(rows) == len(texts):
        return redact(texts, spans, placeholders).alias(texts.name)
    spans_of_rows = spans.copy()
    spans_of_rows[:, 0] = np.searchsorted(rows, spans[:, 0])
    redacted = redact(texts.gather(rows), spans_of_rows, placeholders)
    return replace_rows(texts, pl.Series(rows, dtype=pl.get_index_type()), redacted)


def _scans_of(kinds: Sequence[PiiKind]) -> tuple[Scan, ...]:
    return tuple(scan for scan in SCANS if scan.kind in kinds)


@made_once
def _clues_of_default_kinds() -> "ClueTables":
    """Return the tables of the default kinds, which `clue_tables` then has."""
    return clue_tables(_scans_of(DEFAULT_KINDS))


def _find_all(
    texts: pl.Series, scans: Sequence[Scan], placeholders: dict[PiiKind, str]
) -> tuple[Integers, Booleans]:
    """Return the spans of all texts, sorted, and which texts have too many, and so none here.

    Redacted texts are searched again.
    """
    spans, unsure, is_full = find_once(texts, scans)
    disguised = find_disguised(texts, lambda forms: find_once(forms, scans)[0])
    if len(disguised):
        disguised = disguised[~is_full[disguised[:, 0]]]
        spans, _ = without_overlap(np.concatenate([spans, disguised]))
        spans = _without_full(spans, is_full)
        unsure = np.union1d(unsure, disguised[:, 0])
        unsure = unsure[~is_full[unsure]]
    for _ in range(_MAX_ROUNDS - 1):
        if not len(unsure):
            break
        # A rejected candidate can be accepted later only if a neighbour was replaced.
        replaced = spans[np.isin(spans[:, 0], unsure)]
        replaced[:, 0] = np.searchsorted(unsure, replaced[:, 0])
        left = redact(texts.gather(unsure), replaced, placeholders)
        more, still_unsure, has_too_many = find_once(left, scans)
        is_full[unsure[has_too_many]] = True
        if len(more):
            moved = in_original(more, replaced, placeholders)
            moved[:, 0] = unsure[moved[:, 0]]
            spans, _ = without_overlap(np.concatenate([spans, moved]))
        spans = _without_full(spans, is_full)
        unsure = unsure[still_unsure]
        unsure = unsure[~is_full[unsure]]
    return spans, is_full


def _without_full(spans: Integers, is_full: Booleans) -> Integers:
    """Return the spans of texts that are not full; texts with too many spans are marked as such."""
    is_full |= np.bincount(spans[:, 0], minlength=len(is_full)) > MAX_VALUES
    return spans[~is_full[spans[:, 0]]] if is_full.any() else spans


def find_once(texts: pl.Series, scans: Sequence[Scan]) -> tuple[Integers, Integers, Booleans]:
    """Return the spans of the texts, the rows to search again once redacted, and those too full.

    Rows to search again, ascending, have a rejected candidate so near to a span that its check may
    have read the span. A full row has no spans: it has more than MAX_VALUES, of a scan or in all.
    """
    from assets.filtered.kernels.span_edit import mark_near

    is_full = np.zeros(len(texts), np.bool_)
    blocks = list(_search(*text_buffers(texts.rechunk()), scans, is_full))
    accepted = np.concatenate([NO_SPANS, *(block[block[:, 3] != REJECTED] for block in blocks)])
    spans, chosen = without_overlap(accepted[~is_full[accepted[:, 0]]])
    spans = _without_full(spans, is_full)
    is_near = np.zeros(len(texts), np.uint8)
    mark_near(chosen, HIDDEN, spans, _REACH, is_near)
    for block in blocks:
        mark_near(block, REJECTED, spans, _REACH, is_near)
    return spans, np.flatnonzero(is_near), is_full


def _search(
    data: Bytes, offsets: Integers, scans: Sequence[Scan], is_full: Booleans
) -> Iterator[Integers]:
    """Yield the spans and the rejected candidates of each scan, as `check_candidates` does.

    Texts in which a scan finds more than MAX_VALUES are marked in `is_full`, and read no further.
    """
    for scan, windows in zip(scans, windows_of(data, offsets, scans), strict=True):
        counts = np.zeros(len(is_full), np.int64)
        for places in _places(data, windows, scan):
            places = places[~is_full[places[:, 0]]]
            found = check_candidates(data, offsets, scan, places)
            counts += np.bincount(found[found[:, 3] != REJECTED, 0], minlength=len(counts))
            is_full |= counts > MAX_VALUES
            yield found


def _places(data: Bytes, windows: Integers, scan: Scan) -> Iterator[Integers]:
    """Yield the candidates of a scan, a few thousand at a time."""
    for first in range(0, len(windows), _MAX_WINDOWS):
        for places in candidates_in(data, windows[first : first + _MAX_WINDOWS], scan):
            for start in range(0, len(places), _MAX_PLACES):
                yield places[start : start + _MAX_PLACES]


def _report(spans: Integers, is_full: Booleans, kinds: Sequence[PiiKind]) -> pl.DataFrame:
    num_rows = len(is_full)
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
    total = sum(counts.values(), is_full * (MAX_VALUES + 1))
    return frame.hstack(
        [
            pl.Series(name, count, dtype=pl.Int64)
            for name, count in (counts | {"pii_total": total}).items()
        ]
    )


def find_pii_in_chats(texts: pl.Series, config: PiiConfig) -> tuple[pl.Series, pl.DataFrame]:
    """Return what `find_pii` returns, for texts (String, no nulls) of conversations."""
    clean, counts, places = change_messages(texts, lambda contents: find_pii(contents, config))
    numbers = [name for name in counts.columns if name != "pii_spans"]
    span = pl.col("pii_spans").struct
    found = counts.hstack(places)
    moved = (
        found.select("row", "first", "pii_spans")
        .explode("pii_spans", empty_as_null=False)
        .select(
            "row",
            pii_spans=pl.struct(
                kind=span.field("kind"),
                start=span.field("start") + pl.col("first"),
                end=span.field("end") + pl.col("first"),
            ),
        )
    )
    spans = moved.group_by("row", maintain_order=True).agg("pii_spans")
    totals = found.group_by("row", maintain_order=True).agg(pl.col(numbers).sum())
    empty = pl.lit([], counts.schema["pii_spans"])
    joined = totals.join(spans, on="row", how="left", maintain_order="left")
    return clean, joined.select(pl.col("pii_spans").fill_null(empty), *numbers)
