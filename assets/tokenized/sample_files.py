"""Training sample of the tokenizer: the bytes to take of each source, and the documents.

A document is taken if its key, a hash of its id, is below a share. The share that gives the wanted
bytes is not known beforehand, since only the beginning of a document counts and no stage stores
lengths. It starts at wanted / available bytes, which is right if no document is long, and is
widened according to what was drawn. Each text is read once, usually in the first round.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from assets.deduped.deduped_records import DEDUPED, DedupedManifest
from assets.deduped.document_files import KeptDocuments, kept_documents, read_kept_ids, read_some
from assets.text.chat_messages import without_marks
from assets.text.document_ids import doc_heads
from assets.text.table_rows import count_bytes
from assets.tokenized.tokenized_records import SampledParts
from corpus_loader.permutation import derive_key, mix64
from resources.corpus import Corpus
from resources.settings.tokenizer import TokenizerConfig
from resources.store.published import copied_ahead
from resources.store.store import StoreError

SAMPLED_CHARS = 200_000  # of one document: a book of 40 MB would be most of a sample of 10 MB
ENOUGH = 0.9  # of the bytes wanted; a hundred documents give a share to within about 10 %
WIDEST_STEP = 2.0  # if the first documents are tiny, they say little about the rest
SHORT = 0.8  # a source with less of what the config asks for is named in the log


def is_sampled(doc_ids: pl.Series, share: float, seed: int) -> pl.Series:
    """Mark the documents in the seeded sample of that share of all documents; Boolean.

    The mark depends on the document alone, so order and partitions do not change the sample. A
    larger share takes all that a smaller one does.
    """
    keys = mix64(doc_heads(doc_ids) ^ np.uint64(derive_key(seed, "tokenizer sample")))
    return pl.Series("is_sampled", keys.astype(np.float64) < share * 2.0**64)


def wider_share(share: float, drawn: int, quota: int, available: int) -> float:
    """Return the share to draw next from a source that gave `drawn` of `quota` bytes at `share`.

    It stays the same once the source gave ENOUGH of its quota, or everything, and is at most 1.
    """
    if share >= 1 or drawn >= ENOUGH * quota:
        return share
    if share == 0:
        return min(1.0, quota / max(1, available))
    return min(1.0, share * min(WIDEST_STEP, quota / max(1, drawn)))


def sample_quotas(available: Mapping[str, int], config: TokenizerConfig) -> dict[str, int]:
    """Split the bytes of the sample over the sources, given the bytes `available` in each.

    Shares follow the weights, or the bytes if there are none; a source not named gives nothing. A
    source with less than its share gives all, and the others share the rest. The quotas add up to
    sample_bytes, or to all bytes of the sources if that is less.
    """
    weights: Mapping[str, float] = config.weights or available
    quotas = dict.fromkeys(available, 0)
    left, open_sources = config.sample_bytes, [s for s in available if weights.get(s, 0) > 0]
    while open_sources:
        total = sum(weights[source] for source in open_sources)
        wanted = {source: left * weights[source] / total for source in open_sources}
        short = [source for source in open_sources if available[source] <= wanted[source]]
        if not short:
            return quotas | {source: int(size) for source, size in wanted.items()}
        quotas |= {source: available[source] for source in short}
        left -= sum(available[source] for source in short)
        open_sources = [source for source in open_sources if source not in short]
    return quotas


def wanted_bytes(available: Mapping[str, int], config: TokenizerConfig) -> dict[str, int]:
    """Return the bytes of each source that the config asks for, even if the source has fewer."""
    if config.weights is None:
        return sample_quotas(available, config)
    weights = {source: config.weights.get(source, 0.0) for source in available}
    total = sum(weights.values()) or 1.0
    return {source: int(config.sample_bytes * weight / total) for source, weight in weights.items()}


def sample_warnings(wanted: Mapping[str, int], drawn: Mapping[str, int]) -> list[str]:
    """Write a sentence for each source that gave less than SHORT of what the config asks for."""
    return [
        f"source {source!r} gives {drawn[source]:,} bytes of the {size:,} of the tokenizer's "
        f"sample that the config asks of it, {drawn[source] / size:.0%}: it has no more (of a "
        f"document the first {SAMPLED_CHARS:,} characters count), and others take its place. Take "
        "a smaller tokenizer.sample_bytes, or weights that it can give."
        for source, size in wanted.items()
        if drawn[source] < SHORT * size
    ]


class SampledSource(NamedTuple):
    """Source of the training sample: its size in bytes and the files of its documents.

    `is_chat`: they are conversations, whose characters for roles are no text.
    """

    name: str
    available: int
    files: list[KeptDocuments]
    is_chat: bool = False


class Draw(NamedTuple):
    """Documents to take of a source: those of a share that were not in an earlier, smaller one.

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
            copied = copied_ahead([files.ids for _, files in parts])
            read = pool.map(lambda part, _: read_draw(part[0], part[1], config.seed), parts, copied)
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
