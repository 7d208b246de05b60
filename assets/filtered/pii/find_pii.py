"""Find personal data and secrets in texts, and replace them by typed placeholders.

Ten kinds: e-mail, public IP addresses, phone numbers, US social security numbers, payment cards,
IBANs, secrets in URLs, passwords, API keys and private keys. `patterns` lists their patterns and
validators.
Trade-off: Rust patterns search every text, Python checks only the candidates. Check digits, issued
ranges and the few characters around a candidate decide, never a model of the language. Names and
street addresses are not detected. Placeholders are words in brackets, which no pattern matches;
rows where a span may have hidden another are searched again, so redaction is idempotent.
"""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.filtered.pii.clues import rows_with_clues
from assets.filtered.pii.patterns import SCANS
from assets.filtered.pii.scan import Scan, Span
from resources.settings.filter_steps import KINDS, PiiConfig, PiiKind

# The text beside a span can become a span once the first is replaced.
_MAX_ROUNDS = 4
_REACH = 120  # characters; a check reads at most 100 before a candidate

_PiiSpan = tuple[int, int, PiiKind]
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
    if config.action == "redact" and spans:
        places = pl.Series(sorted(spans), dtype=pl.get_index_type())
        redacted = [
            redact_text(text, spans[row], config.placeholders)
            for row, text in zip(places.to_list(), texts.gather(places).to_list(), strict=True)
        ]
        # `scatter` writes into the series it is called on.
        texts = texts.clone().scatter(places, pl.Series(redacted, dtype=pl.String))
    return texts, _report(spans, len(texts), config.kinds)


def _find_all(
    texts: pl.Series, scans: Sequence[Scan], placeholders: dict[PiiKind, str]
) -> dict[int, list[_PiiSpan]]:
    """Return the spans of each row that has any; the redacted texts are searched again."""
    spans, unsure = find_once(texts, scans)
    for _ in range(_MAX_ROUNDS - 1):
        # A rejected candidate can be accepted later only if a neighbour was replaced.
        rows = sorted(unsure & spans.keys())
        originals = texts.gather(pl.Series(rows, dtype=pl.get_index_type())).to_list()
        left = [
            redact_text(text, spans[row], placeholders)
            for row, text in zip(rows, originals, strict=True)
        ]
        more, unsure_places = find_once(pl.Series(left, dtype=pl.String), scans)
        for place, moved in more.items():
            row = rows[place]
            own = spans[row] + _in_original(moved, spans[row], placeholders)
            spans[row], _ = _without_overlap(own)
        unsure = {rows[place] for place in unsure_places & more.keys()}
        if not unsure:
            break
    return spans


def find_once(
    texts: pl.Series, scans: Sequence[Scan]
) -> tuple[dict[int, list[_PiiSpan]], set[int]]:
    """Return the sorted spans of each row that has any, and the rows to search again once redacted.

    The latter have a rejected candidate so near to a span that its check may have read the span.
    """
    spans: dict[int, list[_PiiSpan]] = {}
    rejected: dict[int, list[Span]] = {}
    for scan, rows in zip(scans, rows_with_clues(texts, clues_of(scans)), strict=True):
        for row, text, places in candidates(texts, scan, rows):
            for place in places:
                checked = list(scan.check(text, *place))
                if checked:
                    spans.setdefault(row, []).extend((*span, scan.kind) for span in checked)
                # Two words can lead to one password: the first may find another once it is gone.
                if not checked or scan.kind == "password":
                    rejected.setdefault(row, []).append(place)
    kept = {}
    for row, own in spans.items():
        kept[row], dropped = _without_overlap(own)
        rejected.setdefault(row, []).extend(dropped)
    return kept, {row for row, own in kept.items() if _any_near(rejected[row], own)}


def clues_of(scans: Sequence[Scan]) -> tuple[tuple[str, ...], ...]:
    """Return the clues of each scan."""
    return tuple(scan.clues for scan in scans)


def _any_near(places: list[Span], spans: list[_PiiSpan]) -> bool:
    starts = [start for start, _, _ in spans]
    for start, end in places:
        after = bisect_right(starts, start)
        if after and spans[after - 1][1] + _REACH >= start:
            return True
        if after < len(spans) and starts[after] <= end + _REACH:
            return True
    return False


