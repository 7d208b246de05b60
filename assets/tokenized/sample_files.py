"""The documents of the training sample, read a part at a time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from assets.deduped.asset import DEDUPED, DedupedManifest
from assets.text.chat_messages import without_marks
from assets.text.table_rows import count_bytes
from assets.tokenized.token_facts import SampledParts
from assets.tokenized.training_sample import SAMPLED_CHARS, is_sampled, sample_quotas, wider_share
from resources.corpus import Corpus
from resources.settings.tokenizer import TokenizerConfig
from resources.store.published import PublishedFile
from resources.store.records import required_file
from resources.store.store import StoreError


class SampledSource(NamedTuple):
    """Source of the training sample: its size in bytes and the files of its documents.

    `is_chat`: they are conversations, whose characters for roles are no text.
    """

    name: str
    available: int
    files: list[PublishedFile]
    is_chat: bool = False


@dataclass
class Drawn:
    """Part of a source that the sample has taken: share, number and bytes of its documents."""

    share: float = 0.0
    documents: int = 0
    bytes: int = 0


def sampled_sources(
    corpus: Corpus, sample: Iterable[SampledParts], states: Mapping[str, DedupedManifest]
) -> list[SampledSource]:
    """Return the sources of a sample, whose parts are all in these states of `deduped`."""
    sources = []
    for wanted in sample:
        manifest = states[wanted.source]
        by_fingerprint = {part.fingerprint: part for part in manifest.parts}
        parts = [by_fingerprint[fingerprint] for fingerprint in wanted.parts]
        files = [
            corpus.store.file_of(manifest, required_file(manifest, part, "documents"))
            for part in parts
        ]
        is_chat = corpus.settings.is_chat(wanted.source)
        num_bytes = sum(part.stats.bytes for part in parts)
        sources.append(SampledSource(wanted.source, num_bytes, files, is_chat))
    return sources


def sources_as_then(corpus: Corpus, sample: Iterable[SampledParts]) -> list[SampledSource]:
    """Return the sources of a sample that was drawn earlier; none if a part is no longer there."""
    states: dict[str, DedupedManifest] = {}
    for wanted in sample:
        try:
            newest = corpus.store.newest(DEDUPED, wanted.source)
        except StoreError:
            return []
        if not {*wanted.parts} <= {part.fingerprint for part in newest.parts}:
            return []
        states[wanted.source] = newest
    return sampled_sources(corpus, sample, states)


def sample_documents(
    sources: Sequence[SampledSource], config: TokenizerConfig, drawn: dict[str, Drawn]
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield (source, sampled documents), a part at a time, and add them up in `drawn`.

    Sampling goes in rounds, usually one: a source that gave too little is read again with a wider
    share, for the documents not yet taken. What an exhausted source lacks is split over the others.

    Out: doc_id String, text String (the beginning of a long one), lang String.
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
                for documents in documents_between(source, share, config.seed, taken.share):
                    heads = compact(documents.with_columns(pl.col("text").str.slice(0, most_chars)))
                    taken.documents += heads.height
                    taken.bytes += count_bytes(heads["text"])
                    yield source.name, heads
                taken.share = share
            if share >= 1:
                available[source.name] = taken.bytes


def documents_between(
    source: SampledSource, share: float, seed: int, earlier: float
) -> Iterator[pl.DataFrame]:
    """Yield the documents in `share` that were not in the smaller share `earlier`, by part."""
    for path in (file.checked() for file in source.files):
        doc_ids = pl.read_parquet(path, columns=["doc_id"])["doc_id"]
        is_new = is_sampled(doc_ids, share, seed) & ~is_sampled(doc_ids, earlier, seed)
        if is_new.any():  # not so in most parts of a large corpus: their texts are not read
            wanted = pl.col("doc_id").is_in(doc_ids.filter(is_new).implode())
            texts = pl.scan_parquet(path, parallel="prefiltered")  # decodes no text but those
            drawn = texts.select("doc_id", "text", "lang").filter(wanted).collect()
            is_text = not source.is_chat
            yield drawn if is_text else drawn.with_columns(text=without_marks(drawn["text"]))


def compact(documents: pl.DataFrame) -> pl.DataFrame:
    """Copy documents, which otherwise keep the texts of their whole part in memory."""
    copied = pl.from_arrow(documents.to_arrow())
    assert isinstance(copied, pl.DataFrame)
    return copied
