"""tokenized: token ids of every document, made by the corpus's one tokenizer."""

import dagster as dg
import polars as pl

from assets.deduped import deduped
from assets.tokenizer import tokenizer
from assets.transforms.tokenized import encode_documents
from pipeline_defs.partitions import SOURCES
from resources.corpus import GLOBAL, Corpus, MadeBy, Plan, Task, part_task, required_file
from resources.records import PartRecord, Stats
from resources.stages import Stage, run_stage, stage_asset

TOKENIZED = Stage("tokenized", code_version="1")


@stage_asset(TOKENIZED, deps=[deduped, tokenizer], partitions=SOURCES, kinds={"arrow"})
def tokenized(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """Token ids of every document, with the end-of-document id appended."""
    return run_stage(context, TOKENIZED, plan_tokenized, encode_part)


def plan_tokenized(corpus: Corpus, source: str) -> Plan:
    """One task per deduped part, made by the corpus's tokenizer."""
    manifest = corpus.store.newest("deduped", source)
    made = corpus.store.newest("tokenizer", GLOBAL)
    about = dict(made.parts[0].stats.extra)
    path = corpus.store.path_of(made, required_file(made, made.parts[0], "tokenizer"))
    made_by = MadeBy(
        TOKENIZED.name,
        TOKENIZED.code_version,
        {"end_of_document": about["end_of_document"]},
        inputs=(about["tokenizer_fingerprint"],),
        spec={"tokenizer": path, "end_of_document": about["end_of_document"]},
    )
    tasks = [part_task(corpus, manifest, part, "documents", made_by) for part in manifest.parts]
    return Plan(tasks, made_by.config, {"deduped": manifest.fingerprint, **about})


def encode_part(task: Task) -> list[PartRecord]:
    """Encode one part."""
    documents = pl.read_parquet(task.spec["path"], columns=["doc_id", "text"])
    tokenizer_json = task.spec["tokenizer"].read_text(encoding="utf-8")
    encoded = encode_documents(documents, tokenizer_json, task.spec["end_of_document"])
    writer = task.writer()
    writer.write_arrow("tokens", encoded)
    num_tokens = int(encoded["tokens"].list.len().cast(pl.UInt64).sum())
    rows = documents.height
    stats = Stats(
        rows_in=rows,
        rows_kept=rows,
        tokens=num_tokens,
        bytes=num_tokens * token_bytes(encoded.schema["tokens"]),
        text_bytes=int(documents["text"].str.len_bytes().sum()),
    )
    return [writer.publish(stats)]


def token_bytes(tokens: pl.DataType) -> int:
    """Bytes of one token id in a list column."""
    return 2 if tokens == pl.List(pl.UInt16) else 4
