"""Asset `mixed`: the samples of each source in every phase, and one order over all of them.

The output is a description, `mixture.json`: the order of its samples is computed from it
(corpus_loader/order.py), never stored. With `formats` the samples are also written in that order.
"""

from typing import Any

import numpy as np
from msgspec import UNSET

from assets.bucketed.sequences import ROW_COLUMNS
from assets.mixed.budgets import MixError
from assets.mixed.mixed_records import MIXED, MixNumbers, MixProvenance
from assets.mixed.mixture_files import PhaseInputs, mix_numbers, mixture_of, read_mixture, realised
from assets.mixed.phase_input_files import phase_inputs
from assets.mixed.phase_shard_files import (
    PhaseIndexInputs,
    PhaseShardInputs,
    check_flat_files,
    index_task,
    shard_tasks,
    write_index,
    write_shard,
)
from assets.mixed.phase_source_files import forbidden_shards
from assets.mixed.report import phase_markdown
from corpus_loader.mixture import MIXTURE_FILE, mixture_json
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.passes import Earlier, Pass, in_passes
from resources.stage import Conclusion, MainTable, Metadata, Outlook, Stage
from resources.store.records import Manifest, PartRecord, Stats, as_json_object, to_json
from resources.takedowns import count_takedowns
from resources.tasks import Plan, Task, tasks_of

MixedManifest = Manifest[MixProvenance, MixNumbers]


def plan_mixed(corpus: Corpus, name: str) -> Plan:
    """Plan one task per phase, which depends on the shards of its sources only."""
    config = corpus.settings.phase(name)
    inputs, manifests = phase_inputs(corpus, config, MIXED.code_version)
    for manifest in manifests:
        if found := forbidden_shards(corpus.store, manifest):
            raise MixError(
                f"phase {name!r} would draw {found} from {manifest.partition!r}, whose newest "
                "shards still have them. It is mixed when the source is built without them: "
                f"`corpus status` says why {manifest.partition!r} was not."
            )
    dump = config.model_dump(mode="json")
    shards = [(m.partition, [part.fingerprint for part in m.parts]) for m in manifests]
    start = inputs.start
    before: list[Any] = [[start.seed, start.samples]] if config.continues else []
    padding = corpus.settings.tokenizer.model_dump(include={"vocab_multiple"})
    before += [padding] if padding else []
    task = tasks_of(corpus, MIXED, name).task(
        "mix",
        [dump, shards, *before],
        inputs,
        work_bytes=sum(source.rows for source in inputs.sources),
    )
    provenance = MixProvenance(
        **as_json_object(inputs.tokens), takedowns=count_takedowns(corpus.store.root) or UNSET
    )
    return Plan([task], dump, provenance)


def plan_shards(
    corpus: Corpus, tasks: list[Task[PhaseInputs]], _earlier: Earlier
) -> list[Task[PhaseShardInputs]]:
    """Plan the shards of a phase that asks for some, and check the files that they read."""
    writes = [write for phase in tasks_with_formats(tasks) for write in shard_tasks(phase)]
    check_flat_files(corpus, writes)
    return writes


def plan_index(
    _corpus: Corpus, tasks: list[Task[PhaseInputs]], _earlier: Earlier
) -> list[Task[PhaseIndexInputs]]:
    """Plan the index files of a phase's shards."""
    return [index_task(phase, shard_tasks(phase)) for phase in tasks_with_formats(tasks)]


def tasks_with_formats(tasks: list[Task[PhaseInputs]]) -> list[Task[PhaseInputs]]:
    """Return the tasks of phases that are written as shards, too, and have samples."""
    return [task for task in tasks if task.payload.is_written]


def mix_phase(task: Task[PhaseInputs]) -> list[PartRecord]:
    """Count the samples of each source, and write the mixture."""
    mixture = mixture_of(task.root, task.payload)
    writer = task.writer()
    writer.write_text(MIXTURE_FILE, "json", to_json(mixture_json(mixture)).decode())
    if task.payload.is_written:  # its shards count the rows and tokens
        return [writer.publish(Stats(numbers=mix_numbers(mixture)))]
    num_samples, num_tokens = mixture.epoch_samples, mixture.tokens
    num_bytes = num_tokens * np.dtype(mixture.token_dtype).itemsize
    numbers = mix_numbers(mixture)
    stats = Stats(num_samples, num_samples, tokens=num_tokens, bytes=num_bytes, numbers=numbers)
    return [writer.publish(stats)]


def describe_mix(corpus: Corpus, manifest: MixedManifest) -> Metadata:
    """Describe a phase by two charts, the epochs of each source and its mix."""
    mix = manifest.parts[0].stats.numbers.mix
    return {
        **phase_markdown(manifest.partition, realised(read_mixture(corpus.store, manifest))),
        **{f"epochs/{source}": share.epochs for source, share in mix.items()},
        "mix": {source: as_json_object(share) for source, share in mix.items()},
        **{key: of for key, of in manifest.config.items() if key == "fitted"},
    }


def warn_of_mix(corpus: Corpus, manifest: MixedManifest) -> Conclusion:
    """Repeat the warnings of the plan in the run's log."""
    warnings = manifest.parts[0].stats.numbers.warnings
    return Conclusion([f"phase {manifest.partition!r}: {warning}" for warning in warnings])


STAGE = Stage(
    *MIXED.fields(),
    description="Per phase a token plan, what was realised, and one deterministic order over all "
    "samples.",
    group="train",
    partitions="phase",
    after=(stage_names.SHARDED,),
    outlook=Outlook(cpu_per_mb=0.0003),
    kinds=frozenset({"json", "numpy"}),
    settings=lambda settings: (
        settings.model_dump(mode="json", include={"phases"})
        | settings.tokenizer.model_dump(include={"vocab_multiple"})
    ),
    plan=plan_mixed,
    work=mix_phase,
    main_table=MainTable("parquet.parquet", ROW_COLUMNS),
    run=in_passes(
        Pass(mix_phase), Pass(write_shard, plan=plan_shards), Pass(write_index, plan=plan_index)
    ),
    describe=describe_mix,
    conclude=warn_of_mix,
)
