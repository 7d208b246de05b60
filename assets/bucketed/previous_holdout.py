"""Holdout decisions of the last run that still apply."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

import msgspec
import polars as pl

from assets.bucketed.bucketed_records import HELD_OUT, MARKS, HeldOutManifest, HeldOutNumbers
from assets.bucketed.held_out import holdout_owner
from assets.bucketed.held_out_files import Exported, PartInputs, StayingInputs
from assets.deduped.index.ledger import Order, PartKey
from resources.corpus import Corpus
from resources.store.published import PublishedFile
from resources.store.records import PartRecord, fingerprint_of, required_file
from resources.store.snapshot import Listing
from resources.tasks import GLOBAL

HeldOutPart = PartRecord[HeldOutNumbers]


@dataclass(frozen=True)
class LastRun:
    """Decisions of the last run: its parts by source and name of the signed part."""

    manifest: HeldOutManifest
    parts: Mapping[PartKey, HeldOutPart]
    marks: HeldOutPart
    listing: Listing

    def file(self, corpus: Corpus, part: HeldOutPart, kind: str) -> PublishedFile:
        """Return a file of a part."""
        return corpus.store.part_file(self.manifest, part, kind)

    def whole_file(self, corpus: Corpus, part: HeldOutPart, kind: str) -> PublishedFile | None:
        """Return a file of a part, None if it is lost."""
        is_there = self.listing.has_size(required_file(self.manifest, part, kind))
        return self.file(corpus, part, kind) if is_there else None

    def again(self, corpus: Corpus, wanted: PartInputs, part: HeldOutPart) -> StayingInputs:
        """Return the inputs of a part that stays, by which it is made again if it is lost."""
        return StayingInputs(
            wanted,
            self.whole_file(corpus, part, "decisions"),
            self.whole_file(corpus, part, "marks"),
            self.whole_file(corpus, self.marks, "marks"),
        )


def read_last_run(corpus: Corpus) -> LastRun | None:
    """Return the last decisions, None if there are none."""
    manifest = corpus.store.newest_or_none(HELD_OUT, GLOBAL)
    if manifest is None:
        return None
    listing = Listing(corpus.store.partition(HELD_OUT.name, GLOBAL).folder)
    parts = {part.name: part for part in manifest.parts}
    marks = parts.pop(MARKS)
    by_key = {part.stats.numbers.key: part for part in parts.values()}
    return LastRun(manifest, by_key, marks, listing)


def staying_parts(
    corpus: Corpus, last: LastRun | None, wanted: Mapping[PartKey, PartInputs]
) -> dict[PartKey, HeldOutPart]:
    """Return the parts of the last run that stay: those as they were, and of sources left out.

    A source that is left out of this run for a fault must not lose its decisions.
    """
    if last is None:
        return {}
    is_same_code = last.manifest.code_version == HELD_OUT.code_version
    left_out = {*corpus.settings.source_names()} - {source for source, _ in wanted}
    made_of = {key: part.numbers.made_of for key, part in wanted.items()} if is_same_code else {}
    return {
        key: part
        for key, part in last.parts.items()
        if key[0] in left_out or made_of.get(key) == part.stats.numbers.made_of
    }


class EarlierDecisions:
    """Decisions on documents of parts that have changed: of the last run, or of another build.

    A document can have moved to another part of its file, so a part is looked up by its files, too.
    """

    def __init__(
        self, corpus: Corpus, last: LastRun | None, stays: Set[PartKey], order: Order
    ) -> None:
        self.order = order
        held_out = [part.held_out for part in order.values()]
        self.is_exported = any(ids is not None for ids in held_out)
        self.fingerprint = last.manifest.fingerprint if last else fingerprint_of(held_out)
        newest = (number for part in order.values() for _, number in part.generations)
        self.newest = max(newest, default=0)
        self.files: dict[PartKey, PublishedFile] = {}
        self.by_file: dict[tuple[str, str], list[PartKey]] = defaultdict(list)
        for key, part in last.parts.items() if last else ():
            if key not in stays:
                assert last is not None
                self.files[key] = last.file(corpus, part, "decisions")
                for name in part.stats.numbers.files:
                    self.by_file[key[0], name].append(key)

    def add_to(self, part: PartInputs) -> PartInputs:
        """Return the inputs of a part that has changed, or is new, with the decisions on it."""
        key = part.numbers.key
        keys = {other for name in part.numbers.files for other in self.by_file[key[0], name]}
        keys |= {key} & self.files.keys()
        exported = None
        if self.is_exported:
            ingested = self.order.get(key)
            exported = Exported(self.newest, (ingested.held_out if ingested else None) or ())
        before = tuple(self.files[each] for each in sorted(keys))
        return replace(part, before=before, exported=exported)


def count_released(corpus: Corpus, source: str) -> int:
    """Return how many documents were held out of a source before `holdout` was taken away."""
    if corpus.settings.holds_out:
        return 0
    manifest = corpus.store.newest_or_none(HELD_OUT, GLOBAL)
    numbers = [part.stats.numbers for part in manifest.parts] if manifest else []
    return sum(each.held for each in numbers if each.source == source)


class ExportedHoldout(msgspec.Struct, frozen=True, omit_defaults=True):
    """Decisions on a part in an exported ingest order, as `Ingested` has them."""

    held_out: list[str]
    holdout_tokens: tuple[int, float] | None = None


def held_out_documents(corpus: Corpus) -> dict[PartKey, ExportedHoldout]:
    """Return the documents that are held out, sorted, by source and name of the signed part.

    Parts on which nothing is decided are missing.
    """
    manifest, found = (
        corpus.store.newest_or_none(HELD_OUT, GLOBAL),
        dict[PartKey, ExportedHoldout](),
    )
    if manifest is None:
        return found
    owner, kept = holdout_owner(corpus.settings), manifest.config.get("tokens", {})
    for part in manifest.parts:
        if (numbers := part.stats.numbers).source:
            file = corpus.store.part_file(manifest, part, "decisions")
            held = pl.scan_parquet(file.checked()).filter("is_held").select("doc_id").collect()
            tokens = kept.get(owner.get(numbers.source))
            found[numbers.key] = ExportedHoldout(
                sorted(held["doc_id"]), tokens and (tokens[0], tokens[1])
            )
    return found
