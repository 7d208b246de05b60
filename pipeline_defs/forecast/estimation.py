"""What a build would give, estimated from small ranges of each source.

The documents that `sample_source` draws go through the functions of the stages themselves: rules,
signatures, tokenizer. What they give is scaled up with intervals (`sample_intervals`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from assets.deduped.minhash.signatures import signatures
from assets.filtered.asset import needs_classifier
from assets.filtered.filter_documents import filter_documents
from assets.filtered.filter_files import load_filter_data
from assets.raw.places.find_inputs import find_inputs
from assets.raw.places.sampling.drawn_blocks import SourceSample, by_stratum
from assets.raw.places.sampling.sample_source import sample_source, sizes_only
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
    unseen_in_all,
)
from assets.tokenized.encoders import make_encoders
from assets.tokenized.tokenized_records import TOKENIZER
from assets.tokenized.tokenizer import train_bpe
from assets.tokenized.tokenizer_asset import kept_manifest
from pipeline_defs.forecast.sample_costs import (
    DiskRates,
    Volume,
    disk_bytes,
    speed_of,
    total_seconds,
)
from resources.corpus import Corpus
from resources.dagster_home import records_folder
from resources.settings.filtering.filters import FilterConfig
from resources.store.compression import LEVEL, POLARS_NAMES
from resources.store.records import to_json
from resources.store.store import StoreError

AMOUNTS = ("documents", "text_bytes", "removed", "kept_bytes", "fewest_tokens", "most_tokens")
OF_BYTES = {"text_bytes", "kept_bytes", "fewest_tokens", "most_tokens"}
LEAST_SPAN = 1e-6  # of a block without a document
RULE = "rule "
DRAWN_SEED = 7


class SourceEstimate(msgspec.Struct, frozen=True):
    """What one source would give.

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
    """What a build from nothing would give, by source and in all."""

    share: float
    seed: int
    sources: dict[str, SourceEstimate]
    total: dict[str, Interval]
    workers: int


@dataclass
class Judged:
    """The sample of a source behind the rules of `filtered`."""

    sample: SourceSample
    raw: pl.DataFrame
    kept: pl.DataFrame
    decisions: pl.DataFrame
    notes: list[str]
    seconds: float = 0.0
    tokens: tuple[Floats, Floats] | None = None  # of each document that is kept: fewest and most


def estimate_corpus(corpus: Corpus, sources: Sequence[str], share: float, seed: int) -> Estimate:
    """Draw a sample of sources, and estimate what a build of them would give."""
    judged = {name: judge_sample(corpus, name, share, seed) for name in sources}
    count_tokens(corpus, judged)
    rng = np.random.default_rng([seed, DRAWN_SEED])
    totals = {name: source_totals(each, rng) for name, each in judged.items()}
    pairs = find_pairs(corpus, judged, totals)
    found = {name: source_estimate(judged[name], totals[name], pairs[name]) for name in judged}
    return Estimate(
        share,
        seed,
        found,
        add_up(corpus, judged, totals, all_pairs(judged, totals, pairs)),
        corpus.settings.engine.num_workers(),
    )


def judge_sample(corpus: Corpus, name: str, share: float, seed: int) -> Judged:
    """Draw documents of a source, and judge them by its rules."""
    source = corpus.settings.source(name)
    base, downloads = corpus.config.parent, corpus.downloads
    inputs = find_inputs(source, base, downloads, sizes_only, needs_copies=False)
    number = corpus.settings.source_names().index(name)
    sample = sample_source(inputs.files, source, share, np.random.default_rng([seed, number]))
    notes = []
    if sample.unread:
        notes.append(
            f"{len(sample.unread):,} files are not sampled ({sample.unread[0]}, ...): they count "
            "as the others do"
        )
    config = corpus.settings.filters_for(name)
    config, more = without_classifier(corpus, config)
    data = load_filter_data(config, corpus.config.parent)
    raw = sample.table()
    documents = raw.drop("block")
    filter_documents(documents.head(1), config, data)  # compiles, or loads, the kernels
    begun = time.process_time()
    kept, decisions = filter_documents(documents, config, data)
    seconds = time.process_time() - begun
    return Judged(sample, raw, kept, decisions, [*notes, *more], seconds)


def without_classifier(corpus: Corpus, config: FilterConfig) -> tuple[FilterConfig, list[str]]:
    """Return the filters without the rules that need a model, and a note if there are some."""
    if not needs_classifier(config):
        return config, []
    rules = config.rules.model_copy(update={"quality": None})
    note = "rules.quality is not estimated: its classifier is trained in the build"
    return config.model_copy(update={"rules": rules}), [note]


