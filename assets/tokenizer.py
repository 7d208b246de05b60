"""tokenizer: one for the whole corpus, trained on a sample of it or loaded from a file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import dagster as dg
import msgspec
import polars as pl

from assets.deduped import deduped
from assets.transforms.tokenizer import (
    TokenizerConfig,
    TokenizerError,
    about_tokenizer,
    canonical_json,
    is_sampled,
    sample_quotas,
    train_bpe,
)
from resources.corpus import Corpus, Plan, Task, required_file
from resources.records import Manifest, PartRecord, Stats, fingerprint_of
from resources.stages import Stage, run_stage, stage_asset
from resources.store import hash_file

TOKENIZER = Stage("tokenizer", code_version="2")
SAMPLED_CHARS = 200_000  # of one document: a book of 40 MB would be most of a sample of 10 MB


class SampledSource(NamedTuple):
    """A source of the training sample: bytes to take, bytes there are, files of documents."""

    name: str
    quota: int
    available: int
    paths: list[Path]


@stage_asset(TOKENIZER, deps=[deduped], partitions=None, kinds={"huggingface"})
def tokenizer(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """The byte-level BPE of the whole corpus: trained on a seeded sample, or loaded."""
    return run_stage(context, TOKENIZER, plan_tokenizer, make_tokenizer)


def plan_tokenizer(corpus: Corpus, partition: str) -> Plan:
    """One task; a loaded tokenizer depends on its file alone, a trained one on what it samples."""
    config = corpus.settings.tokenizer
    dump = config.model_dump(mode="json", exclude={"offsets", "trainer"})  # the same tokenizer
    inputs: list[Any] = []
    spec: dict[str, Any] = {"config": config, "sources": []}
    if config.path is not None:
        spec["path"] = corpus.config.parent / config.path
        inputs = [hash_file(spec["path"])[0]]
    else:
        names = [
            name for name in corpus.settings.source_names() if name in (config.weights or [name])
        ]
        manifests = [corpus.store.newest("deduped", name) for name in names]
        inputs = [[m.partition, *(part.fingerprint for part in m.parts)] for m in manifests]
        spec["sources"] = sampled_sources(corpus, manifests)
    task = Task(
        root=corpus.store.root,
        stage=TOKENIZER.name,
        partition=partition,
        name="tokenizer",
        fingerprint=fingerprint_of(TOKENIZER.name, TOKENIZER.code_version, dump, inputs),
        work_bytes=sum(source.available for source in spec["sources"]),
        spec=spec,
    )
    return Plan([task], dump)


def sampled_sources(corpus: Corpus, manifests: list[Manifest]) -> list[SampledSource]:
    """What the sample takes of the documents that `deduped` published."""
    available = {manifest.partition: manifest.stats.bytes for manifest in manifests}
    quotas = sample_quotas(available, corpus.settings.tokenizer)
    sources = []
    for manifest in manifests:
        files = [required_file(manifest, part, "documents") for part in manifest.parts]
        paths = [corpus.store.path_of(manifest, file) for file in files]
        name = manifest.partition
        sources.append(SampledSource(name, quotas[name], available[name], paths))
    return sources


def make_tokenizer(task: Task) -> list[PartRecord]:
    """Train or load, check, and publish the canonical tokenizer.json."""
    config: TokenizerConfig = task.spec["config"]
    if config.path is not None:
        content = task.spec["path"].read_text(encoding="utf-8", errors="replace")
        tokenizer_json, stats = canonical_json(content), Stats()
    else:
        tokenizer_json, stats = train_on_sample(task.spec["sources"], config)
    about = about_tokenizer(tokenizer_json, config)
    if config.path is None:
        about["entries_unfilled"] = config.vocab_size - about["vocab_size"]
    writer = task.writer()
    writer.write_text("tokenizer", "json", tokenizer_json)
    return [writer.publish(msgspec.structs.replace(stats, extra={**about, **stats.extra}))]


def train_on_sample(sources: list[SampledSource], config: TokenizerConfig) -> tuple[str, Stats]:
    """(tokenizer.json, what the sample took): texts are read a part at a time."""
    drawn = {source.name: [0, 0] for source in sources}
    tokenizer_json = train_bpe(sample_texts(sources, config.seed, drawn), config)
    rows, text_bytes = (sum(numbers[i] for numbers in drawn.values()) for i in range(2))
    if rows == 0:
        available = sum(source.available for source in sources)
        raise TokenizerError(
            f"no document to train the tokenizer on: a sample of {config.sample_bytes:,} bytes of "
            f"{', '.join(drawn)} ({available:,} bytes). Raise tokenizer.sample_bytes if there are "
            "documents; else see `corpus summary` for where they went."
        )
    extra = {
        "sample_documents": {name: numbers[0] for name, numbers in drawn.items()},
        "sample_bytes": {name: numbers[1] for name, numbers in drawn.items()},
        "sample_wanted_bytes": {source.name: source.quota for source in sources},
        "sample_takes_all_of": [s.name for s in sources if s.quota == s.available],
    }
    return tokenizer_json, Stats(rows, rows, bytes=text_bytes, text_bytes=text_bytes, extra=extra)


def sample_texts(
    sources: list[SampledSource], seed: int, drawn: dict[str, list[int]]
) -> Iterator[pl.Series]:
    """Texts of the sampled documents, a part at a time; adds documents and bytes to `drawn`."""
    for source in sources:
        share = source.quota / max(1, source.available)
        for path in source.paths:
            is_taken = is_sampled(pl.read_parquet(path, columns=["doc_id"])["doc_id"], share, seed)
            if not is_taken.any():  # most parts of a large corpus: their texts are not read
                continue
            texts = pl.read_parquet(path, columns=["text"])["text"].filter(is_taken)
            texts = texts.str.slice(0, SAMPLED_CHARS)
            drawn[source.name][0] += len(texts)
            drawn[source.name][1] += int(texts.str.len_bytes().sum())
            yield texts
