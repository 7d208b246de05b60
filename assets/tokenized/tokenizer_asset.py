"""Asset `tokenizer`: one for the whole corpus, trained on a sample of it or loaded from a file."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import polars as pl
from msgspec import UNSET
from msgspec.structs import asdict

from assets.deduped.asset import DEDUPED
from assets.text.table_rows import count_bytes
from assets.tokenized.token_facts import MarkedTokenFacts, TokenizerNumbers
from assets.tokenized.tokenizer import TokenizerError, canonical_json, token_facts, train_bpe
from assets.tokenized.training_sample import (
    SAMPLED_CHARS,
    is_sampled,
    sample_quotas,
    sample_warnings,
    wanted_bytes,
    wider_share,
)
from resources.corpus import Corpus
from resources.settings.named_files import check_named_file, read_named_file
from resources.settings.tokenizer import TokenizerConfig
from resources.source_states import usable_states
from resources.stage import Conclusion, Stage
from resources.store.disk import hash_file
from resources.store.published import PublishedFile
from resources.store.records import Empty, Manifest, PartRecord, Stats, required_file
from resources.tasks import Plan, Task, tasks_of

MOST_FILE_BYTES = 64 << 20  # Gemma's has 33 MB; parsing takes ten times as much memory


class SampledSource(NamedTuple):
    """Source of the training sample: its size in bytes and the files of its documents."""

    name: str
    available: int
    files: list[PublishedFile]


@dataclass
class Drawn:
    """Part of a source that the sample has taken: share, number and bytes of its documents."""

    share: float = 0.0
    documents: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class TokenizerInputs:
    """Input of the one task: the file to load, or the sources to train on if `path` is None."""

    config: TokenizerConfig
    path: Path | None
    sources: list[SampledSource]


def plan_tokenizer(corpus: Corpus, partition: str) -> Plan:
    """Plan one task; a loaded tokenizer depends on its file, a trained one on its sources."""
    config = corpus.settings.tokenizer
    dump = config.model_dump(mode="json", exclude={"offsets"})  # offsets do not change it
    if config.path is not None:
        path = corpus.config.parent / config.path
        inputs = TokenizerInputs(config, path, [])
        left_out: dict[str, str] = {}
        check_named_file(path, MOST_FILE_BYTES)
        fingerprints: list[str] | list[list[str]] = [hash_file(path)[0]]
    else:
        names = [
            name for name in corpus.settings.source_names() if name in (config.weights or [name])
        ]
        states, left_out = usable_states(names, lambda name: corpus.store.newest(DEDUPED, name))
        manifests = list(states.values())
        inputs = TokenizerInputs(config, None, sampled_sources(corpus, manifests))
        fingerprints = [[m.partition, *(part.fingerprint for part in m.parts)] for m in manifests]
    task = tasks_of(corpus, TOKENIZER, partition).task(
        "tokenizer",
        [dump, fingerprints],
        inputs,
        work_bytes=sum(source.available for source in inputs.sources),
    )
    return Plan([task], dump, Empty(), left_out)


def sampled_sources(corpus: Corpus, manifests: list[Manifest]) -> list[SampledSource]:
    """Sources to sample, as `deduped` published them."""
    sources = []
    for manifest in manifests:
        files = [required_file(manifest, part, "documents") for part in manifest.parts]
        documents = [corpus.store.file_of(manifest, file) for file in files]
        sources.append(SampledSource(manifest.partition, manifest.stats.bytes, documents))
    return sources


def make_tokenizer(task: Task[TokenizerInputs]) -> list[PartRecord]:
    """Train or load, check, and publish the canonical tokenizer.json."""
    config = task.payload.config
    if task.payload.path is None:
        tokenizer_json, drawn = train_on_sample(task.payload.sources, config)
        stats = trained_stats(task.payload, token_facts(tokenizer_json, config), drawn)
    else:
        tokenizer_json, loaded = load_tokenizer(task.payload.path, config)
        stats = Stats(numbers=TokenizerNumbers(**asdict(loaded)))
    writer = task.writer()
    writer.write_text("tokenizer", "json", tokenizer_json)
    return [writer.publish(stats)]


def load_tokenizer(path: Path, config: TokenizerConfig) -> tuple[str, MarkedTokenFacts]:
    """Load (canonical tokenizer.json, facts for later stages); TokenizerError names the file."""
    try:
        tokenizer_json = canonical_json(read_named_file(path, MOST_FILE_BYTES).decode())
        return tokenizer_json, token_facts(tokenizer_json, config)
    except UnicodeDecodeError as error:
        raise TokenizerError(
            f"{path}: not a tokenizer.json: not UTF-8 ({error}). Check tokenizer.path, and save "
            "the file as UTF-8."
        ) from None
    except TokenizerError as error:
        raise TokenizerError(f"{path}: {error}") from error


def trained_stats(
    inputs: TokenizerInputs, trained: MarkedTokenFacts, drawn: dict[str, Drawn]
) -> Stats[TokenizerNumbers]:
    """Count the sample that a tokenizer was trained on, and the entries that it left unfilled."""
    available = {source.name: source.available for source in inputs.sources}
    rows = sum(taken.documents for taken in drawn.values())
    text_bytes = sum(taken.bytes for taken in drawn.values())
    numbers = TokenizerNumbers(
        **asdict(trained),
        entries_unfilled=inputs.config.vocab_size - trained.vocab_size,
        sample_documents={name: taken.documents for name, taken in drawn.items()},
        sample_bytes={name: taken.bytes for name, taken in drawn.items()},
        sample_wanted_bytes=wanted_bytes(available, inputs.config),
        sample_takes_all_of=[name for name, taken in drawn.items() if taken.share >= 1],
    )
    return Stats(rows, rows, bytes=text_bytes, text_bytes=text_bytes, numbers=numbers)


def train_on_sample(
    sources: list[SampledSource], config: TokenizerConfig
) -> tuple[str, dict[str, Drawn]]:
    """Train on the sample, read a part at a time; return (tokenizer.json, what was drawn)."""
    drawn = {source.name: Drawn() for source in sources}
    tokenizer_json = train_bpe(sample_texts(sources, config, drawn), config)
    if not any(taken.documents for taken in drawn.values()):
        available = sum(source.available for source in sources)
        raise TokenizerError(
            f"no document to train the tokenizer on: a sample of {config.sample_bytes:,} bytes of "
            f"{', '.join(drawn)} ({available:,} bytes). Raise tokenizer.sample_bytes "
            "if there are documents; else see `corpus summary` for where they went."
        )
    return tokenizer_json, drawn


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
    for path in (file.checked() for file in source.files):
        doc_ids = pl.read_parquet(path, columns=["doc_id"])["doc_id"]
        is_new = is_sampled(doc_ids, share, seed) & ~is_sampled(doc_ids, earlier, seed)
        if is_new.any():  # not so in most parts of a large corpus: their texts are not read
            yield pl.read_parquet(path, columns=["text"])["text"].filter(is_new)


def warn_of_sample(corpus: Corpus, manifest: Manifest[Empty, TokenizerNumbers]) -> Conclusion:
    """Warn of sources that had less text than their share of the sample."""
    numbers = manifest.parts[0].stats.numbers
    if numbers.sample_wanted_bytes is UNSET or numbers.sample_bytes is UNSET:
        return Conclusion()
    return Conclusion(sample_warnings(numbers.sample_wanted_bytes, numbers.sample_bytes))


TOKENIZER = Stage(
    name="tokenizer",
    code_version="3",
    description="The byte-level BPE of the whole corpus: trained on a seeded sample, or loaded.",
    group="tokenize",
    partitions="none",
    after=(DEDUPED,),
    kinds=frozenset({"huggingface"}),
    provenance=Empty,
    numbers=TokenizerNumbers,
    settings=lambda settings: settings.tokenizer.model_dump(mode="json", exclude={"offsets"}),
    plan=plan_tokenizer,
    work=make_tokenizer,
    conclude=warn_of_sample,
)
