"""Documents that one of two states of a source has and the other has not, with the reasons.

Parts that both states name are not read. Of the others the ids, the fates and hashes of the texts
are read, a part at a time; what is the same in both is dropped before the next part is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import polars as pl

from assets.deduped.document_files import kept_documents, read_kept
from pipeline_defs.commands.life.state_chain import SourceState
from resources.store.records import Manifest, PartRecord
from resources.store.store import Store

KEPT = "kept"
ABSENT = "not in the input"
SCHEMA = {"doc_id": pl.String, "fate": pl.String, "text": pl.UInt64, "part": pl.String}
SAMPLE_CHARS = 160


class Sample(msgspec.Struct, frozen=True):
    """A document that changed: its id and the beginning of its text, from the state that has it."""

    doc_id: str
    text: str


class DocumentChange(msgspec.Struct, frozen=True):
    """Documents whose fate changed in the same way, with the first few of them by id."""

    before: str
    after: str
    documents: int
    samples: tuple[Sample, ...]

    @property
    def kind(self) -> str:
        """The change in a word: in, out, or text."""
        if self.before == self.after:
            return "text"
        return "in" if self.after == KEPT else "out"


class DocumentChanges(msgspec.Struct, frozen=True):
    """Changes of documents between two states, the largest first, and the parts that were read."""

    changes: tuple[DocumentChange, ...]
    parts_read: int
    parts_alike: int


def document_changes(
    store: Store, before: SourceState, after: SourceState, num_samples: int
) -> DocumentChanges:
    """Compare the documents of two states of a source."""
    then, now = part_states(before), part_states(after)
    names = sorted(name for name in then.keys() | now.keys() if then.get(name) != now.get(name))
    left = [compared(store, (before, after), name) for name in names]
    rows = rejoined(pl.concat([compared_schema(), *left]))
    changes = [change_of(store, (before, after), *group, num_samples) for group in groups_of(rows)]
    changes.sort(key=lambda each: (-each.documents, each.before, each.after))
    return DocumentChanges(tuple(changes), len(names), len(then.keys() & now.keys() - {*names}))


def part_states(state: SourceState) -> dict[str, tuple[str, str]]:
    """Return the fingerprints of each part of `filtered` and of `deduped`, by its name."""
    found: dict[str, tuple[str, str]] = {}
    filtered, deduped = state.manifest("filtered"), state.manifest("deduped")
    for part in filtered.parts if filtered else ():
        found[part.name] = part.fingerprint, ""
    for part in deduped.parts if deduped else ():
        found[part.name] = found.get(part.name, ("", ""))[0], part.fingerprint
    return found


def compared(store: Store, states: tuple[SourceState, SourceState], name: str) -> pl.DataFrame:
    """Compare the documents of one part with those of the part of that name, where there is one."""
    then, now = (fates_of(store, state, name) for state in states)
    return unlike(then.join(now, on="doc_id", how="full", coalesce=True, suffix="_now"))


def compared_schema() -> pl.DataFrame:
    """Return an empty table of compared documents."""
    frame = pl.DataFrame(schema=SCHEMA)
    return frame.join(frame, on="doc_id", how="full", coalesce=True, suffix="_now")


def unlike(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the documents that are not the same in both states."""
    return rows.filter(
        pl.col("fate").ne_missing(pl.col("fate_now"))
        | pl.col("text").ne_missing(pl.col("text_now"))
    )


def rejoined(rows: pl.DataFrame) -> pl.DataFrame:
    """Join documents that went from one part to another; leave out what is kept in neither."""
    then = rows.filter(pl.col("fate").is_not_null()).select(list(SCHEMA))
    later = [name for name in rows.columns if name.endswith("_now")]
    now = rows.filter(pl.col("fate_now").is_not_null()).select("doc_id", *later)
    joined = unlike(then.join(now, on="doc_id", how="full", coalesce=True))
    return joined.with_columns(
        pl.col("fate").fill_null(ABSENT), pl.col("fate_now").fill_null(ABSENT)
    ).filter((pl.col("fate") == KEPT) | (pl.col("fate_now") == KEPT))


