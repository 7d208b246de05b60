"""Asset `tokenizer`: one for the whole corpus, trained on a sample of it or loaded from a file."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import polars as pl

from assets.deduped.asset import DEDUPED
from assets.text.table_rows import count_bytes
from assets.tokenized.tokenizer import TokenizerError, about_tokenizer, canonical_json, train_bpe
from assets.tokenized.training_sample import (
    SAMPLED_CHARS,
    is_sampled,
    sample_quotas,
    sample_warnings,
    wanted_bytes,
    wider_share,
)
from resources.corpus import Corpus
from resources.settings.tokenizer import TokenizerConfig
from resources.stage import Conclusion, Stage
from resources.store.disk import hash_file
from resources.store.records import Manifest, PartRecord, Stats, fingerprint_of, required_file
from resources.tasks import Plan, Task


class SampledSource(NamedTuple):
    """Source of the training sample: its size in bytes and the files of its documents."""

    name: str
    available: int
    paths: list[Path]


@dataclass
class Drawn:
    """Part of a source that the sample has taken: share, number and bytes of its documents."""

    share: float = 0.0
    documents: int = 0
    bytes: int = 0


def plan_tokenizer(corpus: Corpus, partition: str) -> Plan:
    """Plan one task; a loaded tokenizer depends on its file, a trained one on its sources."""
    config = corpus.settings.tokenizer
    dump = config.model_dump(mode="json", exclude={"offsets"})  # offsets do not change it
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
        payload=spec,
    )
    return Plan([task], dump)


def sampled_sources(corpus: Corpus, manifests: list[Manifest]) -> list[SampledSource]:
    """Sources to sample, as `deduped` published them."""
    sources = []
    for manifest in manifests:
        files = [required_file(manifest, part, "documents") for part in manifest.parts]
        paths = [corpus.store.path_of(manifest, file) for file in files]
        sources.append(SampledSource(manifest.partition, manifest.stats.bytes, paths))
    return sources


def make_tokenizer(task: Task) -> list[PartRecord]:
    """Train or load, check, and publish the canonical tokenizer.json."""
    config: TokenizerConfig = task.payload["config"]
    if config.path is None:
        tokenizer_json, stats = train_on_sample(task.payload["sources"], config)
        about = about_tokenizer(tokenizer_json, config)
        about["entries_unfilled"] = config.vocab_size - about["vocab_size"]
    else:
        tokenizer_json, about = load_tokenizer(task.payload["path"], config)
        stats = Stats()
    writer = task.writer()
    writer.write_text("tokenizer", "json", tokenizer_json)
    return [writer.publish(msgspec.structs.replace(stats, numbers={**about, **stats.numbers}))]


def load_tokenizer(path: Path, config: TokenizerConfig) -> tuple[str, dict[str, Any]]:
    """Load (canonical tokenizer.json, facts for later stages); TokenizerError names the file."""
    try:
        tokenizer_json = canonical_json(path.read_text(encoding="utf-8"))
        return tokenizer_json, about_tokenizer(tokenizer_json, config)
    except UnicodeDecodeError as error:
        raise TokenizerError(
            f"{path}: not a tokenizer.json: not UTF-8 ({error}). Check tokenizer.path, and save "
            "the file as UTF-8."
        ) from None
    except TokenizerError as error:
        raise TokenizerError(f"{path}: {error}") from error


def train_on_sample(sources: list[SampledSource], config: TokenizerConfig) -> tuple[str, Stats]:
    """Train on the sample, read a part at a time; return (tokenizer.json, counts of the sample)."""
    drawn = {source.name: Drawn() for source in sources}
    tokenizer_json = train_bpe(sample_texts(sources, config, drawn), config)
    rows = sum(taken.documents for taken in drawn.values())
    text_bytes = sum(taken.bytes for taken in drawn.values())
    available = {source.name: source.available for source in sources}
    if rows == 0:
        raise TokenizerError(
            f"no document to train the tokenizer on: a sample of {config.sample_bytes:,} bytes of "
            f"{', '.join(drawn)} ({sum(available.values()):,} bytes). Raise tokenizer.sample_bytes "
            "if there are documents; else see `corpus summary` for where they went."
        )
    extra = {
        "sample_documents": {name: taken.documents for name, taken in drawn.items()},
        "sample_bytes": {name: taken.bytes for name, taken in drawn.items()},
        "sample_wanted_bytes": wanted_bytes(available, config),
        "sample_takes_all_of": [name for name, taken in drawn.items() if taken.share >= 1],
    }
    return tokenizer_json, Stats(rows, rows, bytes=text_bytes, text_bytes=text_bytes, numbers=extra)


def sample_texts(
    sources: list[SampledSource], config: TokenizerConfig, drawn: dict[str, Drawn]
) -> Iterator[pl.Series]:
    """Yield the texts of the sampled documents, a part at a time, and add them up in `drawn`.

    Sampling goes in rounds, usually one: a source that gave too little is read again with a wider
    share, for the documents not yet taken. What an exhausted source lacks is split over the others.
    """
    available = {source.name: source.available for source in sources}
    is_open = True
    while is_open:
        is_open = False
        quotas = sample_quotas(available, config)
        for source in sources:
            taken, quota = drawn[source.name], quotas[source.name]
            share = wider_share(taken.share, taken.bytes, quota, source.available)
            if share > taken.share:
                is_open = True
                most_chars = min(SAMPLED_CHARS, quota - taken.bytes)
                for texts in texts_between(source, share, config.seed, taken.share):
                    heads = texts.str.slice(0, most_chars)
                    taken.documents += len(heads)
                    taken.bytes += count_bytes(heads)
                    yield heads
                taken.share = share
            if share >= 1:
                available[source.name] = taken.bytes


def texts_between(
    source: SampledSource, share: float, seed: int, earlier: float
) -> Iterator[pl.Series]:
    """Yield the texts of the documents in `share` that were not in the smaller share `earlier`."""
    for path in source.paths:
        doc_ids = pl.read_parquet(path, columns=["doc_id"])["doc_id"]
        is_new = is_sampled(doc_ids, share, seed) & ~is_sampled(doc_ids, earlier, seed)
        if is_new.any():  # not so in most parts of a large corpus: their texts are not read
            yield pl.read_parquet(path, columns=["text"])["text"].filter(is_new)


def warn_of_sample(corpus: Corpus, manifest: Manifest) -> Conclusion:
    """Warn of sources that had less text than their share of the sample."""
    numbers = manifest.parts[0].stats.numbers
    if "sample_bytes" not in numbers:
        return Conclusion()
    return Conclusion(sample_warnings(numbers["sample_wanted_bytes"], numbers["sample_bytes"]))


TOKENIZER = Stage(
    name="tokenizer",
    code_version="3",
    description="The byte-level BPE of the whole corpus: trained on a seeded sample, or loaded.",
    partitions="none",
    after=(DEDUPED,),
    kinds=frozenset({"huggingface"}),
    provenance=dict,
    numbers=dict,
    plan=plan_tokenizer,
    work=make_tokenizer,
    conclude=warn_of_sample,
)
