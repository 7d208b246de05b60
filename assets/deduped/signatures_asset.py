"""signatures: hashes, MinHash signature and ranking values of each document, and its sorted keys.

Contaminated documents that will be rejected have no keys: no clean copy is removed for one of them.
"""

from dataclasses import dataclass
from unicodedata import unidata_version

import msgspec
import polars as pl
import xxhash

from assets.deduped.decontamination.contamination import find_contamination, is_contaminated
from assets.deduped.deduped_records import SIGNATURES, SignaturesNumbers, SignaturesProvenance
from assets.deduped.evaluation_index_files import (
    IndexFiles,
    find_evaluation_index,
    load_index,
)
from assets.deduped.minhash.signatures import columns_read
from assets.deduped.minhash.signatures import signatures as sign_documents
from assets.filtered.filtered_records import FILTERED
from assets.text.table_rows import count_bytes
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.settings.dedup import DedupConfig
from resources.stage import MainTable, Outlook, Stage
from resources.store.published import PublishedFile
from resources.store.records import PartRecord, Stats
from resources.tasks import Plan, Task, tasks_of

SIGNATURE_COLUMNS = {
    "doc_id": "the document",
    "num_chars": "code points of its text",
    "num_words": "words of its text, as they are compared",
    "text_hash": "XXH3-128 of the text in the form that dedup.exact_text names",
    "field_*": "XXH3-128 of the value of the field with this number in dedup.fields",
    "group": "XXH3-64 of the values of dedup.within; only documents of one group are compared",
    "quality": "value of dedup.quality_field, by which copies are ranked",
    "date": "value of dedup.date_field, by which copies are ranked",
    "signature": "MinHash values: their share in common estimates the similarity",
}


@dataclass(frozen=True)
class SigningInputs:
    """Inputs of one part: its documents and decisions, and the index of evaluation sets."""

    documents: PublishedFile
    decisions: PublishedFile
    config: DedupConfig
    evaluation: IndexFiles | None


def plan_signatures(corpus: Corpus, source: str) -> Plan:
    """Plan one task per filtered part."""
    manifest = corpus.store.newest(FILTERED, source)
    dedup = corpus.settings.dedup
    config = dedup.signing()
    index, fingerprint = find_evaluation_index(corpus) or (None, "")
    make = tasks_of(corpus, SIGNATURES, source)
    tasks = []
    for part in manifest.parts:
        documents = corpus.store.part_file(manifest, part, "documents")
        decisions = corpus.store.part_file(manifest, part, "decisions")
        inputs = SigningInputs(documents, decisions, config=dedup, evaluation=index)
        made_of = (config, part.fingerprint, (unidata_version, fingerprint))
        tasks.append(make.task(part.name, made_of, inputs, work_bytes=documents.bytes))
    return Plan(tasks, config, SignaturesProvenance(manifest.fingerprint))


def sign_part(task: Task[SigningInputs]) -> list[PartRecord]:
    """Sign one part; publish its signatures and its sorted keys."""
    config = task.payload.config
    columns = [*columns_read(config), "origin"]
    documents = pl.read_parquet(task.payload.documents.checked(), columns=columns)
    scores = read_scores(task.payload.decisions, config)
    signed, keys = sign_documents(documents, config, scores)
    hits = find_hits(documents, task.payload)
    writer = task.writer()
    if hits is not None and config.decontamination is not None:
        writer.write_parquet("contamination", hits)
        if config.decontamination.action == "reject":
            keys = without_documents(keys, documents, hits.filter("is_contaminated"))
    writer.write_arrow(SIGNATURES.name, signed)
    writer.write_arrays("keys", keys["key"].to_numpy(), keys["row"].to_numpy())
    rows, num_bytes = documents.height, count_bytes(documents["text"])
    files, stops = file_rows(documents["origin"])
    numbers = SignaturesNumbers(count_values(signed, config) or msgspec.UNSET, files, stops)
    return [
        writer.publish(Stats(rows, rows, bytes=num_bytes, text_bytes=num_bytes, numbers=numbers))
    ]


def file_rows(origin: pl.Series) -> tuple[list[str], list[int]]:
    """Return `files` and `file_stops` of the documents of a part: see SignaturesNumbers."""
    runs = origin.struct.field("file").rle().struct.unnest()
    names = [xxhash.xxh3_64_hexdigest(name.encode()) for name in runs["value"].to_list()]
    return names, runs["len"].cum_sum().to_list()


def count_values(signed: pl.DataFrame, config: DedupConfig) -> dict[str, int]:
    """Count the documents that have a value of each field that the config names.

    0 is most often a misspelt name.
    """
    columns = {name: f"field_{number:02}" for number, name in enumerate(config.fields)}
    if config.quality_field is not None:
        columns[config.quality_field] = "quality"
    if config.date_field is not None:
        columns[config.date_field] = "date"
    return {name: signed.height - signed[column].null_count() for name, column in columns.items()}


def read_scores(decisions: PublishedFile, config: DedupConfig) -> pl.DataFrame | None:
    """Read the score of `filtered` that the keep policy compares, None if it compares none.

    Raises ValueError if the decisions have no such score.
    """
    field = config.quality_field
    if field is None or field.startswith("meta."):
        return None
    columns = pl.read_parquet_schema(decisions.checked())
    if field not in columns:
        raise ValueError(
            f"dedup.quality_field: `filtered` has no score {field!r}. It has "
            f"{', '.join(name for name in columns if name != 'doc_id')}; or name meta.<field>."
        )
    return pl.read_parquet(decisions.checked(), columns=["doc_id", field])


def find_hits(documents: pl.DataFrame, inputs: SigningInputs) -> pl.DataFrame | None:
    """Find evaluation items in documents, with `is_contaminated`; None if not configured."""
    config = inputs.config.decontamination
    if inputs.evaluation is None or config is None:
        return None
    hits = find_contamination(documents, load_index(inputs.evaluation), config)
    return hits.with_columns(is_contaminated=is_contaminated(config))


def without_documents(
    keys: pl.DataFrame, documents: pl.DataFrame, gone: pl.DataFrame
) -> pl.DataFrame:
    """Return the keys of documents that are not among `gone` (doc_id)."""
    rows = documents["doc_id"].is_in(gone["doc_id"].implode()).arg_true().cast(pl.UInt32)
    return keys.filter(~pl.col("row").is_in(rows.implode()))


STAGE = Stage(
    *SIGNATURES.fields(),
    description="For each document a hash of its text and a MinHash signature; keys that equal "
    "ones share.",
    group="deduplicate",
    partitions="source",
    after=(stage_names.FILTERED, stage_names.EVALUATION),
    outlook=Outlook("same", cpu_per_mb=0.004, first_seconds=0.4),
    kinds=frozenset({"arrow", "numba"}),
    settings=lambda settings: settings.dedup.signing(),
    plan=plan_signatures,
    stays_rolled_back=True,
    work=sign_part,
    describe=lambda corpus, manifest: {"files": None, "file_stops": None},  # for the ledger
    main_table=MainTable(SIGNATURES.name, SIGNATURE_COLUMNS),
    preload=("assets.deduped.kernels.minhash_sketch",),
)
