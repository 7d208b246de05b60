"""Train the models behind the scores of pages, and measure them on text that they have not seen.

    python benchmarks/page_kinds.py /data/corpora --out assets/filtered/data/page_kinds.json
    python benchmarks/page_kinds.py /data/corpora --fold

Each kind of junk is told from clean documents by a logistic regression over the terms of
page_scores.py, with planted junk of the half for tuning (planted_junk.py) and of further families
(training_junk.py). With --fold nothing is written: documents are halved by the hash of meta.family
(versions and translations of one document), each half is judged by models of the other, under the
limits of `balanced`, and so is the junk kept aside.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import_module("pipeline_defs")  # what it tells Polars' allocator must come before polars

import numpy as np  # noqa: E402
import polars as pl  # noqa: E402
from balanced_quality import read_list  # noqa: E402
from corpus_texts import read_texts  # noqa: E402
from good_kinds import good_texts  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from planted_junk import KINDS, Junk, Page, plant  # noqa: E402
from training_junk import plant_more  # noqa: E402

from assets.filtered.normalize import normalize_text  # noqa: E402
from assets.filtered.page_files import KINDS_FILE, load_models  # noqa: E402
from assets.filtered.page_scores import page_terms  # noqa: E402
from resources.settings.filtering.filter_steps import NormalizeConfig  # noqa: E402
from resources.settings.filtering.presets import BALANCED  # noqa: E402

Table = NDArray[np.float64]
Mask = NDArray[np.bool_]

JUNK_PER_KIND = 1_500  # of planted_junk and as many of training_junk
ASIDE_PER_KIND = 1_000
# Of squared weights, on terms scaled to a deviation of 1: with 40, unseen clean text under the same
# share of rejections leaves 5 % more of menus and cut pages; 1 to 8 differ little.
PENALTY = 3.0
FEW = 30  # documents of a language
GOOD_A_KIND = 150  # texts of each kind and language of good_kinds.py
STEPS = 9  # of Newton's method; more change no decision
CELL_WEIGHT = 400  # documents: a larger cell of clean text counts no more
SOURCE_WEIGHT = {"web": 3.0, "prose": 3.0, "table": 2.0, "code": 0.5, "notation": 0.3}
JUNK_WEIGHT = 0.65
LENGTHS = (500, 2_000, 20_000)  # characters, between these classes
CLASSES = ("<500", "500-2000", "2000-20000", ">20000")
PARAGRAPH = r"(?m)^([^\W\d_][^\n{}<>|=]{30,480}[.!?。！？।])\s*$"
LEAST_DOCUMENTS = 100  # of a cell that is shown
LIMITS = ("boilerplate", "navigation", "keyword_spam", "link_lists", "machine_noise", "truncated")


class Samples(NamedTuple):
    """Terms of texts, a row each, and the label of each: the cell of clean text, kind of junk."""

    terms: Table
    labels: NDArray[np.str_]


class Clean(NamedTuple):
    """Clean documents: their source and cell, language, and half of --fold."""

    samples: Samples
    sources: NDArray[np.str_]
    langs: NDArray[np.str_]
    halves: NDArray[np.int64]


def main() -> None:
    """Train on everything and write the weights, or measure on halves."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="a subfolder per source")
    parser.add_argument("--out", type=Path, help="file to write the weights to")
    parser.add_argument("--fold", action="store_true", help="measure on the other half")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    documents = read_texts(options.folder)
    pages = [
        Page(text, lang or "en")
        for text, lang, source in documents.select("text", "lang", "source").iter_rows()
        if source != "code"
    ]
    clean, junk = clean_of(documents), junk_for_training(pages, options.seed)
    if options.fold:
        measure(clean, junk, junk_kept_aside(pages))
    if options.out:
        write(train(clean, junk, np.ones(len(clean.halves), np.bool_)), options.out)


def clean_of(documents: pl.DataFrame) -> Clean:
    """Return the clean documents: without those that were read and judged to be junk."""
    meta = pl.col("meta")
    inner = meta.str.json_path_match("$.meta")  # an object, or a string that holds one
    documents = documents.with_columns(
        meta.str.json_path_match("$.id").alias("id"),
        inner.str.json_path_match("$.family").alias("family"),
        lang=pl.col("lang").fill_null("-"),
    ).filter(~pl.col("id").is_in(junk_ids()))
    made = [excerpts_of(documents), beginnings_of(documents), good_kinds_of(documents)]
    documents = pl.concat([documents, *made])
    classes = np.searchsorted(LENGTHS, documents["text"].str.len_chars(), side="right")
    lengths = pl.Series("length", np.array(CLASSES)[classes])
    cells = documents.select(pl.format("{} {} {}", "source", "lang", lengths)).to_series()
    return Clean(
        Samples(terms_of(documents["text"]), cells.to_numpy().astype(str)),
        documents["source"].to_numpy().astype(str),
        documents["lang"].to_numpy().astype(str),
        np.array([half_of(family) for family in documents["family"].fill_null("")]),
    )


