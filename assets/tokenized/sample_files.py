"""The documents of the training sample, read a part at a time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

import polars as pl

from assets.deduped.deduped_records import DEDUPED, DedupedManifest
from assets.deduped.document_files import KeptDocuments, kept_documents, read_kept_ids, read_some
from assets.text.chat_messages import without_marks
from assets.text.table_rows import count_bytes
from assets.tokenized.tokenized_records import SampledParts
from assets.tokenized.training_sample import SAMPLED_CHARS, is_sampled, sample_quotas, wider_share
from resources.corpus import Corpus
from resources.settings.tokenizer import TokenizerConfig
from resources.store.store import StoreError


class SampledSource(NamedTuple):
    """Source of the training sample: its size in bytes and the files of its documents.

    `is_chat`: they are conversations, whose characters for roles are no text.
    """

    name: str
    available: int
    files: list[KeptDocuments]
    is_chat: bool = False


class Draw(NamedTuple):
    """What to take of a source: the documents of a share that were not in an earlier, smaller one.

    Of each document the first `most_chars` characters.
    """

    source: SampledSource
    share: float
    earlier: float
    most_chars: int


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
        files = [kept_documents(corpus.store, manifest, part) for part in parts]
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
    Parts are read side by side, by as many threads as Polars has.

    Out: doc_id String, text String (the beginning of a long one), lang String.
    """
    available = {source.name: source.available for source in sources}
    with ThreadPoolExecutor(pl.thread_pool_size()) as pool:
        while draws := next_draws(sources, sample_quotas(available, config), drawn):
            parts = [(draw, file) for draw in draws for file in draw.source.files]
            read = pool.map(read_draw, *zip(*parts, strict=True), repeat(config.seed))
            for (draw, _), documents in zip(parts, read, strict=True):
                if not documents.is_empty():
                    drawn[draw.source.name].documents += documents.height
                    drawn[draw.source.name].bytes += count_bytes(documents["text"])
                    yield draw.source.name, documents
            for draw in draws:
                taken = drawn[draw.source.name]
                taken.share = draw.share
                if taken.share >= 1:
                    available[draw.source.name] = taken.bytes


def next_draws(
    sources: Sequence[SampledSource], quotas: Mapping[str, int], drawn: Mapping[str, Drawn]
) -> list[Draw]:
    """Return what to draw next, given the bytes wanted of each source and what it gave so far."""
    draws = []
    for source in sources:
        taken, quota = drawn[source.name], quotas[source.name]
        share = wider_share(taken.share, taken.bytes, quota, source.available)
        if share > taken.share:
            most_chars = min(SAMPLED_CHARS, quota - taken.bytes)
            draws.append(Draw(source, share, taken.share, most_chars))
    return draws


def read_draw(draw: Draw, files: KeptDocuments, seed: int) -> pl.DataFrame:
    """Read the documents of a part that are in the share of a draw and not in the earlier one."""
    doc_ids = read_kept_ids(files)
    is_new = is_sampled(doc_ids, draw.share, seed) & ~is_sampled(doc_ids, draw.earlier, seed)
    if not is_new.any():  # so in most parts of a large corpus: their texts are not read
        return pl.DataFrame(schema=dict.fromkeys(("doc_id", "text", "lang"), pl.String))
    drawn = read_some(files, doc_ids.filter(is_new), ["doc_id", "text", "lang"])
    if draw.source.is_chat:
        drawn = drawn.with_columns(text=without_marks(drawn["text"]))
    return compact(drawn.with_columns(pl.col("text").str.slice(0, draw.most_chars)))


def compact(documents: pl.DataFrame) -> pl.DataFrame:
    """Copy documents, which otherwise keep the texts of their whole part in memory."""
    copied = pl.from_arrow(documents.to_arrow())
    assert isinstance(copied, pl.DataFrame)
    return copied
