"""Asset `held_out`: which documents are held out of training, decided once for each.

A part per signed part has the decisions on its documents. A part whose documents and clusters are
as they were is neither read nor written. Four passes over the others: mark the documents that tell
which clusters are held out; find these clusters, with the marks that the last run left of all other
parts; decide; publish the marks for the next run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import polars as pl

from assets.bucketed.held_out import Shares
from assets.bucketed.held_out_files import (
    CODE_VERSION,
    MARKS,
    DecideInputs,
    Exported,
    HeldOutNumbers,
    MarksInputs,
    PartInputs,
    StayingInputs,
    decide_part,
    join_marks,
    mark_part,
    publish_marks,
)
from assets.deduped.band_index_asset import BAND_INDEX, read_ledger
from assets.deduped.duplicates_asset import DUPLICATES, ClustersManifest, cluster_parts
from assets.deduped.index.ledger import Generations, Order, PartKey
from assets.deduped.signatures_asset import SIGNATURES, Signed, signed_sources
from assets.tokenized.asset import TOKENIZED
from resources.corpus import Corpus
from resources.made_under import check_made_under
from resources.passes import Earlier, Pass, derive_task, file_of, in_passes, list_files
from resources.settings.holdout import MOST_SHARE
from resources.stage import Conclusion, MainTable, Metadata, Stage
from resources.store.published import PublishedFile
from resources.store.records import Manifest, PartRecord, fingerprint_of, required_file
from resources.store.snapshot import Listing
from resources.tasks import GLOBAL, Outcome, Plan, Task, tasks_of

SHOWN = 3  # clusters in a warning
SHOWN_ROWS = 20
DECISION_COLUMNS = {
    "doc_id": "the document",
    "is_held": "whether it is held out of training",
}


class HeldOutProvenance(msgspec.Struct, frozen=True):
    """Fingerprint of the clusters."""

    duplicates: str


HeldOutManifest = Manifest[HeldOutProvenance, HeldOutNumbers]
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
        return corpus.store.file_of(self.manifest, required_file(self.manifest, part, kind))

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


def plan_held_out(corpus: Corpus, partition: str) -> Plan:
    """Plan one task per signed part, which is that of the last run if the part is as it was."""
    clusters, sources = corpus.store.newest(DUPLICATES, GLOBAL), signed_sources(corpus)
    compared = (clusters.provenance.signatures, sources.fingerprints)
    check_made_under(
        clusters,
        inputs={"signatures than the newest ones": compared},
        again=(BAND_INDEX.name, DUPLICATES.name),
    )
    last = read_last_run(corpus, partition)
    order: Order = {} if last else read_ledger(corpus)
    kept = last.manifest.config.get("tokens", {}) if last else kept_in(corpus, order)
    config = shares_of(corpus, kept)
    wanted = wanted_parts(corpus, clusters, sources.manifests, config["shares"])
    stays = staying_parts(corpus, last, wanted)
    changed = {key: part for key, part in wanted.items() if key not in stays}
    maker = tasks_of(corpus, HELD_OUT, partition)
    known = Known(corpus, last, {*stays}, order)
    tasks: dict[PartKey, Task[Any]] = {}
    for key, stay in stays.items():
        again = last.again(corpus, wanted[key], stay) if last and key in wanted else None
        tasks[key] = maker.with_fingerprint(part_name(key), stay.fingerprint, again, work_bytes=0)
    for key, part in changed.items():
        inputs = known.inputs_of(part)
        made_of = part.numbers.made_of, known.fingerprint
        work_bytes = part.signatures.bytes
        tasks[key] = maker.task(part_name(key), made_of, inputs, work_bytes=work_bytes)
    gone = {*last.parts} - {*stays} - {*changed} if last else set()
    in_order = [tasks[key] for key in sorted(tasks)]
    marks = MarksInputs(
        last.whole_file(corpus, last.marks, "marks") if last else None,
        tuple(part_name(key) for key in sorted({*changed, *gone})),
    )
    if last and not changed and not gone:
        state = maker.with_fingerprint(MARKS, last.marks.fingerprint, marks, work_bytes=0)
    else:
        parts = [task.fingerprint for task in in_order]
        state = maker.task(MARKS, (parts, known.fingerprint), marks, work_bytes=0)
    provenance = HeldOutProvenance(clusters.fingerprint)
    return Plan([*in_order, state], config, provenance, sources.left_out)


def part_name(key: PartKey) -> str:
    """Return the name of the decisions on a signed part, which ends with that of the part."""
    return "-".join(key)


def read_last_run(corpus: Corpus, partition: str) -> LastRun | None:
    """Return the last decisions, None if there are none."""
    manifest = corpus.store.newest_or_none(HELD_OUT, partition)
    if manifest is None:
        return None
    listing = Listing(corpus.store.partition(HELD_OUT.name, partition).folder)
    parts = {part.name: part for part in manifest.parts}
    marks = parts.pop(MARKS)
    by_key = {part.stats.numbers.key: part for part in parts.values()}
    return LastRun(manifest, by_key, marks, listing)


def wanted_parts(
    corpus: Corpus, clusters: ClustersManifest, signed: Sequence[Signed], shares: dict[str, float]
) -> dict[PartKey, Wanted]:
    """Return the signed parts to decide on, by source and name."""
    parts = {(m.partition, part.name): (m, part) for m in signed for part in m.parts}
    ledger = {entry.key: entry for entry in clusters.provenance.ledger}
    largest = max(shares.values(), default=0.0)
    wanted = {}
    for of_clusters in cluster_parts(clusters):
        key = of_clusters.stats.numbers.key
        if key[0] not in shares:
            continue
        manifest, part = parts[key]
        file = required_file(clusters, of_clusters, "clusters")
        of_source = Shares(shares[key[0]], largest)
        made_of = fingerprint_of(part.fingerprint, file.sha256, of_source)
        files = sorted({name for name, _ in ledger[key].files})
        wanted[key] = Wanted(
            HeldOutNumbers(*key, made_of, files=files),
            of_source,
            corpus.store.file_of(manifest, required_file(manifest, part, "signatures")),
            corpus.store.file_of(clusters, file) if file.rows else None,
            part.stats.text_bytes,
            ledger[key].generations,
        )
    return wanted


def staying_parts(
    corpus: Corpus, last: LastRun | None, wanted: Mapping[PartKey, Wanted]
) -> dict[PartKey, HeldOutPart]:
    """Return the parts of the last run that stay: those as they were, and of sources left out.

    A source that is left out of this run for a fault must not lose its decisions.
    """
    if last is None:
        return {}
    is_same_code = last.manifest.code_version == CODE_VERSION
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


def kept_in(corpus: Corpus, order: Order) -> dict[str, list[float]]:
    """Return the numbers of tokens that another build's ledger has, as `shares_of` takes them."""
    askers = askers_of(corpus)
    return {
        askers[source]: [*part.holdout_tokens]
        for (source, _), part in order.items()
        if part.holdout_tokens is not None and source in askers
    }


