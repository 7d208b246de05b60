"""Asset `tokenized`: token ids of every document, from the tokenizer of the corpus."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from assets.deduped.asset import DEDUPED
from assets.text.table_rows import count_bytes
from assets.tokenized.encode_documents import (
    NO_TOKENS,
    TokenFormat,
    count_ids,
    doc_index,
    encode_documents,
)
from assets.tokenized.encoders import load_encoders
from assets.tokenized.report import (
    SHOWN_FAILURES,
    fertility_by_source,
    report_markdown,
    round_trip_markdown,
    text_numbers,
    totals,
    vocabulary_numbers,
)
from assets.tokenized.round_trip import round_trip
from assets.tokenized.tokenizer import TokenizerError
from assets.tokenized.tokenizer_asset import TOKENIZER
from resources.corpus import Corpus
from resources.stage import Conclusion, HistoryCheck, Stage
from resources.store.disk import map_array
from resources.store.records import Manifest, PartRecord, Stats, required_file
from resources.tasks import GLOBAL, MadeBy, Plan, Task, part_task

ROUND_TRIP_CHECK = HistoryCheck(
    name="round_trip",
    number="round_trip_failures",
    description="the ids of documents decode to their text",
    has_jumped=lambda corpus, failures, earlier: (failures > 0, {"failures": failures}),
)
ABOUT = (
    "tokenizer_fingerprint",
    "vocab_size",
    "token_dtype",
    "end_of_document",
    "end_of_document_id",
    "begin_of_document",
    "begin_of_document_id",
)


def plan_tokenized(corpus: Corpus, source: str) -> Plan:
    """Plan one task per deduped part."""
    manifest = corpus.store.newest("deduped", source)
    made = corpus.store.newest("tokenizer", GLOBAL)
    extra = made.parts[0].stats.numbers
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
        payload={"tokenizer": path, "form": form, "is_trained": made.config["path"] is None},
    )
    tasks = [part_task(corpus, manifest, part, "documents", made_by) for part in manifest.parts]
    return Plan(tasks, made_by.config, {"deduped": manifest.fingerprint, **about})


def encode_part(task: Task) -> list[PartRecord]:
    """Encode one part; publish its ids, an index of its documents and the count of each id."""
    form: TokenFormat = task.payload["form"]
    documents = pl.read_parquet(task.payload["path"], columns=["doc_id", "text", "lang"])
    encoders = load_encoders(task.payload["tokenizer"].read_text(encoding="utf-8"))
    encoded = encode_documents(documents, encoders, form)
    used = count_ids(encoded["tokens"], form.vocab_size)
    compared, failed = round_trip(documents, encoded, encoders, form)
    if failed and task.payload["is_trained"]:
        raise TokenizerError(
            f"{len(failed):,} of {compared:,} documents of {task.partition}/{task.name} do not "
            f"decode to their text, the first {failed[0]}: a tokenizer that is trained here loses "
            "nothing, so its file is damaged or an encoder is wrong. Please report it."
        )
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
        text_bytes=count_bytes(documents["text"]),
        numbers={
            **text_numbers(documents, encoded, form.num_marks),
            "round_trip_documents": compared,
            "round_trip_failures": len(failed),
            "round_trip_failed": dict.fromkeys(failed[:SHOWN_FAILURES], 1),
        },
    )
    return [writer.publish(stats)]


def describe_tokenized(corpus: Corpus, manifest: Manifest) -> Mapping[str, Any]:
    """Report text per token, use of the vocabulary, and the result of the round trip."""
    files = [required_file(manifest, part, "vocabulary") for part in manifest.parts]
    used = np.zeros(manifest.provenance["vocab_size"], np.uint64)
    for file in files:
        used += map_array(corpus.store.path_of(manifest, file), np.uint64, used.shape)
    extra = manifest.stats.numbers
    in_bytes, in_chars, _ = totals(extra)
    return {
        **report_markdown(extra, used),
        **vocabulary_numbers(used),
        "bytes_per_token": in_bytes,
        "chars_per_token": in_chars,
        "round_trip": round_trip_markdown(extra),
        "round_trip_failures": extra.get("round_trip_failures", 0),
    }


def counts_by_source(corpus: Corpus, source: str) -> dict[str, Mapping[str, Any]]:
    """Published counts of every source that was encoded with the tokenizer of `source`."""
    about = corpus.store.newest(TOKENIZED.name, source).provenance
    counts: dict[str, Mapping[str, Any]] = {}
    for name in corpus.settings.source_names():
        newest = corpus.store.partition(TOKENIZED.name, name).newest_manifest()
        if (
            newest is not None
            and newest.code_version == TOKENIZED.code_version
            and newest.provenance["tokenizer_fingerprint"] == about["tokenizer_fingerprint"]
        ):
            counts[name] = newest.stats.numbers
    return counts


def token_bytes(tokens: pl.DataType) -> int:
    """Bytes of one token id in a list column."""
    return 2 if tokens == pl.List(pl.UInt16) else 4


def compare_fertility(corpus: Corpus, manifest: Manifest) -> Conclusion:
    """Compare the text per token of all sources: it does not depend on their order in the run."""
    counts = counts_by_source(corpus, manifest.partition)
    return Conclusion(metadata={"fertility_by_source": fertility_by_source(counts)})


TOKENIZED = Stage(
    name="tokenized",
    code_version="2",
    description="Token ids of every document, the end-of-document id last.",
    partitions="source",
    after=(DEDUPED, TOKENIZER),
    kinds=frozenset({"arrow"}),
    provenance=dict,
    numbers=dict,
    plan=plan_tokenized,
    work=encode_part,
    preload=("tokenizers", "pyarrow.parquet"),
    describe=describe_tokenized,
    check=ROUND_TRIP_CHECK,
    conclude=compare_fertility,
)