def candidates(
    texts: pl.Series, scan: Scan, rows: NDArray[np.int64] | None = None
) -> list[tuple[int, str, list[Span]]]:
    """Return row, text and places of the candidates, for each row that has any.

    `rows`, ascending, are those with a clue of the scan; without them all are searched.
    """
    if rows is None:
        rows = np.arange(len(texts))
    if not len(rows):
        return []
    likely = texts.gather(rows)
    is_hit = likely.str.contains(scan.core)
    hits = likely.filter(is_hit)
    matches = hits.str.extract_all(scan.candidate)
    has_any = matches.list.len() > 0
    places = rows[is_hit.to_numpy()][has_any.to_numpy()].tolist()
    triples = zip(places, hits.filter(has_any), matches.filter(has_any).to_list(), strict=True)
    return [(row, text, _places(text, words)) for row, text, words in triples]


def _places(text: str, words: list[str]) -> list[Span]:
    """Return the places of the matches of a pattern without look-around, given in order.

    The first occurrence after the previous match is the match: the pattern would match it there.
    """
    places, end = [], 0
    for word in words:
        start = text.index(word, end)
        end = start + len(word)
        places.append((start, end))
    return places


def _without_overlap(spans: list[_PiiSpan]) -> tuple[list[_PiiSpan], list[Span]]:
    """Return the spans to keep, sorted, and the places of those dropped for overlap."""
    kept: list[_PiiSpan] = []
    dropped: list[Span] = []
    for span in sorted(set(spans), key=lambda span: (span[0], -span[1], KINDS.index(span[2]))):
        if not kept or span[0] >= kept[-1][1]:
            kept.append(span)
        else:
            better, worse = sorted((span, kept[-1]), key=_rank, reverse=True)
            kept[-1] = better
            if not better[0] <= worse[0] <= worse[1] <= better[1]:
                dropped.append(worse[:2])
    return kept, dropped


def _rank(span: _PiiSpan) -> tuple[int, bool, int]:
    return span[1] - span[0], span[2] != "phone", -KINDS.index(span[2])


def redact_text(text: str, spans: list[_PiiSpan], placeholders: dict[PiiKind, str]) -> str:
    """Return `text` with placeholders in place of the sorted spans."""
    parts: list[str] = []
    done = 0
    for start, end, kind in spans:
        parts += (text[done:start], placeholders[kind])
        done = end
    return "".join([*parts, text[done:]])


def _in_original(
    spans: list[_PiiSpan], replaced: list[_PiiSpan], placeholders: dict[PiiKind, str]
) -> list[_PiiSpan]:
    """Move spans of the redacted text to the original; a placeholder in one is its whole span."""
    marks, shift = [], 0
    for start, end, kind in replaced:
        redacted_start = start + shift
        redacted_end = redacted_start + len(placeholders[kind])
        marks.append((redacted_start, redacted_end, start, end))
        shift = redacted_end - end
    return [(_moved(start, marks, 0), _moved(end, marks, 1), kind) for start, end, kind in spans]


def _moved(place: int, marks: list[tuple[int, int, int, int]], is_end: int) -> int:
    before = bisect_right(marks, place - is_end, key=lambda mark: mark[0]) - 1
    if before < 0:
        return place
    _, redacted_end, start, end = marks[before]
    if place < redacted_end:
        return end if is_end else start
    return place - redacted_end + end


def _report(
    spans: dict[int, list[_PiiSpan]], num_rows: int, kinds: Sequence[PiiKind]
) -> pl.DataFrame:
    import pyarrow as pa

    number = {kind: index for index, kind in enumerate(KINDS)}
    rows = sorted(spans)
    lengths = np.zeros(num_rows, np.int64)
    lengths[rows] = [len(spans[row]) for row in rows]
    ends = np.concatenate([[0], lengths.cumsum()])
    every = ((start, end, number[kind]) for row in rows for start, end, kind in spans[row])
    table = np.fromiter(every, np.dtype((np.int64, 3)), int(ends[-1]))
    columns = {
        "kind": pl.Series(KINDS, dtype=pl.String).gather(table[:, 2]),
        "start": table[:, 0],
        "end": table[:, 1],
    }
    listed = pl.DataFrame(columns, schema=_SPAN.to_schema()).to_struct().to_arrow()
    frame = pl.DataFrame(
        [pl.Series("pii_spans", pa.LargeListArray.from_arrays(ends, listed), pl.List(_SPAN))]
    )
    of_row = np.repeat(np.arange(num_rows), lengths)
    counts = {
        f"pii_{kind}": np.bincount(of_row[table[:, 2] == number[kind]], minlength=num_rows)
        for kind in kinds
    }
    total = sum(counts.values(), np.zeros(num_rows, np.int64))
    return frame.with_columns(
        pl.Series(name, count, dtype=pl.Int64)
        for name, count in (counts | {"pii_total": total}).items()
    )
