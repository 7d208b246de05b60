"""Asset `held_out`: the documents that are held out of training, decided once for each.

A part per signed part has the decisions on its documents. A part whose documents and clusters are
as they were is neither read nor written. Four passes over the others: mark the documents that tell
which clusters are held out; find these clusters, with the marks that the last run left of all other
parts; decide; publish the marks for the next run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl

from assets.bucketed.bucketed_records import (
    HELD_OUT,
    MARKS,
    HeldOutManifest,
    HeldOutNumbers,
    HeldOutProvenance,
)
from assets.bucketed.held_out import Shares, kept_in, shares_of
from assets.bucketed.held_out_files import (
    DecideInputs,
    MarksInputs,
    PartInputs,
    decide_part,
    join_marks,
    mark_part,
    publish_marks,
)
from assets.bucketed.previous_holdout import EarlierDecisions, read_last_run, staying_parts
from assets.deduped.deduped_records import DUPLICATES, ClustersManifest, Signed, cluster_parts
from assets.deduped.index.index_files import read_ledger
from assets.deduped.index.ledger import Order, PartKey
from assets.deduped.signed_files import signed_sources
from assets.tokenized.tokenized_records import TOKENIZED
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.made_under import check_made_under
from resources.passes import Earlier, Pass, derive_task, file_of, in_passes, list_files
from resources.stage import Conclusion, MainTable, Metadata, Outlook, Stage
from resources.store.records import fingerprint_of, required_file
from resources.tasks import GLOBAL, Outcome, Plan, Task, tasks_of

SHOWN = 3  # clusters in a warning
SHOWN_ROWS = 20
DECISION_COLUMNS = {
    "doc_id": "the document",
    "is_held": "whether it is held out of training",
}


def plan_held_out(corpus: Corpus, partition: str) -> Plan:
    """Plan one task per signed part, which is that of the last run if the part is as it was."""
    clusters, sources = corpus.store.newest(DUPLICATES, GLOBAL), signed_sources(corpus)
    compared = (clusters.provenance.signatures, sources.fingerprints)
    check_made_under(
        clusters,
        inputs={"signatures than the newest ones": compared},
        again=(stage_names.BAND_INDEX, stage_names.DUPLICATES),
    )
    last = read_last_run(corpus)
    order: Order = {} if last else read_ledger(corpus)
    kept = last.manifest.config.get("tokens", {}) if last else kept_in(corpus.settings, order)
    config = shares_of(corpus.settings, kept, partial(tokens_of, corpus))
    wanted = wanted_parts(corpus, clusters, sources.manifests, config["shares"])
    stays = staying_parts(corpus, last, wanted)
    changed = {key: part for key, part in wanted.items() if key not in stays}
    maker = tasks_of(corpus, HELD_OUT, partition)
    known = EarlierDecisions(corpus, last, {*stays}, order)
    tasks: dict[PartKey, Task[Any]] = {}
    for key, stay in stays.items():
        again = last.again(corpus, wanted[key], stay) if last and key in wanted else None
        tasks[key] = maker.with_fingerprint(part_name(key), stay.fingerprint, again, work_bytes=0)
    for key, part in changed.items():
        made_of, work_bytes = (part.numbers.made_of, known.fingerprint), part.signatures.bytes
        tasks[key] = maker.task(part_name(key), made_of, known.add_to(part), work_bytes=work_bytes)
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


def wanted_parts(
    corpus: Corpus, clusters: ClustersManifest, signed: Sequence[Signed], shares: dict[str, float]
) -> dict[PartKey, PartInputs]:
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
        wanted[key] = PartInputs(
            HeldOutNumbers(*key, made_of, files=files),
            of_source,
            corpus.store.part_file(manifest, part, stage_names.SIGNATURES),
            corpus.store.file_of(clusters, file) if file.rows else None,
            part.stats.text_bytes,
            ledger[key].generations,
        )
    return wanted


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
    file = corpus.store.part_file(manifest, marks, "mixed")
    return pl.read_parquet(file.checked())


STAGE = Stage(
    *HELD_OUT.fields(),
    description="Documents that are held out of training for validation, and their copies.",
    group="train",
    partitions="none",
    after=(stage_names.SIGNATURES, stage_names.DUPLICATES, stage_names.TOKENIZED),
    outlook=Outlook("new", cpu_per_mb=0.0005),
    kinds=frozenset({"parquet"}),
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