def shares_of(corpus: Corpus, before: Mapping[str, list[float]]) -> dict[str, Any]:
    """Return the config of a manifest: the share of each source, and of `tokens` what is kept.

    A number of tokens becomes a share once: `tokens` has both, by the source that asks for it, as
    `before` has them of the last run. Sources whose share is not known yet, as none of their
    documents has tokens, are missing.
    """
    settings, shares, kept = corpus.settings, dict[str, float](), dict[str, list[float]]()
    askers = askers_of(corpus)
    for name, asker in askers.items():
        config = settings.source(name).holdout or settings.holdout
        if config is None or config.tokens is None:
            shares[name] = 0.0 if config is None else config.share or 0.0
            continue
        found = kept.get(asker) or before.get(asker)
        if found is None or found[0] != config.tokens:
            among = [each for each, other in askers.items() if other == asker]
            if not (tokens := tokens_of(corpus, among)):
                continue
            found = [config.tokens, min(MOST_SHARE, config.tokens / tokens)]
        kept[asker], shares[name] = found, found[1]
    return {"shares": shares, "tokens": kept}


def askers_of(corpus: Corpus) -> dict[str, str]:
    """Return by source the one whose `holdout` it has: itself, or "" for that of all."""
    return {
        source.name: source.name if source.holdout else "" for source in corpus.settings.sources
    }


def tokens_of(corpus: Corpus, sources: Sequence[str]) -> int:
    """Return the tokens that sources have."""
    manifests = (corpus.store.newest_or_none(TOKENIZED, source) for source in sources)
    return sum(manifest.stats.tokens for manifest in manifests if manifest is not None)


def changed_parts(tasks: Sequence[Task[Any]]) -> list[Task[PartInputs]]:
    """Return the tasks of parts that are new or not as they were."""
    return [task for task in tasks if isinstance(task.payload, PartInputs)]


def plan_marks(_: Corpus, tasks: list[Task[Any]], __: Earlier) -> list[Task[PartInputs]]:
    """Plan the first pass: one task per changed part."""
    return [
        derive_task(task, f"marks-of-{task.name}", [MARKS], task.payload)
        for task in changed_parts(tasks)
    ]


