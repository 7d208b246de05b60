"""Documents of an earlier state of a source that today's input no longer yields.

A document is still there if its text is, wherever it stands: files may be renamed, cut and joined.
It is there, too, if it was corrected: a document of the same place, id or URL has a new text. A new
text stands for one document only: pages that were all replaced by one login page are lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import polars as pl
import xxhash

KEYS = ("doc_id", "id", "url")  # by which a corrected document is known
GONE, QUARANTINED, EMPTIED, FEWER = "gone", "in quarantine", "emptied", "fewer"
MEANING: Mapping[str, tuple[str, str]] = {
    GONE: ("file is gone", "files are gone"),
    QUARANTINED: ("file has records in quarantine", "files have records in quarantine"),
    EMPTIED: ("file is without any record", "files are without any record"),
    FEWER: ("file has other or fewer records", "files have other or fewer records"),
}


@dataclass(frozen=True)
class LostFrom:
    """Documents lost for one cause: their number, the files that they are from, one by name."""

    documents: int
    files: int
    example: str


def hash_texts(documents: pl.DataFrame) -> pl.DataFrame:
    """Replace each text by its xxh3_64, UInt64."""
    digests = [xxhash.xxh3_64_intdigest(text.encode()) for text in documents["text"]]
    return documents.with_columns(text=pl.Series(digests, dtype=pl.UInt64))


def without_texts(documents: pl.DataFrame, texts: pl.Series) -> pl.DataFrame:
    """Return the documents whose (hashed) text is not among some."""
    return documents.filter(~pl.col("text").is_in(texts.implode()))


def without_corrected(lost: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """Return the lost documents (doc_id, id, url) for which no new one stands.

    `new` are documents whose text the earlier state had not. A key of several lost documents, such
    as the URL of a whole dump, says nothing of any of them.
    """
    new = new.unique("text", keep="first", maintain_order=True)
    for key in KEYS:
        there = new[key].drop_nulls().implode()
        is_corrected = pl.col(key).is_in(there) & pl.col(key).is_unique()
        lost = lost.filter(~is_corrected.fill_null(value=False))
    return lost


def lost_by_cause(
    lost: pl.DataFrame, files: Collection[str], yielding: Collection[str], faults: Mapping[str, str]
) -> dict[str, LostFrom]:
    """Count lost documents (file) by cause, the largest first.

    `files` are today's, `yielding` those that give a document, and `faults` has the first record in
    quarantine by file.
    """

    def cause_of(file: str) -> str:
        if file not in files:
            return GONE
        if file in faults:
            return QUARANTINED
        return FEWER if file in yielding else EMPTIED

    counts = lost["file"].value_counts().sort("count", "file", descending=[True, False])
    causes: dict[str, LostFrom] = {}
    for file, number in counts.iter_rows():
        before = causes.get(cause := cause_of(file), LostFrom(0, 0, faults.get(file, file)))
        causes[cause] = LostFrom(before.documents + number, before.files + 1, before.example)
    by_number: Callable[[str], int] = lambda cause: -causes[cause].documents  # noqa: E731
    return {cause: causes[cause] for cause in sorted(causes, key=by_number)}


def describe_causes(causes: Mapping[str, LostFrom]) -> str:
    """Return a clause per cause, with its numbers and an example."""
    return "; ".join(
        f"{found.files:,} {MEANING[cause][found.files > 1]} ({found.documents:,} documents), "
        f"such as {found.example}"
        for cause, found in causes.items()
    )
