"""Asset `bucketed`: training sequences, made of the documents of one window after another."""

from dataclasses import dataclass
from functools import partial
from importlib import import_module

from msgspec.structs import asdict

from assets.bucketed.make_sequences import make_sequences
from assets.bucketed.report import (
    BucketedNumbers,
    readable,
    report_markdown,
    shares,
    warnings_of,
)
from assets.bucketed.sequence_ids import sequence_ids
from assets.bucketed.sequences import ROW_COLUMNS, count_empty
from assets.tokenized.asset import TOKENIZED, token_bytes
from assets.tokenized.encode_documents import NO_TOKENS
from assets.tokenized.token_facts import TokenizedProvenance
from resources.content_windows import content_windows
from resources.corpus import Corpus
from resources.reused_array import reused_array
from resources.settings.buckets import BucketConfig
from resources.stage import Conclusion, MainTable, Metadata, Stage
from resources.store.mapped_files import map_arrow
from resources.store.published import PublishedFile
from resources.store.records import Manifest, PartRecord, Stats, required_file
from resources.tasks import Plan, Task, tasks_of


class BucketedProvenance(TokenizedProvenance, frozen=True, kw_only=True):
    """Inputs of the stage `bucketed`: those of `tokenized`, and its fingerprint."""

    tokenized: str


SEQUENCE_IDS = "sequence_ids"  # kind of file: identities uint64 [rows, 2], tokens uint32 [rows]
BucketedManifest = Manifest[BucketedProvenance, BucketedNumbers]


@dataclass(frozen=True)
class WindowInputs:
    """Input of one task: the tokenized parts of a window, and the token to pad with."""

    files: list[PublishedFile]
    config: BucketConfig
    padding: int
    text_bytes: int
    has_loss_mask: bool = False


def plan_bucketed(corpus: Corpus, source: str) -> Plan:
    """Plan one task per window of consecutive tokenized parts, named after the first of them.

    The borders depend on the parts near them alone: a part that comes or goes changes one window.
    """
    manifest = corpus.store.newest(TOKENIZED, source)
    config = corpus.settings.buckets
    dump = config.model_dump(mode="json")
    maker, tasks = tasks_of(corpus, BUCKETED, source), []
    names = [part.name for part in manifest.parts]
    tokens = [part.stats.tokens for part in manifest.parts]
    for window in content_windows(names, tokens, config.window_tokens):
        parts = manifest.parts[window]
        files = [required_file(manifest, part, "tokens") for part in parts]
        inputs = WindowInputs(
            files=[corpus.store.file_of(manifest, file) for file in files],
            config=config,
            padding=manifest.provenance.end_of_document_id,
            text_bytes=sum(part.stats.text_bytes for part in parts),
            has_loss_mask=manifest.provenance.has_loss_mask is True,
        )
        made_of = [dump, [part.fingerprint for part in parts]]
        work_bytes = sum(file.bytes for file in files)
        tasks.append(maker.task(parts[0].name, made_of, inputs, work_bytes=work_bytes))
    provenance = BucketedProvenance(**asdict(manifest.provenance), tokenized=manifest.fingerprint)
    return Plan(tasks, dump, provenance)


def bucket_window(task: Task[WindowInputs]) -> list[PartRecord]:
    """Make the sequences of one window, whose documents are mapped, not read into memory."""
    inputs = task.payload
    columns = ["doc_id", "tokens", *(["loss_mask"] if inputs.has_loss_mask else [])]
    tables = [map_arrow(file.checked(), columns) for file in inputs.files]
    sequences, numbers = make_sequences(tables, inputs.config, inputs.padding, reused_array)
    writer = task.writer()
    writer.write_arrow("sequences", sequences)
    writer.write_arrays(SEQUENCE_IDS, sequence_ids(sequences), sequences["num_tokens"].to_numpy())
    documents, empty = sum(table.height for table in tables), count_empty(tables)
    num_tokens = sum(numbers.bucket_tokens.values())
    stats = Stats(
        rows_in=documents,
        rows_kept=documents - empty,
        rejected={NO_TOKENS: empty} if empty else {},
        tokens=num_tokens,
        bytes=num_tokens * token_bytes(sequences.schema["tokens"]),
        text_bytes=inputs.text_bytes,
        numbers=numbers,
    )
    return [writer.publish(stats)]


def describe_bucketed(corpus: Corpus, manifest: BucketedManifest) -> Metadata:
    """Report padding, documents cut, sequences by bucket and histograms."""
    if not manifest.parts:
        return {}
    numbers = manifest.stats.numbers
    return {
        **report_markdown(numbers, config_of(manifest)),
        **shares(numbers, manifest.stats.rows_in),
        "document_lengths": readable(numbers.document_lengths),
        "sequence_documents": readable(numbers.sequence_documents),
    }


def config_of(manifest: BucketedManifest) -> BucketConfig:
    """Return the config that sequences were made with."""
    return BucketConfig.model_validate(manifest.config)


def warn_of_buckets(corpus: Corpus, manifest: BucketedManifest) -> Conclusion:
    """Warn of sequences that waste space."""
    if not manifest.parts:
        return Conclusion()
    warnings = warnings_of(manifest.stats.numbers, config_of(manifest))
    return Conclusion([f"source {manifest.partition!r}: {warning}" for warning in warnings])


BUCKETED = Stage(
    name="bucketed",
    code_version="3",
    description="Training sequences by bucket, each with the spans of the documents in it.",
    group="train",
    partitions="source",
    after=(TOKENIZED,),
    kinds=frozenset({"arrow", "numba"}),
    provenance=BucketedProvenance,
    numbers=BucketedNumbers,
    settings=lambda settings: settings.buckets.model_dump(mode="json"),
    plan=plan_bucketed,
    work=bucket_window,
    main_table=MainTable("sequences", {"bucket": "number of its bucket"} | ROW_COLUMNS),
    warm_up=lambda corpus: [partial(import_module, "assets.bucketed.kernels.packing_plan")],
    describe=describe_bucketed,
    conclude=warn_of_buckets,
)
