"""Estimate the result of a build from a sample of each source.

The sample goes through the stages themselves (sampled_store.py); what they give is scaled up with
intervals (`sample_intervals`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from assets.raw.places.sampling.drawn_blocks import by_stratum
from assets.report.sample_intervals import (
    DRAWS,
    Blocks,
    Floats,
    Interval,
    SampledPairs,
    copies_interval,
    count_interval,
    interval,
    totals_of,
    unseen,
)
from assets.tokenized.encoders import make_encoders
from assets.tokenized.tokenized_records import TOKENIZER
from assets.tokenized.tokenizer import train_bpe
from assets.tokenized.tokenizer_asset import kept_manifest
from pipeline_defs.forecast.costs import Volume, disk_bytes, speed_of, total_seconds
from pipeline_defs.forecast.sampled_store import Sampled, build_sample
from resources.corpus import Corpus

AMOUNTS = ("documents", "text_bytes", "removed", "kept_bytes", "fewest_tokens", "most_tokens")
OF_BYTES = {"text_bytes", "kept_bytes", "fewest_tokens", "most_tokens"}
LEAST_SPAN = 1e-6  # of a block without a document
RULE = "rule "
DRAWN_SEED = 7
Totals = Mapping[str, tuple[float, Floats]]  # value and draws of each amount


class SourceEstimate(msgspec.Struct, frozen=True):
    """Estimated result of one source.

    amounts      documents, those removed by rules, by deduplication and left, tokens
    rules        documents that each rule would remove, others beside it or not
    unseen       documents that each other rule would remove
    """

    read_bytes: int
    all_bytes: int
    documents_read: int
    amounts: dict[str, Interval]
    rules: dict[str, Interval]
    unseen: Interval
    notes: list[str]


class Estimate(msgspec.Struct, frozen=True):
    """Estimated result of a build from nothing, by source and in all."""

    share: float
    seed: int
    sources: dict[str, SourceEstimate]
    total: dict[str, Interval]
    workers: int


def estimate_corpus(corpus: Corpus, sources: Sequence[str], share: float, seed: int) -> Estimate:
    """Draw a sample of sources, and estimate what a build of them would give."""
    with tempfile.TemporaryDirectory() as folder:
        built = build_sample(corpus, sources, share, seed, Path(folder))
    sampled = built.sources
    rng = np.random.default_rng([seed, DRAWN_SEED])
    amounts = {name: amounts_of(each) for name, each in sampled.items()}
    add_tokens(corpus, sampled, amounts)
    totals = {name: source_totals(each, amounts[name], rng) for name, each in sampled.items()}
    pairs = pairs_of(sampled, totals)
    every: Totals = {
        name: (
            sum(of[name][0] for of in totals.values()),
            sum_of(of[name][1] for of in totals.values()),
        )
        for name in AMOUNTS
    }
    drawn = [
        (totals[name]["documents"][0], each.documents.height) for name, each in sampled.items()
    ]
    missed = sum(unseen(*each) for each in drawn)  # a kind may be that of one source alone
    total = amount_intervals(every, all_pairs(pairs, drawn), missed)
    left = less_copies(
        interval(*every["kept_bytes"]),
        total["removed as copies"],
        every["documents"][0] - every["removed"][0],
    )
    volume = Volume(total["text bytes"], left, total["tokens"])
    speed = speed_of(built.filter_seconds, built.text_bytes)
    rate = built.file_bytes / max(1, built.text_bytes)
    total |= {
        "CPU seconds": total_seconds(corpus, volume, speed),
        "disk bytes": disk_bytes(corpus, volume, rate),
    }
    found = {n: source_estimate(each, totals[n], pairs[n]) for n, each in sampled.items()}
    return Estimate(share, seed, found, total, corpus.settings.engine.num_workers())


def sum_of(draws: Iterable[Floats]) -> Floats:
    """Return the draws of an amount, added over sources that were drawn independently."""
    total = np.zeros(DRAWS)
    for each in draws:
        total = total + each
    return total


def amounts_of(sampled: Sampled) -> pl.DataFrame:
    """Return the amounts of each document but tokens, `block`, and a column per broken rule."""
    documents = sampled.documents
    rules = documents["reasons"].explode(empty_as_null=False).drop_nulls().unique().sort()
    return documents.select(
        "block",
        "text_bytes",
        documents=pl.lit(1.0),
        removed=~pl.col("kept"),
        kept_bytes=pl.col("text").str.len_bytes().fill_null(0),
        **{f"{RULE}{name}": pl.col("reasons").list.contains(name) for name in rules},
    )


def add_tokens(
    corpus: Corpus, sampled: Mapping[str, Sampled], amounts: dict[str, pl.DataFrame]
) -> None:
    """Add the tokens of the documents that are kept, fewest and most.

    By the corpus's tokenizer both are the same. Where it is to be trained, two are trained on the
    sample: by one that has seen a document it has fewer tokens than it will have, by one that has
    seen the other half only, more.
    """
    texts = pl.concat(
        [pl.Series("text", [], pl.String), *(s.documents["text"] for s in sampled.values())]
    )
    kept = texts.is_not_null().to_numpy()
    fewest, most = np.zeros(len(texts)), np.zeros(len(texts))
    if kept.any():
        fixed = fixed_tokenizer(corpus)
        if fixed is not None:
            fewest[kept] = most[kept] = token_counts(fixed, texts.drop_nulls(), corpus)
        else:
            fewest[kept], most[kept] = counts_by_trained(texts.drop_nulls(), corpus)
    start = 0
    for name, table in amounts.items():
        rows = slice(start, start + table.height)
        start = rows.stop
        tokens = {"fewest_tokens": fewest[rows], "most_tokens": most[rows]}
        amounts[name] = table.with_columns(pl.Series(key, each) for key, each in tokens.items())


def counts_by_trained(texts: pl.Series, corpus: Corpus) -> tuple[Floats, Floats]:
    """Return the tokens of each text by a tokenizer that has seen it, and by one that has not."""
    halves = [texts.gather_every(2, half) for half in range(2)]
    fewest, *by_half = (
        token_counts(train_bpe([seen], corpus.settings.tokenizer), texts, corpus)
        for seen in (texts, *halves)
    )
    unseen_by = np.where(np.arange(len(texts)) % 2 == 0, by_half[1], by_half[0])
    return fewest, np.maximum(fewest, unseen_by)


def fixed_tokenizer(corpus: Corpus) -> str | None:
    """Return the tokenizer that a build would use, None if it would train one."""
    path = corpus.settings.tokenizer.path
    if path is not None:
        return (corpus.config.parent / path).read_text(encoding="utf-8")
    kept = kept_manifest(corpus)
    if kept is None:
        return None
    file = corpus.store.part_file(kept, kept.parts[0], TOKENIZER.name)
    return file.checked().read_text(encoding="utf-8")


def token_counts(tokenizer_json: str, texts: pl.Series, corpus: Corpus) -> Floats:
    """Return the tokens of each text, those around a document included."""
    _, offsets = make_encoders(tokenizer_json).best.encode(texts.to_list())
    marks = 1 if corpus.settings.tokenizer.begin_of_document is None else 2
    return np.diff(offsets).astype(np.float64) + marks


def source_totals(sampled: Sampled, amounts: pl.DataFrame, rng: np.random.Generator) -> Totals:
    """Return the value and the draws of every amount of a source."""
    sample, names = sampled.sample, [name for name in amounts.columns if name != "block"]
    by_block = np.zeros((len(sample.blocks), len(names)))
    values = amounts.select(pl.col(names).cast(pl.Float64)).to_numpy()
    np.add.at(by_block, amounts["block"].to_numpy(), values)
    weights = np.array([[block.weight] for block in sample.blocks]).reshape(-1, 1)
    by_block *= weights
    strata, empty = list[Blocks](), 0.0
    for stratum, places in by_stratum(sample):
        drawn = [sample.blocks[place] for place in places]
        spans = [[b.content if name in OF_BYTES else b.span for name in names] for b in drawn]
        if by_block[places].any():
            sizes = np.maximum(spans, LEAST_SPAN) * weights[places]
            strata.append(Blocks(sizes, stratum.size, by_block[places], stratum.doubt))
        elif stratum.is_content:
            empty += stratum.size
    if not strata:
        return {name: (0.0, np.zeros(DRAWS)) for name in names}
    found = totals_of(strata, rng)
    grown = sample.all_bytes / max(1, sample.all_bytes - sample.unread_bytes)
    content = sum(each.size for each, _ in by_stratum(sample) if each.is_content)
    if content > empty:
        grown *= content / (content - empty)
    scaled = (found.values * grown).tolist()
    return {name: (scaled[i], found.draws[:, i] * grown) for i, name in enumerate(names)}


def pairs_of(
    sampled: Mapping[str, Sampled], totals: Mapping[str, Totals]
) -> dict[str, SampledPairs]:
    """Count the pairs of copies in all samples, for the source of the removed ones.

    A cluster of n documents has n (n - 1) / 2 pairs: n / 2 for each that is removed.
    """
    shares = {
        name: min(1.0, each.documents.height / max(1.0, totals[name]["documents"][0]))
        for name, each in sampled.items()
    }
    found = {}
    for name, each in sampled.items():
        of = each.copies["kept_source"].replace_strict(shares, return_dtype=pl.Float64)
        pairs = each.copies["cluster_size"] / 2
        weight = float((pairs / of).sum()) / shares[name] if each.documents.height else 0.0
        number = round(float(pairs.sum()))
        found[name] = SampledPairs(number, weight, each.copies.height, shares[name] or 1.0)
    return found


def all_pairs(
    pairs: Mapping[str, SampledPairs], drawn: Sequence[tuple[float, int]]
) -> SampledPairs:
    """Return the pairs of all sources together."""
    documents, in_sample = (sum(numbers) for numbers in zip(*drawn, strict=True))
    return SampledPairs(
        sum(each.number for each in pairs.values()),
        sum(each.weight for each in pairs.values()),
        sum(each.removed for each in pairs.values()),
        min(1.0, in_sample / max(1.0, documents)) or 1.0,
    )


def source_estimate(sampled: Sampled, totals: Totals, pairs: SampledPairs) -> SourceEstimate:
    """Return the estimate of a source."""
    number, documents = sampled.documents.height, totals["documents"][0]
    missed = unseen(documents, number)
    rules = {
        name.removeprefix(RULE): count_interval(*amount, documents, missed)
        for name, amount in totals.items()
        if name.startswith(RULE)
    }
    return SourceEstimate(
        sampled.sample.read_bytes,
        sampled.sample.all_bytes,
        number,
        amount_intervals(totals, pairs, missed),
        rules,
        Interval(0.0, 0.0, missed),
        sampled.notes,
    )


def amount_intervals(totals: Totals, pairs: SampledPairs, missed: float) -> dict[str, Interval]:
    """Return the intervals of the amounts of a source, or of all.

    `missed`: documents that a rule may remove of which the sample has none.
    """
    documents, removed = totals["documents"], totals["removed"]
    left = 1 - min(1.0, missed / max(1.0, documents[0]))
    kept = interval(documents[0] - removed[0], documents[1] - removed[1])
    kept = Interval(kept.value, kept.low * left, kept.high)
    fewest, most = interval(*totals["fewest_tokens"]), interval(*totals["most_tokens"])
    tokens = Interval((fewest.value + most.value) / 2, fewest.low * left, most.high)
    copies = copies_interval(pairs, kept.value)
    return {
        "documents": interval(*documents),
        "text bytes": interval(*totals["text_bytes"]),
        "removed by rules": count_interval(*removed, documents[0], missed),
        "removed as copies": copies,
        "documents kept": less_copies(kept, copies, kept.value),
        "tokens before deduplication": tokens,
        "tokens": less_copies(tokens, copies, kept.value),
    }


def less_copies(amount: Interval, copies: Interval, kept: float) -> Interval:
    """Return an amount of documents before deduplication less the share that it removes."""
    kept = max(kept, 1.0)
    return Interval(
        amount.value * (1 - copies.value / kept),
        amount.low * max(0.0, 1 - copies.high / kept),
        amount.high * (1 - copies.low / kept),
    )
