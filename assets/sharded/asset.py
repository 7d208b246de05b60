"""Asset `sharded`: a seeded shuffle of each source and bucket, in shards of a target size."""

import msgspec
from msgspec.structs import asdict

from assets.bucketed.bucketed_records import BUCKETED, BucketedManifest
from assets.bucketed.sequences import ROW_COLUMNS
from assets.sharded.drawn_files import drawn_places
from assets.sharded.generation_files import read_ledger
from assets.sharded.ledger_files import LedgerInputs, write_ledger
from assets.sharded.plan_files import plan_ledger, plan_shard_tasks
from assets.sharded.reused_files import has_all_files
from assets.sharded.scatter_files import read_piles, scatter_paths
from assets.sharded.shard_files import INDEX, ShardInputs, add_shard, part_fingerprint, split_of
from assets.sharded.shard_index_files import ShardsOrigin
from assets.sharded.sharded_records import SHARDED, ShardedNumbers, ShardedProvenance, SourceNumbers
from assets.sharded.shuffle import gather
from assets.sharded.shuffle_files import shuffle_sources
from assets.sharded.state_files import IndexInputs, write_index
from assets.tokenized.tokenized_records import TokenFacts
from resources.corpus import Corpus
from resources.reused_array import reused_array
from resources.run_tasks import all_at_once, run_tasks, stops_on_error
from resources.settings.shards import ShardConfig
from resources.stage import MainTable, Metadata, Stage
from resources.store.records import Manifest, PartRecord
from resources.tasks import Outcome, Plan, Task, Work, failed, tasks_of

ShardedManifest = Manifest[ShardedProvenance, SourceNumbers]


def plan_sharded(corpus: Corpus, source: str) -> Plan:
    """Plan the ledger of a source; its shards and their index follow from what it says."""
    manifest = corpus.store.newest(BUCKETED, source)
    ledger = plan_ledger(corpus, manifest, tasks_of(corpus, SHARDED, source))
    config = corpus.settings.shards.model_dump(mode="json", exclude={"ledger"})
    provenance = ShardedProvenance(**asdict(manifest.provenance), bucketed=manifest.fingerprint)
    return Plan([ledger], config, provenance)


def origin_of(manifest: BucketedManifest, config: ShardConfig, data: str) -> ShardsOrigin:
    """Return the origin of a source's shards, for the manifest.json of every format."""
    names = TokenFacts.__struct_fields__
    return ShardsOrigin(
        **{name: getattr(manifest.provenance, name) for name in names},
        stage=SHARDED.name,
        partition=manifest.partition,
        fingerprint=data,
        code_version=SHARDED.code_version,
        config=config.data(),
    )


def run_passes(corpus: Corpus, tasks: list[Task], work: Work) -> list[Outcome]:
    """Continue the ledgers, shuffle the sources into their shards, then write their indexes.

    A source that failed in a pass is left out of the next ones.
    """
    ledgers = run_tasks(corpus, tasks, write_ledger)
    outcomes, shards, indexes = [*ledgers], list[Task[ShardInputs]](), list[Task[IndexInputs]]()
    for outcome in ledgers:
        if outcome.error is None:
            try:
                of_source, index = tasks_after(corpus, outcome.task, outcome.records[0])
            except Exception as error:
                if stops_on_error(corpus):
                    raise
                outcomes.append(failed(outcome.task, error))
            else:
                shards += of_source
                indexes.append(index)
    outcomes += shuffle_sources(corpus, shards, work)
    broken = {outcome.task.partition for outcome in outcomes if outcome.error is not None}
    whole = [index for index in indexes if index.partition not in broken]
    return outcomes + run_tasks(corpus, whole, write_index)


def tasks_after(
    corpus: Corpus, ledger: Task[LedgerInputs], record: PartRecord
) -> tuple[list[Task[ShardInputs]], Task[IndexInputs]]:
    """Plan the shards of a source and their index, by its published ledger."""
    manifest = corpus.store.newest(BUCKETED, ledger.partition)
    found, formats = read_ledger(ledger.folder, record), corpus.settings.shards.formats
    shards = plan_shard_tasks(ledger, found, manifest.stats.bytes)
    state = found.ledger.state
    inputs = IndexInputs(
        shards=ledger.payload.source.shards(state),
        source=ledger.payload.source,
        ledger=ledger.fingerprint,
        origin=origin_of(manifest, corpus.settings.shards, state),
    )
    fingerprint = part_fingerprint(state, formats, INDEX)
    return shards, ledger.sibling(INDEX, fingerprint, inputs, work_bytes=0)


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


STAGE = Stage(
    *SHARDED.fields(),
    description="Shuffled shards of sequences in every chosen format, each file with its hash.",
    group="train",
    partitions="source",
    after=("bucketed",),
    kinds=frozenset({"parquet"}),
    settings=lambda settings: settings.shards.model_dump(mode="json"),
    plan=plan_sharded,
    work=write_shard,
    main_table=MainTable("parquet.parquet", ROW_COLUMNS),
    run=all_at_once(run_passes),
    keep=drawn_places,
    describe=describe_sharded,
)
