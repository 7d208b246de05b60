"""Records of the stage `raw`, for the store, and the columns of its documents."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from corpus_loader.places import stage_names
from resources.store.records import StageRecords

DOCUMENT_COLUMNS = {
    "doc_id": "128-bit hash of source, input file and position; the same in every run",
    "text": "the document",
    "source": "name of the source in pipeline.yaml",
    "origin": "input file, and the record's position in it, from 0",
    "id": "the record's own id, if it has one",
    "url": "address of the page",
    "lang": "language as declared, or else as detected by `filtered`",
    "license": "licence of the record, or of the source",
    "meta": "all other fields of the record, as JSON",
}


class EntryRange(msgspec.Struct, frozen=True, array_like=True):
    """Entries of a stream, from the first to the last: those of one part.

    `bytes` are those of their fields.
    """

    first: str
    last: str
    count: int
    bytes: int


class Gap(msgspec.Struct, frozen=True, array_like=True):
    """Entries that were gone before they were read.

    after   the last entry that is known; "" if none is
    first   the first one there when they were missed; "" if there was none
    count   their number
    """

    after: str
    first: str
    count: int


class StreamState(msgspec.Struct, frozen=True):
    """Entries of a stream that a source has: its offset, which is committed with its documents.

    num_added   entries that the server had been given in all, up to the last one here
    """

    ranges: tuple[EntryRange, ...] = ()
    gaps: tuple[Gap, ...] = ()
    num_added: int = 0

    @property
    def last(self) -> str:
        """The last entry that is known; "" if none is."""
        return self.ranges[-1].last if self.ranges else ""


class RawNumbers(msgspec.Struct, frozen=True):
    """Numbers of a part of raw documents.

    is_last        the last part of its slice; totals have none
    counts         what the documents are like, by what is counted (state_counts.py)
    faulty_files   files whose reading ended in an error, with the rows that are kept as `damaged`,
                   or left out for it
    containers     what has become of the records of each WARC, tar or zip: documents, quarantine,
                   or the reason for which they were left out; totals of many parts have none
    unread_members       why a member of an archive is not read, by name, of the first of them
    num_unread_members   all of these members
    patched        the patches that took the place of a record, by name
    """

    is_last: bool | UnsetType = UNSET
    counts: dict[str, int] | UnsetType = UNSET
    faulty_files: dict[str, int] | UnsetType = UNSET
    containers: dict[str, dict[str, int]] | UnsetType = UNSET
    unread_members: dict[str, str] | UnsetType = UNSET
    num_unread_members: int | UnsetType = UNSET
    patched: dict[str, int] | UnsetType = UNSET


class RawProvenance(msgspec.Struct, frozen=True):
    """Input files of a source.

    num_files      files that are read
    version        their data version: names and digests of all of them
    files          digest by name; of more than 1,000 files, those behind URLs only
    left_out       why a file that `where` matches is not read, by name, of the first of them
    num_left_out   all of these files
    size_cap       fingerprint of the source's size cap, if any
    streams        the entries that the source has, by the identity of a stream; in `files` is the
                   last entry of each
    takedowns      ids of the takedowns that have changed parts of the source
    commits        commit of each repository of the Hugging Face hub, by name
    """

    num_files: int = 0
    version: str = ""
    files: dict[str, str] = {}
    left_out: dict[str, str] | UnsetType = UNSET
    num_left_out: int | UnsetType = UNSET
    size_cap: str | UnsetType = UNSET
    streams: dict[str, StreamState] | UnsetType = UNSET
    takedowns: tuple[str, ...] | UnsetType = UNSET
    commits: dict[str, str] | UnsetType = UNSET


RAW = StageRecords(stage_names.RAW, "9", RawProvenance, RawNumbers)
