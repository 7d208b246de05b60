"""repeated: the lines and paragraphs that a source repeats, and which of them each part has.

Passes: hashes are counted per part; those with enough documents are selected, prefix by prefix;
their texts are counted per part; texts with enough documents are listed, prefix by prefix; and for
each part those that it has, which is all that `deduped` must know of it.
Every pass reads files of the one before: memory is a part, or `dedup.memory_bytes` over four.
A new file costs its own counting, and a second reading of the parts that have lines which it made
reach the threshold.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from assets.deduped.clusters.removal_files import removals_by_part
from assets.deduped.duplicates_asset import DUPLICATES
from assets.deduped.index.hash_prefixes import prefix_bits_for
from assets.deduped.repeats.repeated_line_files import (
    add_texts,
    collect_part,
    count_part,
    list_part,
    select,
)
from assets.deduped.repeats.repeated_lines import Unit, most_frequent, repeated_markdown
from assets.filtered.asset import FILTERED
from resources.corpus import Corpus
from resources.settings.dedup import DedupConfig
from resources.settings.repeats import RepeatedLinesConfig
from resources.stage import Stage
from resources.store.records import Manifest, fingerprint_of, required_file
from resources.tasks import (
    GLOBAL,
    MadeBy,
    Outcome,
    Plan,
    Task,
    Work,
    group_by_partition,
    part_task,
    run_tasks,
    within_memory,
)

NOT_CONFIGURED = (
    "Not configured: pipeline.yaml has neither `dedup.lines` nor `dedup.paragraphs`, so nothing "
    "was counted."
)
COUNT, SELECT, COLLECT, TOTAL = "count-", "select-", "collect-", "total-"  # what parts are named by


def configs_of(dedup: DedupConfig) -> dict[str, Any]:
    """What the lists depend on besides documents, as the manifest has it; {} if not configured."""
    return {
        unit: config.model_dump(mode="json", exclude={"min_kept_share"})  # that is for cutting
        for unit, config in units_of(dedup).items()
    }


def units_of(dedup: DedupConfig) -> dict[Unit, RepeatedLinesConfig]:
    """The config of each unit that is cut."""
    both: dict[Unit, RepeatedLinesConfig | None] = {
        "lines": dedup.lines,
        "paragraphs": dedup.paragraphs,
    }
    return {unit: config for unit, config in both.items() if config is not None}


def plan_repeated(corpus: Corpus, source: str) -> Plan:
    """The tasks of the first pass, one per filtered part; none if nothing is configured."""
    dedup = corpus.settings.dedup
    configs = units_of(dedup)
    if not configs:
        return Plan([], {})
    manifest = corpus.store.newest("filtered", source)
    clusters = corpus.store.newest("duplicates", GLOBAL)
    removals = removals_by_part(corpus, source)
    tasks = []
    for part in manifest.parts:
        removed = removals[part.name]
        made_by = MadeBy(
            REPEATED.name,
            REPEATED.code_version,
            {unit: config.comparison() for unit, config in configs.items()},
            inputs=removed.identity,
            payload={
                "removals": removed,
                "configs": configs,
                "part": part.name,
                "memory_bytes": dedup.memory_bytes,
            },
        )
        task = part_task(corpus, manifest, part, "documents", made_by)
        tasks.append(replace(task, name=COUNT + part.name))
    about = {"filtered": manifest.fingerprint, "duplicates": clusters.fingerprint}
    return Plan(tasks, configs_of(dedup), about)


def run_passes(corpus: Corpus, tasks: list[Task], work: Work) -> list[Outcome]:
    """Run the passes: each is planned when the one before has run. All of their parts are kept."""
    bounded = within_memory(corpus)
    counted = group_by_partition(run_tasks(corpus, tasks, work))
    selected = group_by_partition(run_tasks(bounded, plan_each(plan_select, counted), select))
    collects = plan_each(plan_collect, counted, selected)
    collected = group_by_partition(run_tasks(corpus, collects, collect_part))
    totals = plan_each(plan_total, collected, selected)
    totalled = group_by_partition(run_tasks(bounded, totals, add_texts))
    listed = group_by_partition(
        run_tasks(corpus, plan_each(plan_list, collected, totalled), list_part)
    )
    passes = (counted, selected, collected, totalled, listed)
    return [outcome for each in passes for outcomes in each.values() for outcome in outcomes]


def plan_each(
    plan: Callable[..., Iterable[Task]], *passes: Mapping[str, list[Outcome]]
) -> list[Task]:
    """The tasks of a pass for every source, from the outcomes of earlier ones."""
    return [task for source in passes[0] for task in plan(*(each[source] for each in passes))]


def next_task(task: Task, name: str, made_of: Sequence[Any], spec: Mapping[str, Any]) -> Task:
    """A task of a later pass in the same source."""
    return replace(
        task,
        name=name,
        fingerprint=fingerprint_of(REPEATED.name, REPEATED.code_version, name, made_of),
        payload={**task.payload, **spec},
    )


def files_of(outcomes: Sequence[Outcome], kind: str) -> list[Path]:
    """The file of a kind of each outcome's part."""
    found = [(outcome.task.folder.folder, outcome.records[0].file(kind)) for outcome in outcomes]
    return [folder / file.path for folder, file in found if file is not None]


