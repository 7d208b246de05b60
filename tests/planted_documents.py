"""A corpus with planted documents, each with an exact and a near copy, in all input formats."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from builders import open_corpus, sentence, write_corpus
from input_files import zst

from resources.settings.shards import FORMAT_NAMES

NUM_PLANTED = 100
SYLLABLES = ("ka", "lo", "mi", "nu", "re", "sa", "ti", "vo", "we", "xa")
CONFIG: dict[str, Any] = {
    "sources": [
        {"name": "prose", "where": "input/prose/*"},
        {"name": "notes", "where": "input/notes/*"},
        {"name": "planted", "where": "input/planted/*", "text_documents": "blank_line"},
    ],
    "filters": {},
    "part_bytes": 32768,
    "buckets": {"mode": "pack", "sequence_length": 2048},
    "shards": {"target_bytes": 65536, "rewrite_share": 0.5, "formats": list(FORMAT_NAMES)},
    "phases": [
        {"name": "main", "weighting": "natural", "formats": ["parquet"]},
        {"name": "late", "budgets": {"prose": 5000}, "seed": 7},
    ],
}


class Planted(NamedTuple):
    """A document as it is written to a file."""

    url: str
    text: str


def word(number: int) -> str:
    """Return a word that no other number gives, and no other document has."""
    return "qu" + "".join(SYLLABLES[int(digit)] for digit in f"{number:05d}")


def planted_text(number: int, words: int = 90) -> str:
    """Return the text of a planted document: nearly all of its words are its own."""
    own = [f"{word(100 * number + i)} and the" for i in range(words)]
    return " ".join(own).capitalize() + "."


def near_copy(text: str) -> str:
    """Change a word in three of the eight passages of a text: a copy has six of them."""
    words = text.split(" ")
    for place in (77, 150, 223):
        words[place] = "instead"
    return " ".join(words)


def url_of(number: int) -> str:
    """Return the URL of a planted document: all but the first five are of one domain."""
    host = "www.planted.example.org" if number >= 5 else f"site{number}.example.com"
    return f"https://{host}/page/{number}"


def write_planted(folder: Path, **changes: Any) -> Any:
    """Write the corpus: originals with URLs, copies of both kinds elsewhere in other formats."""
    path = write_corpus(folder, **CONFIG | changes)
    groups: list[list[Planted]] = [[] for _ in WRITERS]
    for number in range(NUM_PLANTED):
        text = planted_text(number)
        other = f"https://copies.example.net/{number}"
        copies = [Planted(url_of(number), text), Planted(other, text)]
        copies.append(Planted(f"{other}/near", near_copy(text)))
        groups[number % (len(WRITERS) - 1)].append(copies[0])  # not the text file: it has no URLs
        for place, copy in enumerate(copies[1:], 1):
            groups[(number + place) % len(WRITERS)].append(copy)
    for number, group in enumerate(groups):
        own = Planted(f"https://own.example.edu/{number}", sentence(500 + number, 60))
        WRITERS[number](folder / "input/planted", [own, *group])
    return open_corpus(path)


def records(documents: Sequence[Planted]) -> list[dict[str, str]]:
    """Return documents as records."""
    return [each._asdict() for each in documents]


def as_jsonl(documents: Sequence[Planted]) -> bytes:
    """Return documents as JSON lines."""
    return b"".join(json.dumps(each).encode() + b"\n" for each in records(documents))


def write(folder: Path, name: str, content: bytes) -> None:
    """Write a file of the planted source."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def write_table(folder: Path, name: str, documents: Sequence[Planted], delimiter: str) -> None:
    """Write CSV or TSV."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / name, "w", newline="") as file:
        rows = csv.DictWriter(file, ["url", "text"], delimiter=delimiter)
        rows.writeheader()
        rows.writerows(records(documents))


def warc_record(document: Planted) -> bytes:
    """Return a page of a WARC file."""
    body = f"<html><body><main><p>{document.text}</p></main></body></html>"
    http = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}"
    head = f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {document.url}\r\n"
    head += "Content-Type: application/http; msgtype=response\r\n"
    return f"{head}Content-Length: {len(http)}\r\n\r\n{http}\r\n\r\n".encode()


WRITERS = (
    lambda to, docs: write(to, "a.jsonl", as_jsonl(docs)),
    lambda to, docs: write(to, "b.jsonl.gz", gzip.compress(as_jsonl(docs))),
    lambda to, docs: write(to, "c.jsonl.zst", zst(as_jsonl(docs))),
    lambda to, docs: write(to, "d.json", json.dumps(records(docs)).encode()),
    lambda to, docs: write_table(to, "e.csv", docs, ","),
    lambda to, docs: write_table(to, "f.tsv", docs, "\t"),
    lambda to, docs: pl.DataFrame(records(docs)).write_parquet(to / "g.parquet"),
    lambda to, docs: write(to, "h.warc", b"".join(map(warc_record, docs))),
    lambda to, docs: write(to, "i.txt", "\n\n".join(doc.text for doc in docs).encode()),
)
