"""Count the alarms on whole states of small sources: ordinary nights, and nights with a fault.

    .venv/bin/python benchmarks/drift.py sample_data/*/*.jsonl* --nights 100

Each file is a source. A state is 20 to 1,000 of its documents in five files, in the file's order.
On an ordinary night up to a fifth comes in a new file, one in twenty goes, and one in fifty is
corrected. A fault is planted in such a night, in the share of the documents that FAULTS names.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))

import msgspec
import numpy as np
import polars as pl
import xxhash

from assets.raw.state_counts import state_counts
from assets.report.drift import new_drifts, state_drifts

SIZES = (20, 50, 200, 1000)
REMOVED = 0.15  # usual share of documents that filters remove
MENU = "Subscribe to our newsletter and follow us on every platform that there is.\n"
TEMPLATE = "This page lists all offers of the shop in the town of {}. Call us for more today.\n" * 5
Rows = list[dict[str, object]]
Change = Callable[[dict[str, object], int], dict[str, object]]


def text_of(change: Callable[[str], str]) -> Change:
    """Change the text of a document."""
    return lambda row, _: row | {"text": change(str(row["text"]))}


def without(*path: str) -> Change:
    """Take a field, or a key of meta, from a document."""

    def change(row: dict[str, object], _: int) -> dict[str, object]:
        if path[0] != "meta":
            return row | {path[0]: None}
        meta = msgspec.json.decode(str(row["meta"]))
        meta.pop(path[1], None)
        return row | {"meta": msgspec.json.encode(meta).decode()}

    return change


def mojibake(text: str) -> str:
    """Read the UTF-8 of a text, which has an apostrophe of print, as windows-1252."""
    return (text[:300] + " it\u2019s " + text[300:]).encode().decode("cp1252", "replace")


def halved(text: str) -> str:
    """Return the first half of a text."""
    return text[: len(text) // 2]


FAULTS: dict[str, tuple[float, Change]] = {
    "mojibake": (0.4, text_of(mojibake)),
    "U+FFFD": (0.4, text_of(lambda text: text.replace("e", "\ufffd", 3))),
    "url lost": (1, without("url")),
    "meta.date lost": (1, without("meta", "date")),
    "license lost": (1, without("license")),
    "language changed": (1, lambda row, _: row | {"text": row["foreign"]}),
    "lengths halved": (1, text_of(halved)),
    "duplicates inside": (0.4, lambda row, _: row | {"text": "One text that many have. " * 9}),
    "one file tenfold": (0, lambda row, _: row),
    "boilerplate added": (0.4, text_of(lambda text: MENU + text)),
    "encoding wrong": (1, text_of(lambda text: text.encode("utf-16-le").decode("latin-1"))),
    "all upper case": (0.4, text_of(str.upper)),
    "texts cut to 200": (1, text_of(lambda text: text[:200])),
    "template repeated": (0.4, lambda row, n: row | {"text": TEMPLATE.replace("{}", str(n))}),
    "removed doubled": (0, lambda row, _: row),
}


def frame(rows: Rows) -> pl.DataFrame:
    """Return documents with the columns that are counted."""
    keys = ("text", "id", "url", "lang", "license", "meta")
    columns = {key: pl.Series([row.get(key) for row in rows], dtype=pl.String) for key in keys}
    files = pl.Series("file", [row["file"] for row in rows], dtype=pl.String)
    return pl.DataFrame(columns).with_columns(origin=pl.struct(file=files))


def read(path: Path, foreign: list[str]) -> Rows:
    """Read the documents of a file; each gets a date and a text in another language."""
    table = pl.read_ndjson(path, infer_schema_length=None)
    rows = table.select(pl.col("text", "id", "url", "lang", "license")).to_dicts()
    for n, row in enumerate(rows):
        row["meta"] = f'{{"date": "2026-01-{n % 28 + 1:02}"}}'
        row["foreign"] = foreign[n % len(foreign)]
        row["license"] = row["license"] or "unknown"
        row["url"] = row["url"] or f"https://example.org/{n}"
    return [row for row in rows if row["text"]]


def night(rows: Rows, size: int, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Return a state, and the one of an ordinary night after it."""
    start = int(rng.integers(0, max(1, len(rows) - 2 * size)))
    taken = rows[start : start + size]
    before = [row | {"file": f"{n * 5 // len(taken)}"} for n, row in enumerate(taken)]
    now = [row for row in before if rng.random() > 0.05]
    for n in np.flatnonzero(rng.random(len(now)) < 0.02):
        now[n] = now[n] | {"text": f"{now[n]['text']} Corrected."}
    come = rows[start + size : start + size + int(rng.integers(0, size // 5 + 1))]
    return before, now + [row | {"file": "new"} for row in come]


def with_fault(now: Rows, kind: str, rng: np.random.Generator) -> Rows:
    """Plant a fault."""
    share, change = FAULTS[kind]
    if kind == "one file tenfold":
        file = [row for row in now if row["file"] == "2"]
        return now + [row | {"text": f"{row['text']} {n}"} for n in range(9) for row in file]
    return [change(row, n) if rng.random() < share else row for n, row in enumerate(now)]


def removed_counts(rows: Rows, share: float) -> dict[str, int]:
    """Return the counts of a stage that removes a share of the documents, by their texts."""
    hashes = (xxhash.xxh3_64_intdigest(str(row["text"]).encode()) for row in rows)
    return {"documents": len(rows), "removed": sum(each % 1000 < 1000 * share for each in hashes)}


def judged(before: Rows, now: Rows, kind: str | None) -> list[str]:
    """Return the drifts of a night, those of a stage that removes documents included."""
    counts, was = state_counts(frame(now)), state_counts(frame(before))
    share = REMOVED * (2 if kind == "removed doubled" else 1)
    removed, usual = removed_counts(now, share), removed_counts(before, REMOVED)
    old = {str(row["text"]) for row in before}
    new = [row for row in now if row["text"] not in old]
    added = new_drifts(state_counts(frame(new)), was) if new else []
    return [*state_drifts(counts, was), *added, *state_drifts(removed, usual)]


def main() -> None:
    """Judge the nights, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--nights", type=int, default=100)
    parser.add_argument("--faults", nargs="*", choices=FAULTS, default=[*FAULTS])
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    sentence = "Der Fluss und die Br\u00fccke Nummer {} sind nicht weit von der Stadt. "
    foreign = [sentence.replace("{}", str(n)) * (n % 20 + 1) for n in range(500)]
    sources = [rows for path in args.files if len(rows := read(path, foreign)) > 2 * SIZES[0]]
    print(f"{'night':20}" + "".join(f"{size:>8}" for size in SIZES) + "   of so many documents")
    alarms = Counter[str]()
    for kind in (None, *args.faults):
        shares = []
        for size in SIZES:
            fitting = [rows for rows in sources if len(rows) >= 1.5 * size]
            trials = args.nights if kind is None else max(10, args.nights // 10)
            found = 0
            for trial in range(trials if fitting else 0):
                before, now = night(fitting[trial % len(fitting)], size, rng)
                drifts = judged(before, with_fault(now, kind, rng) if kind else now, kind)
                found += bool(drifts)
                if kind is None:
                    alarms.update(drifts)
            shares.append(f"{found}/{trials}" if fitting else "-")
        print(f"{kind or 'ordinary':20}" + "".join(f"{each:>8}" for each in shares), flush=True)
    for line, number in alarms.most_common(20):
        print(number, line)


if __name__ == "__main__":
    main()