def plan_select(counted: list[Outcome]) -> Iterator[Task]:
    """Second pass: one task per prefix of the hash."""
    first, records = counted[0].task, [outcome.records[0] for outcome in counted]
    configs = first.payload["configs"]
    num_documents = sum(record.stats.rows_kept for record in records)
    thresholds = {unit: config.threshold(num_documents) for unit, config in configs.items()}
    entries = sum(file.rows for record in records for file in record.files)
    bits = prefix_bits_for(entries, first.payload["memory_bytes"])
    made_of = (thresholds, bits, [outcome.task.fingerprint for outcome in counted])
    for prefix in range(1 << bits):
        spec = {
            "thresholds": thresholds,
            "place": (prefix, bits),
            "files": {unit: files_of(counted, unit) for unit in configs},
        }
        yield next_task(first, f"{SELECT}{prefix:04d}", made_of, spec)


def plan_collect(counted: list[Outcome], selected: list[Outcome]) -> Iterator[Task]:
    """Third pass: one task per part; it depends on which of the part's hashes were selected."""
    digests = [outcome.records[0].stats.numbers["digests"] for outcome in selected]
    for number, outcome in enumerate(counted):
        task = outcome.task
        spec = {
            "own": {unit: files_of([outcome], unit)[0] for unit in task.payload["configs"]},
            "selected": {unit: files_of(selected, unit) for unit in task.payload["configs"]},
        }
        made_of = (task.fingerprint, [each[number] for each in digests])
        yield next_task(task, COLLECT + task.payload["part"], made_of, spec)


def plan_total(collected: list[Outcome], selected: list[Outcome]) -> Iterator[Task]:
    """Fourth pass: one task per prefix of the hash."""
    made_of = [outcome.task.fingerprint for outcome in collected]
    for outcome in selected:
        task = outcome.task
        name = task.name.replace(SELECT, TOTAL)
        files = {unit: files_of(collected, unit) for unit in task.payload["configs"]}
        thresholds = task.payload["thresholds"]
        yield next_task(task, name, (made_of, thresholds, task.payload["place"]), {"files": files})


def plan_list(collected: list[Outcome], totalled: list[Outcome]) -> Iterator[Task]:
    """Fifth pass: one task per part, under the name of the filtered part."""
    all_totals = [outcome.task.fingerprint for outcome in totalled]
    for outcome in collected:
        task = outcome.task
        spec = {
            "own": {unit: files_of([outcome], unit)[0] for unit in task.payload["configs"]},
            "totals": {unit: files_of(totalled, unit) for unit in task.payload["configs"]},
        }
        yield next_task(task, task.payload["part"], (task.fingerprint, all_totals), spec)


def describe_repeated(corpus: Corpus, manifest: Manifest) -> Mapping[str, Any]:
    """How many lines are repeated is in the stats; here the most frequent ones."""
    if not manifest.config:
        return {"report": NOT_CONFIGURED}
    shown = {}
    for unit in manifest.config:
        tables = [
            most_frequent(
                pl.read_ipc(corpus.store.path_of(manifest, required_file(manifest, part, unit)))
            )
            for part in manifest.parts
            if part.name.startswith(TOTAL)
        ]
        if tables:
            shown[f"most_repeated_{unit}"] = repeated_markdown(most_frequent(pl.concat(tables)))
    return shown


REPEATED = Stage(
    name="repeated",
    code_version="1",
    description="Lines and paragraphs that many documents of the source share: boilerplate to be "
    "cut.",
    partitions="source",
    after=(FILTERED, DUPLICATES),
    kinds=frozenset({"numba"}),
    provenance=dict,
    numbers=dict,
    plan=plan_repeated,
    work=count_part,
    run=run_passes,
    describe=describe_repeated,
)
