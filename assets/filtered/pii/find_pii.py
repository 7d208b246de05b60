"""Find personal data and secrets in texts, and put typed placeholders in their place.

Eight kinds: e-mail, public IP addresses, phone numbers, US social security numbers, payment cards,
IBANs, API keys and private keys. Patterns and validators are in `pii_patterns`.
Trade-off: Rust patterns search every text, Python checks only what they find; a candidate counts by
its check digits, its ranges and the few characters around it, never by a model of the language.
Names and street addresses stay. Placeholders are words in brackets, which no pattern takes; rows
where a span may have hidden another are searched again, so redacting twice is redacting once.
Price: 180 (reference, multilingual) to 450 (books) MB a CPU second, 230 over all.
"""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
import polars as pl

from assets.filtered.pii.patterns import SCANS
from assets.filtered.pii.scan import Scan, Span
from resources.settings.filter_steps import KINDS, PiiConfig, PiiKind

# What stands beside a span can turn out to be one once the span is gone.
_MAX_ROUNDS = 4
_REACH = 120  # characters; the farthest that a check reads before a candidate is 100

_Found = tuple[int, int, PiiKind]
_SPAN = pl.Struct({"kind": pl.String, "start": pl.Int64, "end": pl.Int64})


def find_pii(texts: pl.Series, config: PiiConfig) -> tuple[pl.Series, pl.DataFrame]:
    """Return `texts` (String, no nulls), redacted or as they were, and what was found per text.

    The frame has `pii_spans`, List(Struct{kind: String, start, end: Int64}), in characters (Unicode
    code points) of the texts given, sorted, without overlap; then one Int64 count `pii_<kind>` per
    kind in the order of the config, and `pii_total`. Of two spans that overlap the longer counts,
    of equal ones the kind named first in `PiiKind`.
    """
    scans = [scan for scan in SCANS if scan.kind in config.kinds]
    found = _find_all(texts, scans, config.placeholders)
    if config.action == "redact" and found:
        places = pl.Series(sorted(found), dtype=pl.get_index_type())
        redacted = [
            redact_text(text, found[row], config.placeholders)
            for row, text in zip(places.to_list(), texts.gather(places).to_list(), strict=True)
        ]
        # `scatter` writes into the series it is called on.
        texts = texts.clone().scatter(places, pl.Series(redacted, dtype=pl.String))
    return texts, _report(found, len(texts), config.kinds)


def _find_all(
    texts: pl.Series, scans: Sequence[Scan], placeholders: dict[PiiKind, str]
) -> dict[int, list[_Found]]:
    """Return the spans of each row with any, looking again at what redaction would leave."""
    found, unsure = find_once(texts, scans)
    for _ in range(_MAX_ROUNDS - 1):
        # A candidate that was turned down can only be taken later if its neighbour was replaced.
        rows = sorted(unsure & found.keys())
        originals = texts.gather(pl.Series(rows, dtype=pl.get_index_type())).to_list()
        left = [
            redact_text(text, found[row], placeholders)
            for row, text in zip(rows, originals, strict=True)
        ]
        more, unsure_places = find_once(pl.Series(left, dtype=pl.String), scans)
        for place, spans in more.items():
            row = rows[place]
            found[row] = sorted(found[row] + _in_original(spans, found[row], placeholders))
        unsure = {rows[place] for place in unsure_places & more.keys()}
        if not unsure:
            break
    return found


def find_once(texts: pl.Series, scans: Sequence[Scan]) -> tuple[dict[int, list[_Found]], set[int]]:
    """Return the sorted spans of each row with any, and the rows to look at again once redacted.

    Those are rows with a candidate turned down so near to a span that it may have read it.
    """
    spans: dict[int, list[_Found]] = {}
    refused: dict[int, list[Span]] = {}
    for scan in scans:
        for row, text, places in candidates(texts, scan):
            for place in places:
                checked = list(scan.check(text, *place))
                if checked:
                    spans.setdefault(row, []).extend((*span, scan.kind) for span in checked)
                else:
                    refused.setdefault(row, []).append(place)
    kept = {}
    for row, found in spans.items():
        kept[row], dropped = _without_overlap(found)
        refused.setdefault(row, []).extend(dropped)
    return kept, {row for row, found in kept.items() if _any_near(refused[row], found)}