def plan_join(_: Corpus, tasks: list[Task[Any]], earlier: Earlier) -> list[Task[MarksInputs]]:
    """Plan the second pass: one task, if any part has changed."""
    [marked] = earlier
    if not marked:
        return []
    inputs = with_marks(tasks, marked)
    return [derive_task(tasks[-1], "held-clusters", ["held"], inputs)]


def with_marks(tasks: Sequence[Task[Any]], outcomes: Sequence[Outcome]) -> MarksInputs:
    """Add the marks of changed parts to those of the last run."""
    inputs: MarksInputs = tasks[-1].payload
    names = tuple(task.name for task in changed_parts(tasks))
    return replace(inputs, names=names, marks=list_files(outcomes, "marks")) if names else inputs


def plan_decide(_: Corpus, tasks: list[Task[Any]], earlier: Earlier) -> list[Task[Any]]:
    """Plan the third pass: one task per part; those that are as they were are published."""
    joined = earlier[1]
    held = file_of(joined[0], "held") if joined else None
    return [
        replace(task, payload=DecideInputs(task.payload, held))
        if held is not None and isinstance(task.payload, PartInputs)
        else task
        for task in tasks[:-1]
    ]


def plan_state(_: Corpus, tasks: list[Task[Any]], earlier: Earlier) -> list[Task[MarksInputs]]:
    """Plan the last pass: the marks of all parts."""
    if tasks[-1].payload.before is None and tasks[-1].published() is None:
        names = tuple(task.name for task in tasks[:-1])
        marks = list_files(earlier[2], "marks") if names else None
        return [replace(tasks[-1], payload=MarksInputs(None, (), names, marks))]
    is_changed = [isinstance(task.payload, PartInputs) for task in tasks[:-1]]
    decided = [outcome for outcome, is_new in zip(earlier[2], is_changed, strict=True) if is_new]
    return [replace(tasks[-1], payload=with_marks(tasks, decided))]


def describe_held_out(corpus: Corpus, manifest: HeldOutManifest) -> Metadata:
    """Report the shares, and clusters with both held-out and trained documents."""
    return {
        "shares": manifest.config["shares"],
        "held_out": manifest.stats.numbers.held,
        "mixed_clusters": {"clusters": read_mixed(corpus, manifest).head(SHOWN_ROWS).to_dicts()},
    }


def warn_of_held_out(corpus: Corpus, manifest: HeldOutManifest) -> Conclusion:
    """Warn of trained documents that are like held-out ones, and if nothing is held out."""
    numbers, warnings = manifest.stats.numbers, []
    if manifest.stats.rows_in and not numbers.held:
        warnings.append(
            f"`holdout` holds out none of {manifest.stats.rows_in:,} documents: its share is small "
            "for them. Later documents may be held out"
        )
    if numbers.mixed:
        shown = read_mixed(corpus, manifest).head(SHOWN)["held_doc_id"].to_list()
        warnings.append(
            "documents that are not held out turned out to be copies of held-out ones: "
            f"{numbers.trained:,}, in clusters: {numbers.mixed:,}, as that of {', '.join(shown)} "
            "(`corpus duplicates show DOC` prints one). None is moved; of each cluster, one "
            "document stays where it is"
        )
    return Conclusion(warnings)


def read_mixed(corpus: Corpus, manifest: HeldOutManifest) -> pl.DataFrame:
    """Read the clusters with both held-out and trained documents."""
    marks = next(part for part in manifest.parts if part.name == MARKS)
    file = corpus.store.file_of(manifest, required_file(manifest, marks, "mixed"))
    return pl.read_parquet(file.checked())


HELD_OUT = Stage(
    name="held_out",
    code_version=CODE_VERSION,
    description="Documents that are held out of training for validation, and their copies.",
    group="train",
    partitions="none",
    after=(SIGNATURES, DUPLICATES, TOKENIZED),
    kinds=frozenset({"parquet"}),
    provenance=HeldOutProvenance,
    numbers=HeldOutNumbers,
    settings=lambda settings: [
        settings.model_dump(mode="json", include={"holdout"}),
        [source.holdout and source.holdout.model_dump(mode="json") for source in settings.sources],
    ],
    plan=plan_held_out,
    work=decide_part,
    is_used=lambda settings: settings.holds_out,
    main_table=MainTable("decisions", DECISION_COLUMNS),
    run=in_passes(
        Pass(mark_part, plan_marks, is_kept=False),
        Pass(join_marks, plan_join, is_kept=False),
        Pass(decide_part, plan_decide),
        Pass(publish_marks, plan_state),
    ),
    describe=describe_held_out,
    conclude=warn_of_held_out,
)