def excerpts_of(documents: pl.DataFrame) -> pl.DataFrame:
    """Return a whole paragraph of each document: short prose, which few sources have as documents.

    Without them a lone paragraph of German or Greek was spam, since short documents of these
    languages are instructions to use programs.
    """
    is_prose = pl.col("source") != "code"
    paragraph = pl.col("text").str.slice(0, 20_000).str.extract(PARAGRAPH)
    chosen = documents.filter(is_prose).with_columns(paragraph.alias("text"))
    return chosen.drop_nulls("text").with_columns(pl.lit("excerpt").alias("source"))


def beginnings_of(documents: pl.DataFrame) -> pl.DataFrame:
    """Return short beginnings of documents in languages that have few, so that none is noise."""
    few = documents.filter(pl.len().over("lang") < FEW, ~pl.col("source").is_in(["code", "web"]))
    cuts = [few.with_columns(pl.col("text").str.slice(start, 160)) for start in (0, 400, 800)]
    return pl.concat(cuts).with_columns(pl.lit("beginning").alias("source"))


def good_kinds_of(documents: pl.DataFrame) -> pl.DataFrame:
    """Return good texts that are no prose, which few sources have as documents of their own."""
    rows = documents.select("text", "lang", "source").rows()
    good = good_texts(rows, GOOD_A_KIND, seed=7, is_tuning=True)
    columns = [(text.text, text.kind, text.lang) for text in good]
    made = pl.DataFrame(columns, orient="row", schema=["text", "source", "lang"])
    return pl.concat([documents.clear(), made], how="diagonal")


def junk_ids() -> list[str]:
    """Return the ids of documents that were judged to be junk."""
    return read_list(Path(__file__).with_name("junk_in_corpora.txt"))


def half_of(family: str) -> int:
    """Return the half of a family of documents, 0 or 1, by its hash."""
    return hashlib.md5(family.encode()).digest()[0] % 2


def terms_of(texts: pl.Series) -> Table:
    """Return the terms of texts as the filter sees them, normalised; the first is 1."""
    return page_terms(normalize_text(texts, NormalizeConfig()))


def junk_for_training(pages: list[Page], seed: int) -> Samples:
    """Plant junk from the half of the pages that is for tuning."""
    planted: list[Junk] = []
    for kind in KINDS:
        planted += plant_more(kind, pages, JUNK_PER_KIND, seed)
        planted += plant(kind, pages, JUNK_PER_KIND, seed, is_tuning=True)
    return samples_of(planted)


def junk_kept_aside(pages: list[Page]) -> Samples:
    """Plant the junk that balanced_quality.py measures with."""
    planted: list[Junk] = []
    for kind in KINDS:
        planted += plant(kind, pages, ASIDE_PER_KIND, 0, is_tuning=False)
    return samples_of(planted)


def samples_of(planted: list[Junk]) -> Samples:
    """Return the terms and kinds of junk."""
    texts = pl.Series([junk.text for junk in planted])
    return Samples(terms_of(texts), np.array([junk.family.kind for junk in planted]))


def train(clean: Clean, junk: Samples, chosen: Mask) -> Table:
    """Return the weights [terms + 1, kinds] of models of the chosen documents and the junk."""
    negatives = clean.samples.terms[chosen]
    mean = negatives.mean(0)
    deviation = np.concatenate([negatives, junk.terms]).std(0) + 1e-9
    mean[0], deviation[0] = 0, 1
    negatives, positives = (negatives - mean) / deviation, (junk.terms - mean) / deviation
    trust = trust_in(clean.samples.labels[chosen], clean.sources[chosen])
    columns = []
    for kind in KINDS:
        mine = positives[junk.labels == kind]
        terms = np.vstack([mine, negatives])
        is_junk = np.repeat([1.0, 0.0], [len(mine), len(negatives)])
        scaled = regress(terms, is_junk, np.r_[np.full(len(mine), JUNK_WEIGHT), trust])
        weights = scaled / deviation
        weights[0] -= (weights[1:] * mean[1:]).sum()
        columns.append(weights)
    return np.column_stack(columns)


