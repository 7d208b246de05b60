"""tokenizer: one for the whole corpus, trained on a sample of it or loaded from a file."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import polars as pl

from assets.deduped import deduped
from assets.transforms.tokenizer import (
    TokenizerConfig,
    canonical_json,
    is_sampled,
    read_tokenizer,
    token_dtype,
    tokenizer_fingerprint,
    train_bpe,
    vocabulary_size,
)
from resources.corpus import Corpus, Plan, Task, required_file
from resources.records import PartRecord, Stats, fingerprint_of
from resources.stages import Stage, run_stage, stage_asset
from resources.store import hash_file

TOKENIZER = Stage("tokenizer", code_version="1")
SAMPLED_CHARS = 200_000  # of one document: a book of 40 MB would be most of a sample of 10 MB


@stage_asset(TOKENIZER, deps=[deduped], partitions=None, kinds={"huggingface"})
def tokenizer(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """The byte-level BPE of the whole corpus: trained on a seeded sample, or loaded."""
    return run_stage(context, TOKENIZER, plan_tokenizer, make_tokenizer)


def plan_tokenizer(corpus: Corpus, partition: str) -> Plan:
    """One task; a loaded tokenizer depends on its file alone, a trained one on every document."""
    config = corpus.settings.tokenizer
    dump = config.model_dump(mode="json")
    manifests = [corpus.store.newest("deduped", s) for s in corpus.settings.source_names()]
    inputs: list[str] = []
    paths: list[Path] = []
    if config.path is not None:
        paths = [corpus.config.parent / config.path]
        inputs = [hash_file(paths[0])[0]]
    else:
        for manifest in manifests:
            files = [required_file(manifest, part, "documents") for part in manifest.parts]
            paths += [corpus.store.path_of(manifest, file) for file in files]
            inputs += [part.fingerprint for part in manifest.parts]
    total_bytes = sum(manifest.stats.bytes for manifest in manifests)
    task = Task(
        root=corpus.store.root,
        stage=TOKENIZER.name,
        partition=partition,
        name="tokenizer",
        fingerprint=fingerprint_of(TOKENIZER.name, TOKENIZER.code_version, dump, inputs),
        work_bytes=total_bytes if config.path is None else 0,
        spec={"config": config, "paths": paths, "total_bytes": total_bytes},
    )
    return Plan([task], dump)


def make_tokenizer(task: Task) -> list[PartRecord]:
    """Train or load, check, and publish the canonical tokenizer.json."""
    config: TokenizerConfig = task.spec["config"]
    sampled: list[int] = [0, 0]
    if config.path is not None:
        content = task.spec["paths"][0].read_text(encoding="utf-8", errors="replace")
        tokenizer_json = canonical_json(content)
    else:
        share = min(1.0, config.sample_bytes / max(1, task.spec["total_bytes"]))
        texts = sample_texts(task.spec["paths"], share, config.seed, sampled)
        tokenizer_json = train_bpe(texts, config)
    loaded, end_id = read_tokenizer(tokenizer_json, config.end_of_document)
    vocab_size = vocabulary_size(loaded)
    writer = task.writer()
    writer.write_text("tokenizer", "json", tokenizer_json)
    extra = {
        "tokenizer_fingerprint": tokenizer_fingerprint(tokenizer_json),
        "vocab_size": vocab_size,
        "end_of_document": config.end_of_document,
        "end_of_document_id": end_id,
        "token_dtype": str(token_dtype(vocab_size)).lower(),
    }
    rows, text_bytes = sampled
    return [writer.publish(Stats(rows, rows, bytes=text_bytes, text_bytes=text_bytes, extra=extra))]


def sample_texts(
    paths: list[Path], share: float, seed: int, sampled: list[int]
) -> Iterator[list[str]]:
    """Texts of the sampled documents, a part at a time; adds up rows and bytes in `sampled`."""
    for path in paths:
        documents = pl.read_parquet(path, columns=["doc_id", "text"])
        texts = documents.filter(is_sampled(documents["doc_id"], share, seed))["text"]
        texts = texts.str.slice(0, SAMPLED_CHARS)
        sampled[0] += len(texts)
        sampled[1] += int(texts.str.len_bytes().sum())
        yield texts.to_list()