def count_tokens(corpus: Corpus, judged: Mapping[str, Judged]) -> None:
    """Count the tokens of the documents that are kept, fewest and most.

    By the corpus's tokenizer both are the same. Where it is to be trained, two are trained on the
    sample: by one that has seen a document it has fewer tokens than it will have, by one that has
    seen the other half only, more.
    """
    empty = pl.Series("text", [], pl.String)
    texts = pl.concat([empty, *(each.kept["text"].fill_null("") for each in judged.values())])
    fixed = fixed_tokenizer(corpus)
    if fixed is not None:
        fewest = most = token_counts(fixed, texts, corpus)
    else:
        fewest, most = counts_by_trained(texts, corpus)
    start = 0
    for each in judged.values():
        stop = start + each.kept.height
        each.tokens = fewest[start:stop], most[start:stop]
        start = stop


def counts_by_trained(texts: pl.Series, corpus: Corpus) -> tuple[Floats, Floats]:
    """Return the tokens of each text by a tokenizer that has seen it, and by one that has not."""
    if texts.is_empty():
        return np.zeros(0), np.zeros(0)
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
    [part] = kept.parts
    file = corpus.store.part_file(kept, part, TOKENIZER.name)
    return file.checked().read_text(encoding="utf-8")


def token_counts(tokenizer_json: str, texts: pl.Series, corpus: Corpus) -> Floats:
    """Return the tokens of each text, those around a document included."""
    _, offsets = make_encoders(tokenizer_json).best.encode(texts.to_list())
    marks = 1 if corpus.settings.tokenizer.begin_of_document is None else 2
    return np.diff(offsets).astype(np.float64) + marks


def rule_names(decisions: pl.DataFrame) -> list[str]:
    """Return the rules that a document of the sample breaks."""
    reasons = decisions["reasons"].explode(empty_as_null=False)
    return sorted(reasons.drop_nulls().unique())


def amounts_of(judged: Judged) -> pl.DataFrame:
    """Return the amounts of each document of a sample: `block`, AMOUNTS and a column per rule."""
    assert judged.tokens is not None
    fewest, most = judged.tokens
    kept = judged.kept.select("doc_id", kept_bytes=pl.col("text").str.len_bytes())
    kept = kept.with_columns(fewest_tokens=pl.Series(fewest), most_tokens=pl.Series(most))
    is_kept = judged.decisions["kept"]
    broken = {
        f"{RULE}{name}": judged.decisions["reasons"].list.contains(name)
        for name in rule_names(judged.decisions)
    }
    table = judged.raw.select("doc_id", "block", text_bytes=pl.col("text").str.len_bytes())
    return (
        table.with_columns(documents=pl.lit(1.0), removed=~is_kept, **broken)
        .join(kept, on="doc_id", how="left", maintain_order="left")
        .select("block", pl.col(*AMOUNTS, *broken).cast(pl.Float64).fill_null(0))
    )


def source_totals(judged: Judged, rng: np.random.Generator) -> dict[str, tuple[float, Floats]]:
    """Return the value and the draws of every amount of a source."""
    amounts = amounts_of(judged)
    names = amounts.columns[1:]
    by_block = np.zeros((len(judged.sample.blocks), len(names)))
    np.add.at(by_block, amounts["block"].to_numpy(), amounts.select(names).to_numpy())
    weights = np.array([[block.weight] for block in judged.sample.blocks]).reshape(-1, 1)
    by_block *= weights
    strata, empty = list[Blocks](), 0.0
    for stratum, places in by_stratum(judged.sample):
        drawn = [judged.sample.blocks[place] for place in places]
        spans = (
            np.maximum(
                [[b.content if name in OF_BYTES else b.span for name in names] for b in drawn],
                LEAST_SPAN,
            )
            * weights[places]
        )
        if by_block[places].any():
            strata.append(Blocks(spans, stratum.size, by_block[places], stratum.doubt))
        elif stratum.is_content:
            empty += stratum.size
    if not strata:
        return {name: (0.0, np.zeros(DRAWS)) for name in names}
    found = totals_of(strata, rng)
    read = judged.sample.all_bytes - judged.sample.unread_bytes
    sampled = sum(each.size for each, _ in by_stratum(judged.sample) if each.is_content)
    grown = judged.sample.all_bytes / max(1, read)
    if sampled > empty:
        grown *= sampled / (sampled - empty)
    values = (found.values * grown).tolist()
    return {name: (values[i], found.draws[:, i] * grown) for i, name in enumerate(names)}


