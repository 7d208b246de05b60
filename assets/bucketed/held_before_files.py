"""What the last run held out, and which of its parts stay."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass

from assets.bucketed.bucketed_records import HELD_OUT, HeldOutManifest, HeldOutNumbers
from assets.bucketed.held_out import Shares
from assets.bucketed.held_out_files import Exported, PartInputs, StayingInputs
from assets.deduped.index.ledger import Generations, Order, PartKey
from resources.corpus import Corpus
from resources.store.published import PublishedFile
from resources.store.records import PartRecord, fingerprint_of, required_file
from resources.store.snapshot import Listing

HeldOutPart = PartRecord[HeldOutNumbers]


@dataclass(frozen=True)
class Wanted:
    """A signed part to decide on, and the files that it is decided by."""

    numbers: HeldOutNumbers
    shares: Shares
    signatures: PublishedFile
    clusters: PublishedFile | None
    text_bytes: int
    generations: Generations

    def inputs(
        self, before: tuple[PublishedFile, ...] = (), exported: Exported | None = None
    ) -> PartInputs:
        """Return the inputs of its task."""
        return PartInputs(
            self.numbers,
            self.shares,
            self.signatures,
            self.clusters,
            self.text_bytes,
            before,
            exported,
        )


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

    def again(self, corpus: Corpus, wanted: Wanted, part: HeldOutPart) -> StayingInputs:
        """Return what a part that stays is made of again if it is lost."""
        return StayingInputs(
            wanted.inputs(),
            self.whole_file(corpus, part, "decisions"),
            self.whole_file(corpus, part, "marks"),
            self.whole_file(corpus, self.marks, "marks"),
        )


def staying_parts(
    corpus: Corpus, last: LastRun | None, wanted: Mapping[PartKey, Wanted]
) -> dict[PartKey, HeldOutPart]:
    """Return the parts of the last run that stay: those as they were, and of sources left out.

    A source that is left out of this run for a fault must not lose its decisions.
    """
    if last is None:
        return {}
    is_same_code = last.manifest.code_version == HELD_OUT.code_version
    left_out = {*corpus.settings.source_names()} - {source for source, _ in wanted}
    return {
        key: part
        for key, part in last.parts.items()
        if key[0] in left_out
        or (
            is_same_code
            and key in wanted
            and wanted[key].numbers.made_of == part.stats.numbers.made_of
        )
    }


class Known:
    """What was decided before on documents of parts that have changed.

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

    def inputs_of(self, part: Wanted) -> PartInputs:
        """Return the inputs of a part that has changed, or is new."""
        key = part.numbers.key
        keys = {other for name in part.numbers.files for other in self.by_file[key[0], name]}
        keys |= {key} & self.files.keys()
        exported = None
        if self.is_exported:
            ingested = self.order.get(key)
            held_out = (ingested.held_out if ingested else None) or ()
            exported = Exported(part.generations, self.newest, held_out)
        return part.inputs(tuple(self.files[each] for each in sorted(keys)), exported)