def groups_of(rows: pl.DataFrame) -> Iterator[tuple[str, str, pl.DataFrame]]:
    """Yield the documents by what became of them: (fate before, fate after, documents)."""
    for (then, now), group in rows.group_by("fate", "fate_now"):
        yield str(then), str(now), group


def fates_of(store: Store, state: SourceState, name: str) -> pl.DataFrame:
    """Return what became of every document of a part: a row each, with the columns `SCHEMA`."""
    filtered, deduped = state.manifest("filtered"), state.manifest("deduped")
    of_filter, of_dedup = part_named(filtered, name), part_named(deduped, name)
    if filtered is None or of_filter is None:
        return pl.DataFrame(schema=SCHEMA)
    decisions = read(store, filtered, of_filter, "decisions", ["doc_id", "reasons"])
    last = (filtered, of_filter) if deduped is None or of_dedup is None else (deduped, of_dedup)
    texts = read_kept(kept_documents(store, *last), ["doc_id", "text"])
    kept = texts.select("doc_id", text=pl.col("text").hash(), is_kept=pl.lit(value=True))
    rows = decisions.join(kept, on="doc_id", how="left").join(
        removals_of(store, *last), on="doc_id", how="left"
    )
    rejected = "rejected: " + pl.col("reasons").list.first()
    removed = "removed: " + pl.col("step").fill_null("duplicate")
    fate = pl.when("is_kept").then(pl.lit(KEPT)).otherwise(pl.coalesce(rejected, removed))
    return rows.select("doc_id", fate.alias("fate"), "text", part=pl.lit(name))


def removals_of(store: Store, manifest: Manifest, part: PartRecord) -> pl.DataFrame:
    """Return why `deduped` removed documents that are no duplicates: doc_id, step."""
    found = [pl.DataFrame(schema={"doc_id": pl.String, "step": pl.String})]
    if part.file("contamination") is not None and manifest.stage == "deduped":
        hits = read(store, manifest, part, "contamination", ["doc_id", "is_contaminated"])
        ids = hits.filter("is_contaminated").select("doc_id").unique()
        found.append(ids.with_columns(step=pl.lit("contaminated")))
    if part.file("changes") is not None:
        changes = read(store, manifest, part, "changes", ["doc_id", "step", "is_rejected"])
        found.append(changes.filter("is_rejected").select("doc_id", "step"))
    return pl.concat(found).unique("doc_id", keep="first", maintain_order=True)


def part_named(manifest: Manifest | None, name: str) -> PartRecord | None:
    """Return the part of a manifest with a name, None if it has none."""
    return next((part for part in manifest.parts if part.name == name), None) if manifest else None


def read(
    store: Store, manifest: Manifest, part: PartRecord[Any], kind: str, columns: list[str]
) -> pl.DataFrame:
    """Read columns of a file of a part, which is compared with its hash."""
    file = store.part_file(manifest, part, kind)
    return pl.read_parquet(file.checked(), columns=columns)


def change_of(
    store: Store,
    states: tuple[SourceState, SourceState],
    then: str,
    now: str,
    rows: pl.DataFrame,
    num_samples: int,
) -> DocumentChange:
    """Describe a group of documents, with the texts of the first few by id."""
    state, part = (states[1], "part_now") if now == KEPT else (states[0], "part")
    first = rows.sort("doc_id").head(num_samples)
    manifest = state.manifest("deduped") or state.manifest("filtered")
    assert manifest is not None, "a document of it is kept"
    samples = []
    for doc_id, name in first.select("doc_id", part).iter_rows():
        found = part_named(manifest, name)
        assert found is not None, f"{name} was read"
        texts = read_kept(kept_documents(store, manifest, found), ["doc_id", "text"])
        text = texts.filter(pl.col("doc_id") == doc_id)["text"].str.slice(0, SAMPLE_CHARS)
        samples.append(Sample(doc_id, text[0]))
    return DocumentChange(then, now, len(rows), tuple(samples))
