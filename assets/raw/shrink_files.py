"""Refuse a state of a source that lacks many documents of its last good state.

It is not committed: the last good state stays the newest, and so the one that the next night is
compared with. What was read is kept for the next attempt. A night with nothing new reads one
manifest; texts are read only of parts that changed, and only if they hold more documents than may
be lost.

A document is still there if its text is, in whatever file: files may be renamed, cut and joined. It
is there, too, if it was corrected: a document of the same place, id or URL has a new text. A new
text stands for one document only: pages that were all replaced by one login page are lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import polars as pl
import xxhash

from assets.raw.raw_inputs import NO_CAP
from assets.raw.raw_records import RAW, RawNumbers, RawProvenance
from assets.raw.size_cap_files import OVER_SIZE_CAP, cap_of
from assets.raw.usable_raw_files import too_many_bad
from assets.text.takedown_files import is_wanted, wanted_at
from resources.accepted_shrinks import AcceptedShrink, end_release, has_consent, record_consent
from resources.corpus import Corpus
from resources.settings.full_source import Source
from resources.store.records import Manifest, PartRecord
from resources.store.store import StoreError
from resources.takedowns import count_takedowns
from resources.tasks import Plan

KEYS = ("doc_id", "id", "url")  # by which a corrected document is known
GONE, QUARANTINED, EMPTIED, FEWER = "gone", "in quarantine", "emptied", "fewer"
MEANING: Mapping[str, tuple[str, str]] = {
    GONE: ("file is gone", "files are gone"),
    QUARANTINED: ("file has records in quarantine", "files have records in quarantine"),
    EMPTIED: ("file is without any record", "files are without any record"),
    FEWER: ("file has other or fewer records", "files have other or fewer records"),
}
ACCEPT_SHRINK = "accept_shrink"  # flag of `raw`
LEAST_LOST = 20  # documents: fewer are an ordinary night, whatever their share
LIMITS = (
    "field_filter",
    "max_record_bytes",
    "on_damage",
)  # with the caps: they leave out on purpose
COLUMNS = ("doc_id", "id", "url", "text")
FILE = pl.col("origin").struct.field("file")

RawManifest = Manifest[RawProvenance, RawNumbers]


def refuse_shrink(corpus: Corpus, manifest: RawManifest, plan: Plan) -> None:
    """Raise StoreError if a state lacks too many documents, unless that was accepted."""
    root, name = corpus.store.root, manifest.partition
    source = corpus.settings.source(name)
    newest = max(corpus.store.partition(RAW.name, name).manifest_numbers(), default=0)
    good = None if source.is_stream else last_good(corpus, name)
    if good is None or good.fingerprint == manifest.fingerprint:
        end_release(root, name, newest)
        return
    if has_consent(root, name, newest, manifest.fingerprint):
        return
    is_accepted = ACCEPT_SHRINK in corpus.flags
    try:
        lost = lost_documents(corpus, good, manifest, most_lost(source, good, manifest))
    except StoreError as error:  # of a damaged file of the last good state
        if not is_accepted:
            step = f"If its input is no longer there, accept today's: {accept_command(source)}"
            raise StoreError(f"{error} {step}") from error
        lost = pl.DataFrame({"file": pl.repeat("", good.stats.rows_kept, eager=True)})
    if not lost.height:
        return
    if is_accepted:
        counts = lost.height, good.stats.rows_kept
        record_consent(root, AcceptedShrink(name, newest, manifest.fingerprint, *counts))
        return
    files = {file.name for task in plan.tasks for file in task.payload.files}
    cause = cause_of(corpus, manifest, lost, files)
    raise StoreError(
        refusal(source, good, lost.height, cause, is_empty=not manifest.stats.rows_kept)
    )


def last_good(corpus: Corpus, name: str) -> Manifest | None:
    """Return the newest manifest of a source that later stages may use; None if there is none."""
    folder = corpus.store.partition(RAW.name, name)
    for number in reversed(folder.manifest_numbers()):
        with suppress(StoreError):  # a damaged one is no state to compare with
            manifest = folder.read_manifest(number)
            if too_many_bad(corpus, manifest) is None:
                return manifest
    return None


def most_lost(source: Source, good: Manifest, manifest: RawManifest) -> int | None:
    """Return how many documents a state may lack; None: any number.

    A source that reaches its cap was not read to its end, and says nothing of what is behind it.
    """
    if not manifest.stats.rows_kept:
        return 0
    stats, cap = manifest.stats, cap_of(source)
    is_capped = cap != NO_CAP and (
        OVER_SIZE_CAP in stats.rejected or cap.after(stats.bytes, stats.rows_kept).is_spent()
    )
    has_new_limits = any(good.config.get(key) != manifest.config.get(key) for key in LIMITS)
    if source.max_shrink is None or is_capped or has_new_limits:
        return None
    return max(LEAST_LOST, int(source.max_shrink * good.stats.rows_kept))


def lost_documents(
    corpus: Corpus, good: Manifest, manifest: RawManifest, most: int | None
) -> pl.DataFrame:
    """Return the documents (file) that a state lacks if there are more than `most`, else none."""
    none = pl.DataFrame(schema={"file": pl.String})
    kept = {part.fingerprint for part in manifest.parts}
    had = {part.fingerprint for part in good.parts}
    gone = [part for part in good.parts if part.fingerprint not in kept]
    if most is None or sum(part.stats.rows_kept for part in gone) <= most:
        return none
    added = [part for part in manifest.parts if part.fingerprint not in had]
    there = texts_of(corpus, manifest, added)
    old = texts_of(corpus, good, gone)
    if old.is_in(there.implode()).not_().sum() <= most:
        return none
    lost = pl.concat([without_texts(each, there) for each in tables(corpus, good, gone)])
    for table in tables(corpus, manifest, added):
        lost = without_corrected(lost, without_texts(table, old))
    for part in manifest.parts:  # what is lost may have a copy in a part that has not changed
        if part.fingerprint in had:
            lost = without_texts(lost, texts_of(corpus, manifest, [part]))
    return lost.select("file") if lost.height > most else none


def texts_of(corpus: Corpus, manifest: Manifest, parts: Sequence[PartRecord]) -> pl.Series:
    """Return the hashed texts of some parts: 8 bytes a document."""
    none = pl.Series("text", dtype=pl.UInt64)
    found = [hash_texts(each)["text"] for each in read(corpus, manifest, parts, ["text"])]
    return pl.concat([none, *found])


def tables(
    corpus: Corpus, manifest: Manifest, parts: Sequence[PartRecord]
) -> Iterator[pl.DataFrame]:
    """Yield the documents of parts, without those that a takedown means, their texts hashed."""
    count = count_takedowns(corpus.store.root)
    for table in read(corpus, manifest, parts, [*COLUMNS, "origin"]):
        meant = is_wanted(table, wanted_at(corpus.store.root, count)) if count else None
        kept = table if meant is None else table.filter(~meant)
        yield hash_texts(kept.select(*COLUMNS, file=FILE))


def read(
    corpus: Corpus, manifest: Manifest, parts: Sequence[PartRecord], columns: Sequence[str]
) -> Iterator[pl.DataFrame]:
    """Yield columns of the documents of parts."""
    for part in parts:
        if file := part.file("documents"):
            path = corpus.store.file_of(manifest, file).checked()
            yield pl.read_parquet(path, columns=[*columns])


def cause_of(corpus: Corpus, manifest: RawManifest, lost: pl.DataFrame, files: set[str]) -> str:
    """Say why documents are lost, by what their files give today."""
    yielding: set[str] = set()
    faults: dict[str, str] = {}
    for part in manifest.parts:
        for table in read(corpus, manifest, [part], ["origin"]):
            yielding |= {*table.select(FILE).to_series()}
        if file := part.file("quarantine"):
            columns = ["file", "position", "error"]
            path = corpus.store.file_of(manifest, file).checked()
            for name, position, error in pl.read_parquet(path, columns=columns).iter_rows():
                faults.setdefault(name, f"{name}, {position}: {error}")
    return describe_causes(lost_by_cause(lost, files, yielding, faults))


def refusal(source: Source, good: Manifest, lost: int, cause: str, *, is_empty: bool) -> str:
    """Return the line of a source that fails since it has shrunk."""
    documents = good.stats.rows_kept
    most = "" if source.max_shrink is None else f", above max_shrink {source.max_shrink:.1%}"
    limit = ", and none is left" if is_empty else most
    return (
        f"raw[{source.name}]: {lost:,} of the {documents:,} documents of the last good state are "
        f"missing from today's input ({lost / documents:.1%}{limit}): {cause}. Correct the input "
        "or the options of the source and build again; or, if this is meant, accept it: "
        f"{accept_command(source)}"
    )


def accept_command(source: Source) -> str:
    """Return the command that takes today's state of a source."""
    return f"corpus build --accept-shrink {source.name}"


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