def trust_in(cells: NDArray[np.str_], sources: NDArray[np.str_]) -> Table:
    """Return the weight of each clean document, so that no cell outweighs the others."""
    _, places, counts = np.unique(cells, return_inverse=True, return_counts=True)
    factors = np.array([SOURCE_WEIGHT.get(source, 1.0) for source in sources])
    return np.minimum(1, CELL_WEIGHT / counts[places]) * factors


def regress(terms: Table, is_junk: Table, trust: Table) -> Table:
    """Fit a weighted logistic regression with a penalty on all weights but the first."""
    weights = np.zeros(terms.shape[1])
    for _ in range(STEPS):
        likely = logistic(terms @ weights)
        slope = terms.T @ (trust * (likely - is_junk)) + PENALTY * np.r_[0, weights[1:]]
        curve = (terms * (trust * likely * (1 - likely) + 1e-6)[:, None]).T @ terms
        weights -= np.linalg.solve(curve + PENALTY * np.eye(len(weights)), slope)
    return weights


def logistic(logits: Table) -> Table:
    """Return the likelihood of logits."""
    return np.asarray(1 / (1 + np.exp(-logits.clip(-30, 30))))


def measure(clean: Clean, junk: Samples, aside: Samples) -> None:
    """Print the share of unseen clean text rejected per cell, and of junk kept aside per kind."""
    rejected = np.zeros(len(clean.halves), np.bool_)
    caught = []
    for half in (0, 1):
        weights = train(clean, junk, clean.halves != half)
        mine = clean.halves == half
        for source in np.unique(clean.sources):
            those = mine & (clean.sources == source)
            rejected[those] = judge(
                clean.samples.terms[those], weights, clean.langs[those], domain_of(source)
            )
        caught.append(judge(aside.terms, weights, np.full(len(aside.labels), "-"), "web"))
    print("| clean cell, not seen in training | documents | rejected |\n|---|---:|---:|")
    cells = pl.DataFrame({"cell": clean.samples.labels, "is_rejected": rejected}).group_by("cell")
    shares = cells.agg(pl.len(), pl.col("is_rejected").mean()).filter(
        pl.col("len") >= LEAST_DOCUMENTS
    )
    for cell, count, share in shares.sort("is_rejected", "cell", descending=[True, False]).rows():
        print(f"| {cell} | {count:,} | {share:.1%} |")
    print(
        f"\n{rejected.mean():.2%} of {len(rejected):,} documents\n\n| junk kept aside | rejected |"
    )
    for kind in KINDS:
        print(f"| {kind} | {np.mean([each[aside.labels == kind] for each in caught]):.1%} |")


def domain_of(source: str) -> str:
    """Return the domain that a source of the corpora has."""
    return source if source in BALANCED else "general"


def judge(terms: Table, weights: Table, langs: NDArray[np.str_], domain: str) -> Mask:
    """Say which texts are above a limit of `balanced` on the likelihood of a kind."""
    limits = BALANCED[domain]["rules"]["page"] or {}
    scores = logistic(terms @ weights)
    rejected = np.zeros(len(terms), np.bool_)
    for place, name in enumerate(LIMITS):
        limit = limits.get(f"max_{name}")
        if limit is not None:
            own = limit if isinstance(limit, dict) else {"*": limit}
            rejected |= scores[:, place] > [own.get(lang, own["*"]) for lang in langs]
    return rejected


def write(weights: Table, out: Path) -> None:
    """Write the weights beside the letter pairs of the present file, five digits each."""
    rows = [[float(f"{weight:.5g}") for weight in row] for row in weights]
    names = ["bias", *("*".join(term) for term in load_models().terms)]
    content = json.loads(KINDS_FILE.read_text())
    pairs = ",\n".join(f'"{row}"' for row in content["letter_pairs"])
    table = ",\n".join(
        f"    {json.dumps(name)}: {json.dumps(row)}" for name, row in zip(names, rows, strict=True)
    )
    out.write_text(
        f'{{\n  "letter_pairs": [{pairs}],\n  "kinds": {json.dumps(content["kinds"])},\n'
        f'  "weights": {{\n{table}\n  }}\n}}\n'
    )


if __name__ == "__main__":
    main()
