"""mixed: for each phase which samples of which source, and one order over all of them.

What is written is a description, `mixture.json`: the order of its samples is computed from it
(corpus_loader/order.py), never stored. With `formats` the samples are also written in that order.
"""

from typing import Any

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
from assets.sharded.asset import SHARDED
from assets.sharded.shard_files import ABOUT_TOKENS
from corpus_loader.mixture import MIXTURE_FILE, Mixture, mixture_json
from resources.corpus import Corpus
from resources.settings.phases import PhaseConfig
from resources.stage import Conclusion, Stage
from resources.store.records import Manifest, PartRecord, Stats, fingerprint_of, to_json
from resources.tasks import Outcome, Plan, Task, Work, run_tasks

MIX_KEYS = ("weight", "planned_tokens", "realised_tokens", "available_tokens", "epochs", "samples")


def plan_mixed(corpus: Corpus, name: str) -> Plan:
    """One task per phase; it depends on the shards of its sources alone."""
    config = corpus.settings.phase(name)
    wanted = config.sources_of(tuple(corpus.settings.source_names()))
    manifests = [corpus.store.newest("sharded", source) for source in wanted]
    plan = plan_from_shards(corpus.store.root, config, manifests).accepted()
    about = {key: manifests[0].provenance[key] for key in ABOUT_TOKENS}
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
        payload={
            "config": config,
            "plan": plan,
            "sources": [source for source in found if source.name in drawn],
            "about": about,
            "code_version": MIXED.code_version,
        },
    )
    return Plan([task], dump, about)


def mix_then_write(corpus: Corpus, tasks: list[Task], work: Work) -> list[Outcome]:
    """Mix the phases; then write the shards of those with `formats`, then what goes beside them."""
    outcomes = run_tasks(corpus, tasks, work)
    phases = [task for task in tasks if task.payload["config"].formats]
    shards = {phase.partition: shard_tasks(phase) for phase in phases}
    writes = [task for each in shards.values() for task in each]
    check_flat_files(corpus, writes)
    outcomes += run_tasks(corpus, writes, write_shard)
    indexes = [index_task(phase, shards[phase.partition]) for phase in phases]
    return outcomes + run_tasks(corpus, indexes, write_index)


def mix_phase(task: Task) -> list[PartRecord]:
    """Count the samples of each source, and write the mixture."""
    config: PhaseConfig = task.payload["config"]
    spec = task.payload
    mixture = mixture_of(task.root, config, spec["plan"], spec["sources"], spec["about"])
    writer = task.writer()
    writer.write_text(MIXTURE_FILE, "json", to_json(mixture_json(mixture)).decode())
    sources = mixture.sources
    extra = {
        "mix": {source.name: {key: getattr(source, key) for key in MIX_KEYS} for source in sources},
        "warnings": list(mixture.warnings),
        **{f"epochs/{source.name}": source.epochs for source in sources},
    }
    return [writer.publish(mix_stats(mixture, extra, is_written=bool(config.formats)))]


def mix_stats(mixture: Mixture, extra: dict[str, Any], *, is_written: bool) -> Stats:
    """Rows and tokens of a phase; those of one that is also written are counted by its shards."""
    if is_written:
        return Stats(numbers=extra)
    num_samples, num_tokens = mixture.epoch_samples, mixture.tokens
    num_bytes = num_tokens * np.dtype(mixture.token_dtype).itemsize
    return Stats(num_samples, num_samples, tokens=num_tokens, bytes=num_bytes, numbers=extra)


def mix_of(manifest: Manifest) -> dict[str, Any]:
    """The numbers of a phase; its other parts, if it has any, are the samples once more."""
    numbers: dict[str, Any] = manifest.parts[0].stats.numbers
    return numbers


def describe_mix(corpus: Corpus, manifest: Manifest) -> dict[str, Any]:
    """The mix as a pie, and its share of each source over the phase."""
    drawn = realised(read_mixture(corpus.store, manifest))
    pictures = phase_markdown(manifest.partition, drawn)
    return {"mix": mix_of(manifest)["mix"], **pictures}


def warn_of_mix(corpus: Corpus, manifest: Manifest) -> Conclusion:
    """Repeat the warnings of the plan where a run's log shows them."""
    warnings = mix_of(manifest)["warnings"]
    return Conclusion([f"phase {manifest.partition!r}: {warning}" for warning in warnings])


MIXED = Stage(
    name="mixed",
    code_version="3",
    description="Per phase a token plan, what was realised, and one deterministic order over all "
    "samples.",
    partitions="phase",
    after=(SHARDED,),
    kinds=frozenset({"json", "numpy"}),
    provenance=dict,
    numbers=dict,
    plan=plan_mixed,
    work=mix_phase,
    run=mix_then_write,
    describe=describe_mix,
    conclude=warn_of_mix,
)
