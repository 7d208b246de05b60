"""Documents that `deduped` keeps: rows of those of `filtered`, whose file has a second name here.

Nothing is written twice. Of 1 GB of text, to write the texts that stay again took 4 of 66 CPU
seconds and 0.4 GB, though nine of ten documents stay as they are. The second name is a hard link
(on an object store a copy): the documents stay readable, whatever becomes of `filtered`.

    deduped/web/9f...-0000-<fp>.filtered.parquet   documents as of `filtered`, removed ones too
    deduped/web/9f...-0000-<fp>.kept.parquet       row of each that stays; its text, if it was cut
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from resources.store.published import PublishedFile
from resources.store.records import Manifest, PartRecord
from resources.store.store import Store

FILTERED_DOCUMENTS = "filtered"  # kind of file
KEPT = "kept"
DOCUMENTS = "documents"  # kind of the one file that code version 2 wrote, and other stages write
KEPT_COLUMNS = {
    "row": "row of the document in the file of filtered documents beside this one",
    "doc_id": "the document",
    "text": "its text, if lines or spans were cut from it; else it is that of the row",
}


@dataclass(frozen=True)
class KeptDocuments:
    """Files of the documents of a part of `deduped`.

    kept    row UInt32 of each document that stays, in order, doc_id String, text String (null if it
            is that of the row); None if all rows stay as they are
    """

    filtered: PublishedFile
    kept: PublishedFile | None

    @property
    def ids(self) -> PublishedFile:
        """The file that has the ids of the documents that stay, and no other."""
        return self.kept or self.filtered

    @property
    def bytes(self) -> int:
        """Bytes of both files."""
        return self.filtered.bytes + (self.kept.bytes if self.kept else 0)


def kept_documents(
    store: Store, manifest: Manifest[Any, Any], part: PartRecord[Any]
) -> KeptDocuments:
    """Return the files of the documents of a part of `deduped`, `filtered` or `raw`."""
    if (file := part.file(DOCUMENTS)) is not None:
        return KeptDocuments(store.file_of(manifest, file), None)
    filtered, kept = (store.part_file(manifest, part, kind) for kind in (FILTERED_DOCUMENTS, KEPT))
    return KeptDocuments(filtered, kept)


def sizes_of(decisions: PublishedFile) -> pl.Series:
    """Return the bytes of text of each filtered document, UInt32, without reading the texts."""
    return pl.read_parquet(decisions.checked(), columns=["kept", "num_bytes"]).filter("kept")[
        "num_bytes"
    ]


def read_kept(documents: KeptDocuments, columns: Sequence[str]) -> pl.DataFrame:
    """Read columns of the documents that stay, in order."""
    frame = pl.read_parquet(documents.filtered.checked(), columns=list(columns))
    if documents.kept is None:
        return frame
    kept = pl.read_parquet(documents.kept.checked(), columns=["row", "text"])
    return with_cut(frame[kept["row"]], kept["text"])


def read_some(documents: KeptDocuments, doc_ids: pl.Series, columns: Sequence[str]) -> pl.DataFrame:
    """Read columns, doc_id among them, of the documents with some ids, all of which stay.

    The texts of others are not decoded.
    """
    is_wanted = pl.col("doc_id").is_in(doc_ids.implode())
    table = pl.scan_parquet(documents.filtered.checked(), parallel="prefiltered")
    frame = table.select(columns).filter(is_wanted).collect()
    if documents.kept is None:
        return frame
    kept = pl.read_parquet(documents.kept.checked(), columns=["doc_id", "text"])
    return with_cut(frame, kept.filter(is_wanted)["text"])


def with_cut(documents: pl.DataFrame, cut: pl.Series) -> pl.DataFrame:
    """Replace the texts of documents, if they have any, where they were cut (String, else null)."""
    if "text" not in documents.columns or cut.null_count() == len(cut):
        return documents
    return documents.with_columns(text=pl.coalesce(cut, documents["text"]))


def read_kept_ids(documents: KeptDocuments) -> pl.Series:
    """Read the ids of the documents that stay, in order, String."""
    return pl.read_parquet(documents.ids.checked(), columns=["doc_id"])["doc_id"]
