"""How well the code score tells source code from prose.

    .venv/bin/python benchmarks/code_accuracy.py [folder] [--fit | --leave-out]

Documents come from the JSON-lines and Parquet files below the folder; the truth is the folder that
they are in: `code` or another. A third of them, by the hash of their `meta.family`, is held out
from `--fit`, which prints weights of `assets/filtered/code_score.py`, and the tables are of that
third. `--leave-out` fits without each programming language in turn, and prints what it misses of
that.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import numpy as np
import polars as pl
from corpus_texts import read_texts
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import rankdata

from assets.filtered.code_score import MIDDLE, PAIRS, SIGNS, lexicon, pair_weights, score_code
from assets.filtered.kernels.code_lines import weigh_texts
from assets.text.buffers import text_buffers

ROOT = Path(__file__).resolve().parent.parent
# Hardly a line of code: what the prose of `--fit` is made of.
PROSE = (
    *("debian-pd-books", "eltec-eng", "gitenberg-kjv", "gitenberg-pride-prejudice", "plos"),
    *("nltk-speeches", "standardebooks-pepys", "openstax-anatomy", "openstax-calculus", "udhr"),
    *("openstax-philosophy", "openstax-statistics", "stacks-project", "openlogic", "wikitext2"),
    *("web-anarchism-faq", "web-18f-blog", "web-articlebench", "web-noise", "web-readability"),
    *("web-reviews", "web-trafilatura", "foldoc", "libreoffice-help", "gnome-user-docs"),
    *("eltec-deu", "eltec-fra", "eltec-por", "eltec-spa"),
)
MOST_OF_A_GROUP = 60  # documents of a language or origin that --fit reads
Floats = NDArray[np.float64]


def main() -> None:
    """Measure and print, or fit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "sample_data")
    parser.add_argument("--fit", action="store_true", help="print weights instead of tables")
    parser.add_argument("--leave-out", action="store_true", help="fit without each language")
    options = parser.parse_args()
    documents = read(options.folder)
    if options.leave_out:
        leave_out(documents.filter(~pl.col("is_held_out")), documents.filter("is_held_out"))
        return
    if options.fit:
        fit(documents.filter(~pl.col("is_held_out")))
        return
    held_out = documents.filter("is_held_out")
    held_out = held_out.hstack(score_code(held_out["text"]))
    tables(held_out)


def read(folder: Path) -> pl.DataFrame:
    """text, is_code, group (programming language or origin) and is_held_out of every document."""
    documents = read_texts(folder).filter(pl.col("text").str.contains(r"\S"))
    meta = pl.col("meta")
    own = meta.str.json_path_match("$.meta")  # an object, or its text
    documents = documents.with_columns(
        pl.coalesce(
            meta.str.json_path_match(f"$.meta.{name}"), own.str.json_path_match(f"$.{name}")
        )
        .fill_null("?")
        .alias(name)
        for name in ("origin", "family")
    )
    is_code = pl.col("source") == "code"
    held_out = [hashlib.md5(family.encode()).digest()[0] % 3 == 0 for family in documents["family"]]
    return documents.select(
        "text",
        "source",
        "origin",
        is_code=is_code,
        group=pl.when(is_code).then("lang").otherwise("origin"),
        is_held_out=pl.Series(held_out),
    )


def tables(documents: pl.DataFrame) -> None:
    """Print area under the curve, and errors at 0.5 by language and source."""
    score, is_code = documents["code_score"].to_numpy(), documents["is_code"].to_numpy()
    ranks, num_code = rankdata(score), is_code.sum()
    area = (ranks[is_code].sum() - num_code * (num_code + 1) / 2) / (num_code * (~is_code).sum())
    print(f"{len(score):,} documents held out, {num_code:,} of code. AUC {area:.4f}\n")
    print("| group | documents | wrong at 0.5 | score 5 % | median | 95 % |")
    print("|---|---:|---:|---:|---:|---:|")
    is_wrong = (pl.col("code_score") >= 0.5) != pl.col("is_code")
    for key in (["source"], ["source", "group"]):
        rows = documents.group_by(key).agg(
            pl.len(),
            is_wrong.mean().alias("wrong"),
            *(pl.col("code_score").quantile(q).alias(f"q{q}") for q in (0.05, 0.5, 0.95)),
        )
        for row in rows.sort(key).rows():
            name = " / ".join(map(str, row[: len(key)]))
            shares = " | ".join(f"{value:.3f}" for value in row[len(key) + 1 :])
            print(f"| {name} | {row[len(key)]:,} | {shares} |")


