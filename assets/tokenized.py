"""tokenized: token ids of every document, made by the corpus's one tokenizer."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
import numpy as np
import polars as pl

from assets.deduped import deduped
from assets.tokenizer import tokenizer
from assets.transforms.encoders import load_encoders
from assets.transforms.tokenized import (
    NO_TOKENS,
    TokenFormat,
    count_ids,
    doc_index,
    encode_documents,
    round_trip,
)
from assets.transforms.tokenizer_report import (
    SHOWN_FAILURES,
    report_markdown,
    round_trip_markdown,
    text_numbers,
    totals,
    vocabulary_numbers,
)
from pipeline_defs.partitions import SOURCES
from resources.corpus import GLOBAL, Corpus, MadeBy, Plan, Task, part_task, required_file
from resources.history_check import HistoryCheck
from resources.records import Manifest, PartRecord, Stats
from resources.stages import Stage, run_stage, stage_asset
from resources.store import map_array

ROUND_TRIP_CHECK = HistoryCheck(
    name="round_trip",
    number="round_trip_failures",
    description="the ids of a seeded sample of every part's documents decode to their text",
    has_jumped=lambda corpus, failures, earlier: (failures > 0, {"failures": failures}),
)
TOKENIZED = Stage("tokenized", code_version="2", check=ROUND_TRIP_CHECK)
ABOUT = (
    "tokenizer_fingerprint",
    "vocab_size",
    "token_dtype",
    "end_of_document",
    "end_of_document_id",
    "begin_of_document",
    "begin_of_document_id",
)


@stage_asset(TOKENIZED, deps=[deduped, tokenizer], partitions=SOURCES, kinds={"arrow"})
def tokenized(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """Token ids of every document, the end-of-document id last."""
    return run_stage(context, TOKENIZED, plan_tokenized, encode_part, describe=describe_tokenized)


def plan_tokenized(corpus: Corpus, source: str) -> Plan:
    """One task per deduped part, made by the corpus's tokenizer."""
    manifest = corpus.store.newest("deduped", source)
    made = corpus.store.newest("tokenizer", GLOBAL)
    extra = made.parts[0].stats.extra
    about: dict[str, Any] = {key: extra.get(key) for key in ABOUT}
    offsets = corpus.settings.tokenizer.offsets
    ends = {key: about[key] for key in ("begin_of_document", "end_of_document")}
    form = TokenFormat(
        about["vocab_size"], about["end_of_document_id"], about["begin_of_document_id"], offsets
    )
    path = corpus.store.path_of(made, required_file(made, made.parts[0], "tokenizer"))
    made_by = MadeBy(
        TOKENIZED.name,
        TOKENIZED.code_version,
        {**ends, "offsets": offsets},
        inputs=(about["tokenizer_fingerprint"],),
        spec={"tokenizer": path, "form": form},
    )
    tasks = [part_task(corpus, manifest, part, "documents", made_by) for part in manifest.parts]
    return Plan(tasks, made_by.config, {"deduped": manifest.fingerprint, **about})


def encode_part(task: Task) -> list[PartRecord]:
    """Encode one part; publish its ids, what finds a document, and how often each id occurs."""
    form: TokenFormat = task.spec["form"]
    documents = pl.read_parquet(task.spec["path"], columns=["doc_id", "text", "lang"])
    encoders = load_encoders(task.spec["tokenizer"].read_text(encoding="utf-8"))
    encoded = encode_documents(documents, encoders, form)
    used = count_ids(encoded["tokens"], form.vocab_size)
    decodes = round_trip(documents, encoded, encoders, form)
    failed = [doc_id for doc_id, is_equal in decodes.items() if not is_equal]
    writer = task.writer()
    writer.write_arrow("tokens", encoded)
    writer.write_arrays("doc_index", *doc_index(documents["doc_id"]))
    writer.write_arrays("vocabulary", used)
    num_tokens, rejected = int(used.sum()), documents.height - encoded.height
    stats = Stats(
        rows_in=documents.height,
        rows_kept=encoded.height,
        rejected={NO_TOKENS: rejected} if rejected else {},
        tokens=num_tokens,
        bytes=num_tokens * token_bytes(encoded.schema["tokens"]),
        text_bytes=int(documents["text"].str.len_bytes().sum()),
        extra={
            **text_numbers(documents, encoded, form.num_marks),
            "round_trip_documents": len(decodes),
            "round_trip_failures": len(failed),
            "round_trip_failed": dict.fromkeys(failed[:SHOWN_FAILURES], 1),
        },
    )
    return [writer.publish(stats)]


def describe_tokenized(corpus: Corpus, manifest: Manifest) -> Mapping[str, Any]:
    """Text per token, how the vocabulary is used, and whether the ids decode to the text."""
    files = [required_file(manifest, part, "vocabulary") for part in manifest.parts]
    used = np.zeros(manifest.about["vocab_size"], np.uint64)
    for file in files:
        used += map_array(corpus.store.path_of(manifest, file), np.uint64, used.shape)
    extra = manifest.stats.extra
    in_bytes, in_chars, _ = totals(extra)
    return {
        **report_markdown(counts_by_source(corpus, manifest), manifest.partition, used),
        **vocabulary_numbers(used),
        "bytes_per_token": in_bytes,
        "chars_per_token": in_chars,
        "round_trip": round_trip_markdown(extra),
        "round_trip_failures": extra.get("round_trip_failures", 0),
    }


def counts_by_source(corpus: Corpus, manifest: Manifest) -> dict[str, Mapping[str, Any]]:
    """The numbers of every source that this tokenizer has encoded so far."""
    found: dict[str, Mapping[str, Any]] = {}
    for source in corpus.settings.source_names():
        newest = corpus.store.partition(TOKENIZED.name, source).newest_manifest()
        if newest and newest.code_version == TOKENIZED.code_version:
            fingerprint = newest.about["tokenizer_fingerprint"]
            if fingerprint == manifest.about["tokenizer_fingerprint"]:
                found[source] = newest.stats.extra
    return found


def token_bytes(tokens: pl.DataType) -> int:
    """Bytes of one token id in a list column."""
    return 2 if tokens == pl.List(pl.UInt16) else 4
