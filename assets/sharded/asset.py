"""Asset `sharded`: a seeded shuffle of each source and bucket, in shards of a target size."""

import msgspec
from msgspec.structs import asdict

from assets.bucketed.bucketed_records import BUCKETED
from assets.bucketed.sequences import ROW_COLUMNS
from assets.sharded.ledger_files import write_ledger
from assets.sharded.pinned_shards import pinned_places
from assets.sharded.plan_files import plan_index, plan_ledger, plan_shards
from assets.sharded.scatter_files import read_piles, scatter_paths
from assets.sharded.shard_files import ShardInputs, add_shard, has_all_files, split_of
from assets.sharded.shard_index_files import write_index
from assets.sharded.sharded_records import SHARDED, ShardedNumbers, ShardedProvenance, SourceNumbers
from assets.sharded.shuffle import gather
from assets.sharded.shuffle_files import shuffle_sources
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.passes import Pass, in_passes
from resources.reused_array import reused_array
from resources.stage import MainTable, Metadata, Outlook, Stage
from resources.store.records import Manifest, PartRecord
from resources.tasks import Plan, Task, tasks_of

ShardedManifest = Manifest[ShardedProvenance, SourceNumbers]


def plan_sharded(corpus: Corpus, source: str) -> Plan:
    """Plan the ledger of a source; its shards and their index follow from what it says."""
    manifest = corpus.store.newest(BUCKETED, source)
    ledger = plan_ledger(corpus, manifest, tasks_of(corpus, SHARDED, source))
    config = corpus.settings.shards.model_dump(mode="json", exclude={"ledger"})
    provenance = ShardedProvenance(**asdict(manifest.provenance), bucketed=manifest.fingerprint)
    return Plan([ledger], config, provenance)


def write_shard(task: Task[ShardInputs]) -> list[PartRecord]:
    """Read one shard's pile from every part, put it in order, write it in every format."""
    inputs, writer = task.payload, task.writer()
    earlier = inputs.earlier
    if earlier is not None and has_all_files(earlier, inputs.shards.formats):
        writer.keep_files(earlier.files)
        return [writer.publish(earlier.stats)]
    paths = scatter_paths(task, inputs.scattered)
    try:
        padding = inputs.shards.schema.end_of_document_id
        rows = gather(read_piles(paths, inputs.number), padding, reused_array)
    except FileNotFoundError:
        if published := task.published():  # piles go when another run has published their shards
            return published
        raise
    stats = add_shard(writer, inputs.shards, inputs.number, rows, earlier)
    text_bytes = round(stats.tokens * inputs.text_bytes_per_token)
    numbers = ShardedNumbers(**asdict(stats.numbers), shards={inputs.bucket: 1})
    return [writer.publish(msgspec.structs.replace(stats, text_bytes=text_bytes, numbers=numbers))]


def describe_sharded(corpus: Corpus, manifest: ShardedManifest) -> Metadata:
    """Report the rows that are held out of training, if there are any."""
    removed = manifest.stats.numbers
    held = [
        (
            part.stats.rows_kept - removed.removed_rows.get(part.name, 0),
            part.stats.tokens - removed.removed_tokens.get(part.name, 0),
        )
        for part in manifest.parts
        if any(map(split_of, part.stats.numbers.shards))
    ]
    if not held:
        return {}
    rows, tokens = map(sum, zip(*held, strict=True))
    return {"held_out": {"sequences": rows, "tokens": tokens, "shards": len(held)}}


PASSES = (
    Pass(write_ledger),
    Pass(write_shard, plan=plan_shards, run=shuffle_sources),
    Pass(write_index, plan=plan_index),
)
STAGE = Stage(
    *SHARDED.fields(),
    description="Shuffled shards of sequences in every chosen format, each file with its hash.",
    group="train",
    partitions="source",
    after=(stage_names.BUCKETED,),
    outlook=Outlook("new", cpu_per_mb=0.0063, first_seconds=1.3),
    kinds=frozenset({"parquet"}),
    settings=lambda settings: settings.shards.model_dump(mode="json"),
    plan=plan_sharded,
    work=write_shard,
    main_table=MainTable("parquet.parquet", ROW_COLUMNS),
    run=in_passes(*PASSES),
    keep=pinned_places,
    describe=describe_sharded,
)
