"""Counts of what a part's documents are like: those of whole states are compared night by night.

They are made of a sample of each part, SAMPLE documents at equal distances, and stand in its
record: about 600 bytes, which add up over the parts of a state. Lines of text are counted by a
hash, so that no text of a document is in them. Price: 60 ms of CPU for the sample of a part.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec
import polars as pl
import xxhash

SAMPLE = 256  # documents of a part
READ_CHARS = 2000  # of a text; its length and last characters count besides
FIELDS = ("id", "url", "lang", "license")
MOST_KEYS, MOST_VALUES, MOST_FILES = 12, 3, 4
LONGEST_VALUE = 40  # characters of a language, licence or file name that is counted
LEAST_LINE = 20  # characters of a line or sentence that counts as repeated
CODE_PAGE = bytes(range(0x80, 0xC0)).decode("cp1252", "ignore") + "\u0080-\u00bf"
MOJIBAKE = re.compile(f"[\u00c2-\u00df][{CODE_PAGE}]|[\u00e0-\u00ef][{CODE_PAGE}]{{2}}")
CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f]")
PARTS = re.compile(r"[\n.!?]+")
LETTERS = re.compile(r"[^\W\d_]+")
ENDS = tuple(".!?\"'\u201d\u2019)]}>;:\u3002\uff01\uff1f\u0964\u2026")
COMMON = {
    "de": "der die und das nicht ist mit den",
    "en": "the and of to that is for with",
    "es": "el los que una por las del con",
    "fr": "les des est que dans une pour du",
    "it": "che di il una per della sono con",
    "nl": "het een van niet dat met zijn voor",
    "pl": "nie się jest na że do to jak",
    "pt": "não uma que os para com do em",
    "ru": "и не что на в он как это",
}
COMMON_WORDS = {language: frozenset(words.split()) for language, words in COMMON.items()}


def state_counts(documents: pl.DataFrame) -> dict[str, int]:
    """Return the counts of a part's documents (DOCUMENT_SCHEMA), by what is counted.

    documents          of the sample; `all` of the part
    has FIELD          documents with a value of a field, or of a key of meta
    FIELD=VALUE        documents with one of the most frequent values
    mojibake, ...      documents with such a text
    octave:N           documents by the logarithm of their length in characters
    line:HASH          documents with a line or sentence that several have
    file:NAME          documents of the largest files, all of them
    """
    if documents.is_empty():
        return {}
    sample = documents.gather_every(max(1, -(-documents.height // SAMPLE)))
    files = Counter[str](dict(documents["origin"].struct.field("file").value_counts().iter_rows()))
    counts = Counter[str](all=documents.height, documents=sample.height)
    counts.update({f"file:{name[-LONGEST_VALUE:]}": n for name, n in largest(files, MOST_FILES)})
    counts.update({f"has {field}": sample[field].count() for field in FIELDS})
    for field in ("lang", "license"):
        counts.update(most_frequent(f"{field}=", sample[field].drop_nulls()))
    counts.update(dict(largest(meta_keys(sample["meta"].drop_nulls()), MOST_KEYS)))
    for text in sample["text"]:
        counts.update(text_marks(text))
    counts["copies"] = sample.height - sample["text"].n_unique()
    counts.update(most_frequent("line:", (h for text in sample["text"] for h in lines_of(text)), 2))
    return {key: counts[key] for key in sorted(counts) if counts[key]}


def most_frequent(prefix: str, values: Iterable[str], least: int = 1) -> dict[str, int]:
    """Return the most frequent values, with a prefix, and how often they are there."""
    found = largest(Counter(values), MOST_VALUES)
    return {f"{prefix}{value[:LONGEST_VALUE]}": n for value, n in found if n >= least}


def largest(counts: Counter[str], number: int) -> list[tuple[str, int]]:
    """Return the largest counts; of equal ones the first by name, in any order of counting."""
    return sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:number]


def meta_keys(values: pl.Series) -> Counter[str]:
    """Count the documents that have a value of each key of meta, and of each key in those."""
    counts = Counter[str]()
    for value in values:
        for key, inner in msgspec.json.decode(value, type=dict[str, object]).items():
            is_column = key in FIELDS  # it is counted there
            counts[f"has meta.{key}"[:LONGEST_VALUE]] += not is_column and inner not in (None, "")
            if isinstance(inner, dict):
                counts.update(f"has meta.{key}.{k}"[:LONGEST_VALUE] for k in inner if inner[k])
    return counts


def text_marks(text: str) -> Iterator[str]:
    """Yield what a text counts for."""
    shown = text[:READ_CHARS]
    yield f"octave:{len(text).bit_length()}"
    marks = {
        "mojibake": MOJIBAKE.search(shown),
        "U+FFFD": "\ufffd" in shown,
        "control characters": CONTROL.search(shown),
        "upper case": shown.isupper(),
        "end in the middle of a sentence": not text.rstrip().endswith(ENDS),
    }
    yield from (mark for mark, is_there in marks.items() if is_there)
    words = {word.lower() for word in LETTERS.findall(shown[:1000])}
    hits = {language: len(words & common) for language, common in COMMON_WORDS.items()}
    best = max(hits, key=lambda language: hits[language])
    yield f"words of {best if hits[best] > 1 else script_of(shown)}"


def script_of(text: str) -> str:
    """Return a name for the first letter's range of Unicode, for texts in no known language."""
    first = next((ord(each) for each in text if each.isalpha()), 0)
    return "Latin script" if first < 0x250 else f"script {first >> 8:02x}"


def lines_of(text: str) -> set[str]:
    """Return hashes of the lines and sentences of a text's beginning and end."""
    half = READ_CHARS // 2
    shown = text if len(text) <= READ_CHARS else f"{text[:half]}\n{text[-half:]}"
    lines = (line.strip().encode() for line in PARTS.split(shown))
    return {xxhash.xxh3_64_hexdigest(line)[:8] for line in lines if len(line) >= LEAST_LINE}