def fit(documents: pl.DataFrame) -> None:
    """Print the weights that fit documents."""
    now = {name: weight for name, (_, _, weight) in PAIRS.items()} | SIGNS
    for name, weight in zip(now, regress(*lines_of(documents)), strict=True):
        print(f"{name:16} {weight:6.1f} (now {now[name]})")


def leave_out(seen: pl.DataFrame, held_out: pl.DataFrame) -> None:
    """Print what weights that fit `seen`, with and without a language, miss of its other files."""
    print("| language | files | missed, fitted with it | without it |")
    print("|---|---:|---:|---:|")
    fitted = regress(*lines_of(seen))
    for (lang,), files in sorted(held_out.filter("is_code").group_by("group")):
        without = regress(*lines_of(seen.filter(~pl.col("is_code") | (pl.col("group") != lang))))
        missed = " | ".join(f"{miss(files['text'], each):.1%}" for each in (fitted, without))
        print(f"| {lang} | {files.height} | {missed} |")


def miss(texts: pl.Series, weights: Floats) -> float:
    """Share of the texts that are no code under other weights."""
    sizes = num_lines(texts)
    pieces = np.split(evidence_of(texts, weights), sizes.cumsum()[:-1])
    return float(np.mean([piece.sum() / max(1, len(piece)) < MIDDLE for piece in pieces]))


def lines_of(documents: pl.DataFrame) -> tuple[Floats, Floats, Floats]:
    """Features, truth and weight of lines; groups of documents and both classes weigh alike."""
    is_used = pl.col("is_code") | pl.col("origin").is_in(PROSE)
    used = documents.filter(is_used).group_by("group", maintain_order=True).head(MOST_OF_A_GROUP)
    names = [*PAIRS, *SIGNS]
    units = np.eye(len(names))  # evidence is linear in the weights: one at a time gives features
    features = np.stack([evidence_of(used["text"], unit) for unit in units], axis=1)
    is_line = evidence_of(used["text"], -units[names.index("BIAS")]) == -1  # no comment
    documents_of = np.repeat(np.arange(used.height), num_lines(used["text"]))[is_line]
    is_code = used["is_code"].to_numpy()
    weights = 1 / np.bincount(documents_of, minlength=used.height)[documents_of]
    per_group = used.select(pl.len().over("group")).to_series().to_numpy()
    weights /= per_group[documents_of]
    truth = is_code[documents_of].astype(float)
    for side in (0, 1):
        weights[truth == side] /= weights[truth == side].sum()
    return features[is_line], truth, weights


def evidence_of(texts: pl.Series, weights: Floats) -> Floats:
    """Evidence of all lines under other weights: those of PAIRS, then those of SIGNS."""
    pairs, signs = np.split(weights, [len(PAIRS)])
    changed = lexicon()._replace(pairs=pair_weights(pairs.tolist()), signs=signs)
    lines = texts.str.split("\n").explode()
    lines = lines.filter(lines.str.contains(r"[^\x00-\x20]"))
    data, starts = text_buffers(lines)
    found = np.zeros((len(lines), 2))
    weigh_texts(starts, data, changed, np.nan, found)
    return found[:, 0]


def num_lines(texts: pl.Series) -> NDArray[np.int64]:
    """Non-blank lines of each text."""
    return texts.str.count_matches(r"(?m)^.*[^\x00-\x20]").to_numpy().astype(np.int64)


def regress(features: Floats, truth: Floats, weights: Floats) -> Floats:
    """Weights of the features that make the truth most likely; the bias is one of them."""

    def loss(guess: Floats) -> tuple[float, Floats]:
        margin = features @ guess
        chance = 1 / (1 + np.exp(-margin))
        cost = (weights * (np.logaddexp(0, margin) - truth * margin)).sum() + 1e-5 * guess @ guess
        return cost, features.T @ (weights * (chance - truth)) + 2e-5 * guess

    start = np.zeros(features.shape[1])
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B").x)


if __name__ == "__main__":
    main()
