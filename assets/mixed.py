"""mixed: for each phase which samples of which source, and one order over all of them."""

from typing import Any

import dagster as dg
import numpy as np
import polars as pl

from assets.sharded import TOKEN_BYTES, sharded
from assets.transforms.mixed import (
    MANY_EPOCHS,
    PhaseConfig,
    draw_samples,
    interleave,
    normalized_weights,
    plan_tokens,
)
from pipeline_defs.partitions import PHASES
from resources.corpus import Corpus, Plan, Task, required_file
from resources.records import FileRecord, Manifest, PartRecord, Stats, fingerprint_of, to_json
from resources.stages import Stage, run_stage, stage_asset
from resources.store import Store, StoreError

MIXED = Stage("mixed", code_version="1")
ORDER_COLUMNS = {
    "source": "index into `sources` of this file",
    "shard": "index into the source's `shards`",
    "row": "row of the shard",
    "epoch": "how often the source had been gone through before",
    "num_tokens": "tokens of the sample",
}
MIX_KEYS = ("weight", "planned_tokens", "realised_tokens", "epochs", "samples")


@stage_asset(
    MIXED,
    deps=[dg.AssetDep(sharded, partition_mapping=dg.AllPartitionMapping())],
    partitions=PHASES,
    kinds={"polars", "parquet"},
)
def mixed(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """Per phase a token plan, what was realised, and one deterministic order over all samples."""
    result = run_stage(context, MIXED, plan_mixed, mix_phase)
    for phase in context.partition_keys:
        warn_of_many_epochs(context, phase)
    return result


def plan_mixed(corpus: Corpus, name: str) -> Plan:
    """One task per phase; it depends on the shards of its sources alone."""
    config = corpus.settings.phase(name)
    dump = config.model_dump(mode="json")
    manifests = [corpus.store.newest("sharded", source) for source in normalized_weights(config)]
    tokenizers = {
        manifest.partition: manifest.about["tokenizer_fingerprint"] for manifest in manifests
    }
    if len(set(tokenizers.values())) > 1:
        raise StoreError(
            f"phase {name!r} would mix shards of different tokenizers: {tokenizers}. "
            "Materialize `tokenized`, `bucketed` and `sharded` for all of these sources first."
        )
    available = {manifest.partition: manifest.stats.tokens for manifest in manifests}
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
        work_bytes=sum(file.bytes for m in manifests for part in m.parts for file in part.files),
        spec={
            "config": config,
            "manifests": manifests,
            "planned": plan_tokens(config, available),
        },
    )
    return Plan([task], dump, manifests[0].about if manifests else {})


def warn_of_many_epochs(context: dg.AssetExecutionContext, phase: str) -> None:
    """Say in the run's log which sources a phase repeats more than is useful."""
    mix = context.resources.corpus.store.newest(MIXED.name, phase).stats.extra["mix"]
    for source, numbers in mix.items():
        if numbers["epochs"] > MANY_EPOCHS:
            context.log.warning(
                f"phase {phase!r} repeats {source!r} {numbers['epochs']:.1f} times; more than "
                f"{MANY_EPOCHS:.0f} epochs teach little new. Lower its weight or `tokens`."
            )


def mix_phase(task: Task) -> list[PartRecord]:
    """Draw the samples of one phase, interleave them, write the order and mixtures.json."""
    config: PhaseConfig = task.spec["config"]
    manifests: list[Manifest] = task.spec["manifests"]
    samples = {m.partition: draw_source(task, m) for m in manifests}
    order = interleave(samples)
    writer = task.writer()
    writer.write_parquet("order", order)
    sources = [describe_source(task, m, samples[m.partition]) for m in manifests]
    num_tokens = sum(source["realised_tokens"] for source in sources)
    mixture = {
        "phase": config.name,
        "seed": config.seed,
        "samples": order.height,
        "tokens": num_tokens,
        "order": {"file": writer.pending[0][1].path, "columns": ORDER_COLUMNS},
        "sources": sources,
        **{key: manifests[0].about[key] for key in ("tokenizer_fingerprint", "token_dtype")},
        "end_of_document_id": manifests[0].about["end_of_document_id"],
    }
    writer.write_text("mixtures", "json", to_json(mixture).decode())
    extra = {
        "mix": {s["name"]: {key: s[key] for key in MIX_KEYS} for s in sources},
        **{f"epochs/{source['name']}": source["epochs"] for source in sources},
    }
    rows, width = order.height, TOKEN_BYTES[manifests[0].about["token_dtype"]]
    return [
        writer.publish(Stats(rows, rows, tokens=num_tokens, bytes=num_tokens * width, extra=extra))
    ]


def draw_source(task: Task, manifest: Manifest) -> pl.DataFrame:
    """The samples that a phase takes of one source, as shard and row."""
    store = Store(task.root)
    lengths = [
        pl.read_parquet(store.path_of(manifest, shard_file(manifest, part)), columns=["num_tokens"])
        for part in manifest.parts
    ]
    first_rows = np.cumsum([0, *(len(length) for length in lengths)])
    num_tokens = pl.concat(lengths)["num_tokens"].to_numpy()
    planned = task.spec["planned"][manifest.partition]
    config: PhaseConfig = task.spec["config"]
    drawn = draw_samples(num_tokens, planned, config.seed, "mix", config.name, manifest.partition)
    shard = np.searchsorted(first_rows, drawn["index"].to_numpy(), side="right") - 1
    return drawn.select(
        shard=pl.Series(shard.astype(np.uint32)),
        row=pl.col("index") - pl.Series(first_rows[shard].astype(np.uint32)),
        epoch="epoch",
        num_tokens="num_tokens",
    )


def shard_file(manifest: Manifest, part: PartRecord) -> FileRecord:
    """The shard file of one part of `sharded`."""
    return required_file(manifest, part, "shard")


def describe_source(task: Task, manifest: Manifest, samples: pl.DataFrame) -> dict[str, Any]:
    """What mixtures.json says of one source: the plan, what came of it, and its shards."""
    available = manifest.stats.tokens
    realised = int(samples["num_tokens"].cast(pl.UInt64).sum())
    files = [(part, shard_file(manifest, part)) for part in manifest.parts]
    return {
        "name": manifest.partition,
        "weight": normalized_weights(task.spec["config"])[manifest.partition],
        "planned_tokens": task.spec["planned"][manifest.partition],
        "realised_tokens": realised,
        "available_tokens": available,
        "epochs": round(realised / available, 6),
        "samples": samples.height,
        "shards": [
            {
                "path": f"sharded/{manifest.partition}/{file.path}",
                "rows": file.rows,
                "tokens": part.stats.tokens,
                "bucket": next(iter(part.stats.extra["shards"])),
                "sha256": file.sha256,
            }
            for part, file in files
        ],
    }
