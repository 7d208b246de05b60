"""signatures: for each document what deduplication must know of it, and the keys it is found by.

Contaminated documents that will be rejected have no keys: no clean copy is removed for one of them.
"""

from dataclasses import replace
from unicodedata import unidata_version

import polars as pl

from assets.deduped.decontamination.contaminated_documents import is_contaminated
from assets.deduped.decontamination.contamination import find_contamination
from assets.deduped.evaluation_asset import EVALUATION, find_evaluation_index, load_index
from assets.deduped.minhash.signatures import columns_read
from assets.deduped.minhash.signatures import signatures as sign_documents
from assets.filtered.asset import FILTERED
from assets.text.table_rows import count_bytes
from resources.corpus import Corpus
from resources.settings.dedup import DedupConfig
from resources.stage import Stage
from resources.store.records import PartRecord, Stats, required_file
from resources.tasks import MadeBy, Plan, Task, part_task


def plan_signatures(corpus: Corpus, source: str) -> Plan:
    """One task per filtered part."""
    manifest = corpus.store.newest("filtered", source)
    config = corpus.settings.dedup
    dump = config.signing()
    index, fingerprint = find_evaluation_index(corpus) or (None, "")
    inputs = (unidata_version, fingerprint)
    spec = {"config": config, "evaluation": index}
    made_by = MadeBy(SIGNATURES.name, SIGNATURES.code_version, dump, inputs, spec)
    tasks = []
    for part in manifest.parts:
        task = part_task(corpus, manifest, part, "documents", made_by)
        decisions = corpus.store.path_of(manifest, required_file(manifest, part, "decisions"))
        tasks.append(replace(task, payload={**task.payload, "decisions": decisions}))
    return Plan(tasks, dump, {"filtered": manifest.fingerprint})


def sign_part(task: Task) -> list[PartRecord]:
    """Sign one part; publish its signatures and its sorted keys."""
    config: DedupConfig = task.payload["config"]
    documents = pl.read_parquet(task.payload["path"], columns=columns_read(config))
    facts, keys = sign_documents(documents, config, read_scores(task, config))
    hits = find_hits(task, documents)
    writer = task.writer()
    if hits is not None and config.decontamination is not None:
        writer.write_parquet("contamination", hits)
        if config.decontamination.action == "reject":
            keys = without_documents(keys, documents, hits.filter("is_contaminated"))
    writer.write_arrow("signatures", facts)
    writer.write_arrays("keys", keys["key"].to_numpy(), keys["row"].to_numpy())
    num_bytes = count_bytes(documents["text"])
    rows, extra = documents.height, documents_with(facts, config)
    return [writer.publish(Stats(rows, rows, bytes=num_bytes, text_bytes=num_bytes, numbers=extra))]


def documents_with(facts: pl.DataFrame, config: DedupConfig) -> dict[str, dict[str, int]]:
    """How many documents have what the config names: 0 is most often a misspelt name."""
    columns = {name: f"field_{number:02}" for number, name in enumerate(config.fields)}
    if config.quality_field is not None:
        columns[config.quality_field] = "quality"
    if config.date_field is not None:
        columns[config.date_field] = "date"
    counts = {name: facts.height - facts[column].null_count() for name, column in columns.items()}
    return {"documents_with": counts} if counts else {}


def read_scores(task: Task, config: DedupConfig) -> pl.DataFrame | None:
    """The score of `filtered` that the keep policy looks at, None if it looks at none."""
    field = config.quality_field
    if field is None or field.startswith("meta."):
        return None
    columns = pl.read_parquet_schema(task.payload["decisions"])
    if field not in columns:
        raise ValueError(
            f"dedup.quality_field: `filtered` has no score {field!r}. It has "
            f"{', '.join(name for name in columns if name != 'doc_id')}; or name meta.<field>."
        )
    return pl.read_parquet(task.payload["decisions"], columns=["doc_id", field])


def find_hits(task: Task, documents: pl.DataFrame) -> pl.DataFrame | None:
    """Evaluation items in documents, and whether that is enough; None if not configured."""
    config: DedupConfig = task.payload["config"]
    if task.payload["evaluation"] is None or config.decontamination is None:
        return None
    index = load_index(task.payload["evaluation"])
    hits = find_contamination(documents, index, config.decontamination)
    return hits.with_columns(is_contaminated=is_contaminated(config.decontamination))


def without_documents(
    keys: pl.DataFrame, documents: pl.DataFrame, gone: pl.DataFrame
) -> pl.DataFrame:
    """The keys of documents that are not among `gone` (doc_id)."""
    rows = documents["doc_id"].is_in(gone["doc_id"].implode()).arg_true().cast(pl.UInt32)
    return keys.filter(~pl.col("row").is_in(rows.implode()))


SIGNATURES = Stage(
    name="signatures",
    code_version="3",
    description="For each document a hash of its text and a MinHash signature; keys that equal "
    "ones share.",
    partitions="source",
    after=(FILTERED, EVALUATION),
    kinds=frozenset({"arrow", "numba"}),
    provenance=dict,
    numbers=dict,
    plan=plan_signatures,
    work=sign_part,
    preload=("assets.deduped.kernels.minhash_sketch",),
)