def _any_near(places: list[Span], found: list[_Found]) -> bool:
    starts = [start for start, _, _ in found]
    for start, end in places:
        after = bisect_right(starts, start)
        if after and found[after - 1][1] + _REACH >= start:
            return True
        if after < len(found) and starts[after] <= end + _REACH:
            return True
    return False


def candidates(texts: pl.Series, scan: Scan) -> list[tuple[int, str, list[Span]]]:
    """Return row, text and the places of the candidates, for the rows that have any."""
    rows = texts.str.contains(scan.core).arg_true()
    hits = texts.gather(rows)
    matches = hits.str.extract_all(scan.candidate)
    has_any = matches.list.len() > 0
    triples = zip(
        rows.filter(has_any), hits.filter(has_any), matches.filter(has_any).to_list(), strict=True
    )
    return [(row, text, _places(text, words)) for row, text, words in triples]


def _places(text: str, words: list[str]) -> list[Span]:
    """Return where the matches of a pattern without look-around are, given in their order.

    A match can be nowhere before: there the pattern would have matched already.
    """
    places, end = [], 0
    for word in words:
        start = text.index(word, end)
        end = start + len(word)
        places.append((start, end))
    return places


def _without_overlap(found: list[_Found]) -> tuple[list[_Found], list[Span]]:
    """Return the spans that stay, sorted, and the places of those that give way."""
    kept: list[_Found] = []
    dropped: list[Span] = []
    for span in sorted(set(found), key=lambda span: (span[0], -span[1], KINDS.index(span[2]))):
        if not kept or span[0] >= kept[-1][1]:
            kept.append(span)
        else:
            better, worse = sorted((span, kept[-1]), key=_rank, reverse=True)
            kept[-1] = better
            if not better[0] <= worse[0] <= worse[1] <= better[1]:
                dropped.append(worse[:2])
    return kept, dropped


def _rank(span: _Found) -> tuple[int, int]:
    return span[1] - span[0], -KINDS.index(span[2])


def redact_text(text: str, found: list[_Found], placeholders: dict[PiiKind, str]) -> str:
    """Return `text` with the placeholders in place of the sorted spans."""
    parts: list[str] = []
    done = 0
    for start, end, kind in found:
        parts += (text[done:start], placeholders[kind])
        done = end
    return "".join([*parts, text[done:]])


def _in_original(
    spans: list[_Found], found: list[_Found], placeholders: dict[PiiKind, str]
) -> list[_Found]:
    """Return spans of the redacted text in places of the original; no span meets a placeholder."""
    ends, done, length = [(0, 0)], 0, 0
    for start, end, kind in found:
        length += start - done + len(placeholders[kind])
        ends.append((length, end))
        done = end
    moved = []
    for start, end, kind in spans:
        redacted_end, original_end = ends[bisect_right(ends, start, key=lambda pair: pair[0]) - 1]
        shift = original_end - redacted_end
        moved.append((start + shift, end + shift, kind))
    return moved


def _report(
    found: dict[int, list[_Found]], num_rows: int, kinds: Sequence[PiiKind]
) -> pl.DataFrame:
    spans = [
        [{"kind": kind, "start": start, "end": end} for start, end, kind in row]
        for row in (*found.values(), [])
    ]
    places = np.full(num_rows, len(found), np.int64)
    counts = {kind: np.zeros(num_rows, np.int64) for kind in kinds}
    for place, (row, row_spans) in enumerate(found.items()):
        places[row] = place
        for _, _, kind in row_spans:
            counts[kind][row] += 1
    listed = pl.Series("pii_spans", spans, dtype=pl.List(_SPAN)).gather(places)
    columns = [pl.Series(f"pii_{kind}", counts[kind], dtype=pl.Int64) for kind in kinds]
    total = sum(counts.values(), np.zeros(num_rows, np.int64))
    return pl.DataFrame([listed, *columns, pl.Series("pii_total", total, dtype=pl.Int64)])
