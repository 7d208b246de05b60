"""Count the alarms of the drift checks, on ordinary nights and on nights with a planted drift.

    .venv/bin/python benchmarks/drift_alarms.py CONFIG --nights 50

CONFIG is the pipeline.yaml of a corpus that is built. A night is hundreds of documents of a source,
in runs of neighbours by URL and name, as a crawl brings them. Each trial has a history of ordinary
nights, and one more, into which at most one drift is planted, judged by the rules and the tokenizer
of the corpus:

    language      every fourth document is of another source: of `multilingual`, of `code` there
    boilerplate   half of the documents begin with a navigation menu
    truncated     half of the documents are cut to 300 characters
    duplicates    twice the usual share of copies, at least a tenth
    reasons       every eighth document is one that a rule rejects
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))

import msgspec
import numpy as np
import polars as pl

from assets.deduped.document_files import kept_documents, read_kept_ids
from assets.filtered.filter_documents import filter_documents
from assets.filtered.filter_files import load_filter_data
from assets.filtered.report import decisions_profile
from assets.report.drift import judge_drift
from pipeline_defs.forecast.estimation import fixed_tokenizer, token_counts
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.profiles import Profile
from resources.settings.pipeline import CONFIG_VARIABLE
from resources.store.records import required_file

HISTORY = 20  # nights
DOCUMENTS, SPREAD = 500, 0.4  # of a night: the median, and the deviation of its logarithm
NEIGHBOURS = 4  # documents that come together
KINDS = ("language", "boilerplate", "truncated", "duplicates", "reasons")
MENU = "\n".join(
    ["Home | Products | About us | Contact | Login | Sign up | Help | Terms | Privacy | Cookies"]
    * 12
)
CUT = 300  # characters
RECORDED, RECORDED_SOURCES = 10, ("code", "web")
MOST_POOL = 6000  # documents of a source


@dataclass
class Pool:
    """Documents of a source with what the stages say of each, as they are and as changed."""

    plain: pl.DataFrame
    changed: dict[str, pl.DataFrame] = field(default_factory=dict)


def main() -> None:
    """Judge the nights, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", type=Path)
    parser.add_argument("--nights", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", type=Path, help="write nights of some sources to this file")
    args = parser.parse_args()
    os.environ[CONFIG_VARIABLE] = str(args.config)
    corpus = load_corpus()
    pools = {name: pool_of(corpus, name) for name in corpus.settings.source_names()}
    rng = np.random.default_rng(args.seed)
    if args.record:
        args.record.write_bytes(msgspec.json.encode(recorded(pools, rng)) + b"\n")
        return
    names = list(pools)
    shown = []
    for kind in (None, *KINDS):
        trials = args.nights if kind is None else args.nights // len(KINDS)
        found = Counter[str]()
        alarms = 0
        for trial in range(trials):
            source = names[trial % len(names)]
            drifts = judge(night(pools, source, kind, rng), histories(pools, source, rng))
            alarms += bool(drifts)
            found.update(drifts)
            if kind is None and drifts:
                print("false alarm:", source, drifts)
            if kind and not drifts:
                print("missed:", kind, source)
        by = ", ".join(f"{name} {number}" for name, number in found.most_common(5))
        shown.append(f"{kind or 'ordinary':12} {trials:6} {alarms:7}   {by}")
    print(f"{'nights':12} {'trials':>6} {'alarms':>7}   by")
    print("\n".join(shown))


def recorded(pools: dict[str, Pool], rng: np.random.Generator) -> dict[str, object]:
    """Return the profiles of nights, by source and kind: for tests/report/test_drift.py."""
    return {
        source: {
            "ordinary": [night(pools, source, None, rng) for _ in range(HISTORY + RECORDED)],
            **{kind: [night(pools, source, kind, rng) for _ in range(2)] for kind in KINDS},
        }
        for source in RECORDED_SOURCES
    }


def pool_of(corpus: Corpus, source: str) -> Pool:
    """Read documents of a source in the order of their addresses, and judge their variants."""
    manifest = corpus.store.newest("raw", source)
    files = [
        corpus.store.file_of(manifest, required_file(manifest, p, "documents"))
        for p in manifest.parts
    ]
    raw = pl.concat([pl.read_parquet(file.checked()) for file in files])
    raw = raw.sample(min(MOST_POOL, raw.height), seed=0).sort(
        pl.coalesce("url", "id", "doc_id"), "doc_id"
    )
    deduped = corpus.store.newest("deduped", source)
    left = pl.concat(
        read_kept_ids(kept_documents(corpus.store, deduped, part)) for part in deduped.parts
    )
    plain = judged(corpus, source, raw).with_columns(
        is_copy=pl.col("kept") & ~pl.col("doc_id").is_in(left.implode())
    )
    cut = raw.with_columns(pl.col("text").str.slice(0, CUT))
    menu = raw.with_columns(text=pl.lit(MENU + "\n") + raw["text"])
    return Pool(
        plain,
        {
            "truncated": with_copies(judged(corpus, source, cut), plain),
            "boilerplate": with_copies(judged(corpus, source, menu), plain),
        },
    )


def with_copies(changed: pl.DataFrame, plain: pl.DataFrame) -> pl.DataFrame:
    """Return changed documents that are copies where they were."""
    return changed.with_columns(is_copy=plain["is_copy"] & changed["kept"])


def judged(corpus: Corpus, source: str, raw: pl.DataFrame) -> pl.DataFrame:
    """Return the verdict on each document, its bytes and tokens."""
    config = corpus.settings.filters_for(source)
    kept, decisions = filter_documents(raw, config, load_filter_data(config, corpus.config.parent))
    tokenizer = fixed_tokenizer(corpus)
    assert tokenizer is not None
    tokens = kept.select("doc_id", tokens=pl.Series(token_counts(tokenizer, kept["text"], corpus)))
    return (
        decisions.select("doc_id", "kept", "reasons", "detected_lang", "num_bytes")
        .with_columns(raw_bytes=raw["text"].str.len_bytes())
        .join(tokens, on="doc_id", how="left", maintain_order="left")
    )


def drawn(pool: pl.DataFrame, rng: np.random.Generator, number: int) -> np.ndarray:
    """Draw runs of neighbours."""
    starts = rng.integers(0, max(1, pool.height - NEIGHBOURS), max(1, number // NEIGHBOURS))
    return (starts[:, None] + np.arange(NEIGHBOURS)).ravel() % pool.height


def night(
    pools: dict[str, Pool], source: str, kind: str | None, rng: np.random.Generator
) -> list[Profile]:
    """Return the profiles of a night by stage, with a drift planted."""
    number = int(np.clip(DOCUMENTS * np.exp(rng.normal(0, SPREAD)), 120, 2000))
    pool = pools[source].plain
    rows = drawn(pool, rng, number)
    table = pool[rows]
    if kind in ("boilerplate", "truncated"):
        is_changed = rng.random(len(rows)) < 0.5
        table = pl.concat(
            [table.filter(~is_changed), pools[source].changed[kind][rows[is_changed]]]
        )
    elif kind == "language":
        other = pools["multilingual" if source != "multilingual" else "code"].plain
        table = mixed(table, other[drawn(other, rng, number // 4)])
    elif kind == "duplicates":
        copies = pool.filter("is_copy")
        wanted = max(0.10, 2 * float(pool["is_copy"].mean()))  # type: ignore[arg-type]
        if copies.height:
            table = mixed(table, copies[rng.integers(0, copies.height, int(number * wanted))])
    elif kind == "reasons":
        broken = pl.concat([each.plain.filter(~pl.col("kept")) for each in pools.values()])
        table = mixed(table, broken[rng.integers(0, broken.height, number // 8)])
    return profiles(table)


def mixed(table: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Replace documents of a night by others."""
    return pl.concat([table[others.height :], others])


def profiles(table: pl.DataFrame) -> list[Profile]:
    """Return what the stages raw, filtered, deduped and tokenized record of a night."""
    kept = table.filter("kept")
    left = kept.filter(~pl.col("is_copy"))
    documents, copies = table.height, kept.height - left.height
    tokens = float(left["tokens"].sum()) / max(1, int(left["num_bytes"].sum()))
    return [
        Profile(documents, numbers={"bytes per document": float(table["raw_bytes"].mean())}),  # type: ignore[arg-type]
        decisions_profile(table),
        Profile(kept.height, numbers={"duplicate share": copies / max(1, kept.height)}),
        Profile(left.height, numbers={"tokens per byte": tokens}),
    ]


def histories(pools: dict[str, Pool], source: str, rng: np.random.Generator) -> list[list[Profile]]:
    """Return ordinary nights, by stage."""
    nights = [night(pools, source, None, rng) for _ in range(HISTORY)]
    return [list(stage) for stage in zip(*nights, strict=True)]


def judge(now: list[Profile], earlier: list[list[Profile]]) -> list[str]:
    """Return what drifted."""
    return [
        name
        for profile, history in zip(now, earlier, strict=True)
        for name, found in judge_drift(profile, history).facts.items()
        if found["distance"] > found["limit"]
    ]


if __name__ == "__main__":
    main()
