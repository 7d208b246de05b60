"""mixed: for each phase which samples of which source, and one order over all of them.

What is written is a description, `mixture.json`: the order of its samples is computed from it
(corpus_loader/order.py), never stored. With `formats` the samples are also written in that order.
"""

from typing import Any

import dagster as dg
import numpy as np

from assets.mixed.mixture_files import mixture_of, read_mixture, realised
from assets.mixed.phase_plan_files import plan_from_shards
from assets.mixed.phase_shard_files import (
    check_flat_files,
    index_task,
    shard_tasks,
    write_index,
    write_shard,
)
from assets.mixed.phase_source_files import phase_source
from assets.mixed.report import phase_markdown
from assets.sharded.asset import sharded
from assets.sharded.shard_files import ABOUT_TOKENS
from pipeline_defs.partitions import PHASES
from resources.corpus import Corpus
from resources.materialization import Stage, run_stage, stage_asset
from resources.settings.phases import PhaseConfig
from resources.store.records import Manifest, PartRecord, Stats, fingerprint_of, to_json
from resources.tasks import Outcome, Plan, Task, Work, run_tasks

MIXED = Stage("mixed", code_version="3")
MIX_KEYS = ("weight", "planned_tokens", "realised_tokens", "available_tokens", "epochs", "samples")


@stage_asset(
    MIXED,
    deps=[dg.AssetDep(sharded, partition_mapping=dg.AllPartitionMapping())],
    partitions=PHASES,
    kinds={"numpy", "json"},
)
def mixed(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """Per phase a token plan, what was realised, and one deterministic order over all samples."""
    result = run_stage(
        context, MIXED, plan_mixed, mix_phase, run=mix_then_write, describe=describe_mix
    )
    for phase in context.partition_keys:
        manifest = context.resources.corpus.store.newest(MIXED.name, phase)
        for warning in mix_of(manifest)["warnings"]:
            context.log.warning(f"phase {phase!r}: {warning}")
    return result


def plan_mixed(corpus: Corpus, name: str) -> Plan:
    """One task per phase; it depends on the shards of its sources alone."""
    config = corpus.settings.phase(name)
    wanted = config.sources_of(tuple(corpus.settings.source_names()))
    manifests = [corpus.store.newest("sharded", source) for source in wanted]
    plan = plan_from_shards(corpus.store.root, config, manifests).accepted()
    about = {key: manifests[0].about[key] for key in ABOUT_TOKENS}
    found = [phase_source(manifest, config.buckets) for manifest in manifests]
    drawn = {budget.source for budget in plan.budgets}
    dump = config.model_dump(mode="json")
    task = Task(
        root=corpus.store.root,
        stage=MIXED.name,
        partition=name,
        name="mix",
        fingerprint=fingerprint_of(
            MIXED.name,
            MIXED.code_version,
            dump,
            [(m.partition, [part.fingerprint for part in m.parts]) for m in manifests],
        ),
        work_bytes=sum(source.rows for source in found),
        spec={
            "config": config,
            "plan": plan,
            "sources": [source for source in found if source.name in drawn],
            "about": about,
            "code_version": MIXED.code_version,
        },
    )
    return Plan([task], dump, about)


def mix_then_write(corpus: Corpus, tasks: list[Task], work: Work) -> list[Outcome]:
    """Mix the phases; then write those that want it as shards, then what lies beside these."""
    outcomes = run_tasks(corpus, tasks, work)
    phases = [task for task in tasks if task.spec["config"].formats]
    shards = {phase.partition: shard_tasks(phase) for phase in phases}
    writes = [task for each in shards.values() for task in each]
    check_flat_files(corpus, writes)
    outcomes += run_tasks(corpus, writes, write_shard)
    indexes = [index_task(phase, shards[phase.partition]) for phase in phases]
    return outcomes + run_tasks(corpus, indexes, write_index)


def mix_phase(task: Task) -> list[PartRecord]:
    """Count the samples of each source, and write the mixture."""
    config: PhaseConfig = task.spec["config"]
    spec = task.spec
    mixture = mixture_of(task.root, config, spec["plan"], spec["sources"], spec["about"])
    writer = task.writer()
    writer.write_text("mixture", "json", to_json(mixture).decode())
    sources = mixture["sources"]
    extra = {
        "mix": {source["name"]: {key: source[key] for key in MIX_KEYS} for source in sources},
        "warnings": mixture["warnings"],
        **{f"epochs/{source['name']}": source["epochs"] for source in sources},
    }
    return [writer.publish(mix_stats(mixture, extra, is_written=bool(config.formats)))]


def mix_stats(mixture: dict[str, Any], extra: dict[str, Any], *, is_written: bool) -> Stats:
    """Rows and tokens of a phase; those of one that is also written are counted by its shards."""
    if is_written:
        return Stats(extra=extra)
    num_samples, num_tokens = mixture["epoch_samples"], mixture["tokens"]
    num_bytes = num_tokens * np.dtype(mixture["token_dtype"]).itemsize
    return Stats(num_samples, num_samples, tokens=num_tokens, bytes=num_bytes, extra=extra)


def mix_of(manifest: Manifest) -> dict[str, Any]:
    """The numbers of a phase; its other parts, if it has any, are the samples once more."""
    return manifest.parts[0].stats.extra


def describe_mix(corpus: Corpus, manifest: Manifest) -> dict[str, Any]:
    """The mix as a pie, and its share of each source over the phase."""
    drawn = realised(read_mixture(corpus.store, manifest))
    pictures = phase_markdown(manifest.partition, drawn)
    return {"mix": mix_of(manifest)["mix"], **pictures}