def find_pairs(
    corpus: Corpus,
    judged: Mapping[str, Judged],
    totals: Mapping[str, Mapping[str, tuple[float, Floats]]],
) -> dict[str, SampledPairs]:
    """Find copies among the documents of all samples, and count them for their source."""
    shares = {
        name: min(1.0, each.raw.height / max(1.0, totals[name]["documents"][0]))
        for name, each in judged.items()
    }
    signed = [sign(corpus, each) for each in judged.values() if each.kept.height]
    empty = dict.fromkeys(judged, SampledPairs(0, 0.0, 0, 1.0))
    if not signed:
        return empty
    keys, signatures_of = (pl.concat(tables) for tables in zip(*signed, strict=True))
    pairs = similar_pairs(keys, signatures_of, corpus)
    found = {}
    for name in judged:
        own = pairs.filter(pl.col("source") == name)
        weights = [1 / (shares[a] * shares[b]) for a, b in own.select("source", "of").iter_rows()]
        found[name] = SampledPairs(own.height, sum(weights), own["row"].n_unique(), shares[name])
    return found


def sign(corpus: Corpus, judged: Judged) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the keys and the signatures of the documents of a sample that are kept."""
    table, keys = signatures(judged.kept, corpus.settings.dedup, judged.decisions)
    named = table.select("doc_id", "signature").with_columns(source=judged.kept["source"])
    keyed = keys.select("key", doc_id=named["doc_id"].gather(keys["row"]))
    return keyed, named


def similar_pairs(keys: pl.DataFrame, documents: pl.DataFrame, corpus: Corpus) -> pl.DataFrame:
    """Return pairs of documents with a key in common, and enough of the signature if verified.

    Columns: row and source of the later one, `of`, the source of the earlier one.
    """
    placed = documents.with_row_index("row")
    keyed = keys.join(placed.select("doc_id", "row"), on="doc_id").select("key", "row")
    keyed = keyed.filter(keyed["key"].is_duplicated())
    pairs = (
        keyed.join(keyed, on="key", suffix="_of")
        .filter(pl.col("row") > pl.col("row_of"))
        .select("row", "row_of")
        .unique(maintain_order=True)
    )
    later, earlier = placed[pairs["row"]], placed[pairs["row_of"]]
    pairs = pairs.with_columns(source=later["source"], of=earlier["source"])
    config = corpus.settings.dedup
    if config.near and config.verify != "none" and pairs.height:
        one, other = (each["signature"].to_numpy() for each in (later, earlier))
        pairs = pairs.filter((one == other).mean(axis=1) >= config.threshold)
    return pairs.select("row", "source", "of")


def source_estimate(
    judged: Judged, totals: Mapping[str, tuple[float, Floats]], pairs: SampledPairs
) -> SourceEstimate:
    """Return the estimate of a source."""
    sampled, documents = judged.raw.height, totals["documents"][0]
    missed = unseen(documents, sampled)
    rules = {
        name.removeprefix(RULE): count_interval(*amount, documents, missed)
        for name, amount in totals.items()
        if name.startswith(RULE)
    }
    return SourceEstimate(
        judged.sample.read_bytes,
        judged.sample.all_bytes,
        sampled,
        amount_intervals(totals, pairs, missed),
        rules,
        Interval(0.0, 0.0, missed),
        judged.notes,
    )


def amount_intervals(
    totals: Mapping[str, tuple[float, Floats]], pairs: SampledPairs, missed: float
) -> dict[str, Interval]:
    """Return the intervals of the amounts of a source, or of all.

    `missed`: documents that a rule may remove of which the sample has none.
    """
    documents, removed = totals["documents"], totals["removed"]
    left = 1 - min(1.0, missed / max(1.0, documents[0]))
    kept = interval(documents[0] - removed[0], documents[1] - removed[1])
    kept = Interval(kept.value, kept.low * left, kept.high)
    tokens = tokens_before(totals)
    tokens = Interval(tokens.value, tokens.low * left, tokens.high)
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


def tokens_before(totals: Mapping[str, tuple[float, Floats]]) -> Interval:
    """Return the tokens before deduplication."""
    (few, fewest), (many, most) = totals["fewest_tokens"], totals["most_tokens"]
    low, high = interval(few, fewest), interval(many, most)
    return Interval((few + many) / 2, low.low, high.high)


def less_copies(amount: Interval, copies: Interval, kept: float) -> Interval:
    """Return an amount of documents before deduplication less the share that it removes."""
    kept = max(kept, 1.0)
    return Interval(
        amount.value * (1 - copies.value / kept),
        amount.low * max(0.0, 1 - copies.high / kept),
        amount.high * (1 - copies.low / kept),
    )


def add_up(
    corpus: Corpus,
    judged: Mapping[str, Judged],
    totals: Mapping[str, Mapping[str, tuple[float, Floats]]],
    pairs: SampledPairs,
) -> dict[str, Interval]:
    """Return the amounts of all sources, and the CPU seconds and the disk of a build of them."""
    every = {
        name: (sum(each[name][0] for each in totals.values()), sum_of_draws(totals, name))
        for name in AMOUNTS
    }
    samples = [(totals[name]["documents"][0], each.raw.height) for name, each in judged.items()]
    amounts = amount_intervals(every, pairs, unseen_in_all(samples))
    kept = interval(*every["kept_bytes"])
    left = less_copies(
        kept, amounts["removed as copies"], every["documents"][0] - every["removed"][0]
    )
    volume = Volume(every["documents"][0], amounts["text bytes"], kept, left, amounts["tokens"])
    seconds = sum(each.seconds for each in judged.values())
    measured = sum(int(each.raw["text"].str.len_bytes().sum()) for each in judged.values())
    return amounts | {
        "CPU seconds": total_seconds(corpus, volume, speed_of(seconds, measured)),
        "disk bytes": disk_bytes(corpus, volume, disk_rates(corpus, judged)),
    }


def sum_of_draws(totals: Mapping[str, Mapping[str, tuple[float, Floats]]], name: str) -> Floats:
    """Return the draws of an amount, added over sources that were drawn independently."""
    added = np.zeros(DRAWS)
    for each in totals.values():
        added = added + each[name][1]
    return added


def all_pairs(
    judged: Mapping[str, Judged],
    totals: Mapping[str, Mapping[str, tuple[float, Floats]]],
    pairs: Mapping[str, SampledPairs],
) -> SampledPairs:
    """Return the pairs of all sources together."""
    documents = sum(each["documents"][0] for each in totals.values())
    return SampledPairs(
        sum(each.number for each in pairs.values()),
        sum(each.weight for each in pairs.values()),
        sum(each.removed for each in pairs.values()),
        min(1.0, sum(each.raw.height for each in judged.values()) / max(1.0, documents)),
    )


def disk_rates(corpus: Corpus, judged: Mapping[str, Judged]) -> DiskRates:
    """Measure the bytes of tables of the sample, as a build would write them."""
    raw = pl.concat(each.raw.drop("block") for each in judged.values())
    decisions = pl.concat((each.decisions for each in judged.values()), how="diagonal_relaxed")
    text = max(1, int(raw["text"].str.len_bytes().sum()))
    dedup = corpus.settings.dedup
    return DiskRates(
        stored=table_bytes(raw, corpus) / text,
        decisions=table_bytes(decisions, corpus) / max(1, raw.height),
        values=dedup.num_values if dedup.near else 0,
        keys=(dedup.bands if dedup.near else 0) + dedup.exact + len(dedup.fields),
    )


def table_bytes(table: pl.DataFrame, corpus: Corpus) -> int:
    """Return the size of a table as Parquet, compressed as the store's tables are."""
    name = POLARS_NAMES[corpus.settings.compression]
    buffer = BytesIO()
    level = LEVEL if name == "zstd" else None
    table.write_parquet(buffer, compression=name, compression_level=level)
    return buffer.tell()


def estimate_path(corpus: Corpus) -> Path:
    """Return where the last estimate of a store is kept, with our records of its runs."""
    return records_folder(corpus.store.root) / "estimate.json"


def keep_estimate(corpus: Corpus, made: Estimate) -> None:
    """Keep an estimate, to be compared with the build that follows."""
    path = estimate_path(corpus)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(to_json(made))


def kept_estimate(corpus: Corpus) -> Estimate:
    """Read the last estimate; StoreError if there is none."""
    path = estimate_path(corpus)
    if not path.is_file():
        raise StoreError(f"{path}: there is no estimate of this store. Run `corpus estimate`.")
    return msgspec.json.decode(path.read_bytes(), type=Estimate)
