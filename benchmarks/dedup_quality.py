"""How well copies are found, by true similarity, next to datatrove and datasketch.

    make .venv/installed-bench
    python benchmarks/dedup_quality.py [folder of corpora] [--bases 600] [--seed 1]

Over the documents of truth_set.py, of which the similarity of every pair is known, each way of
deduplication is run as a whole. Four tables in Markdown:
*recall*: of the pairs with a true similarity in a range, those that are in one cluster;
*settled*: of the pairs with a true similarity of 0.8 or more, those of which at most one stays;
*precision*: of the pairs (removed document, the one that stands for it), and of all pairs inside
clusters, those whose true similarity is at least so much;
*originals*: of the documents that copies were made of and that have a similar pair with another
text, those that are kept, or of which an equal text is; and the kinds of copy that stay instead.
True similarity is Jaccard's, of the sets of word 5-grams as Tokenmill cuts them; datatrove cuts
words otherwise (spaCy) and takes digits for one another.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ.setdefault("POLARS_MAX_THREADS", "1")
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import_module("pipeline_defs")  # what it tells Polars' allocator must come before polars

import numpy as np  # noqa: E402
import polars as pl  # noqa: E402
from dedup_peers import Found, datasketch_minhash, datatrove_minhash, singles  # noqa: E402
from dedup_stages import (  # noqa: E402
    STAGES,
    empty_corpus,
    publish_filtered,
    read_clusters,
    run_stage,
)
from numpy.typing import NDArray  # noqa: E402
from truth_set import TruthSet, truth_set  # noqa: E402

EDGES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SIMILAR = 0.8
LEVELS = (0.8, 0.75, 0.7, 0.5)
PARTS = 4
OURS: dict[str, dict[str, Any]] = {
    "default: 14 x 8, verify exact, 0.8, star": {},
    "default, keep longest": {"keep": ["priority", "ingested", "longest"]},
    "preset datatrove: 14 x 8, verify none": {"preset": "datatrove"},
    "verify signature, 0.8": {"verify": "signature", "clusters": "components"},
    "verify signature, 0.8, star": {"verify": "signature"},
    "verify exact, 0.8, components": {"clusters": "components"},
    "verify exact, 0.7, star": {"threshold": 0.7},
    "preset verified": {"preset": "verified"},
    "preset high-recall": {"preset": "high-recall"},
    "high-recall, components": {"preset": "high-recall", "clusters": "components"},
}
Rows = NDArray[np.int64]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "sample_data")
    parser.add_argument("--bases", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    truth = truth_set(options.folder, bases=options.bases, seed=options.seed)
    megabytes = float(truth.documents["text"].str.len_bytes().sum()) / 1e6
    print(f"{truth.documents.height} documents, {megabytes:.1f} MB of text; ", end="")
    print(f"{truth.pairs.height} pairs with a true similarity of 0.3 or more\n")
    with tempfile.TemporaryDirectory() as scratch:
        found = {name: ours(truth, given, Path(scratch)) for name, given in OURS.items()}
        found |= peers(truth, Path(scratch))
    print_recall(truth, found)
    print_precision(truth, found)
    print_originals(truth, found)
    print_speed(truth, found)


def ours(truth: TruthSet, given: dict[str, Any], scratch: Path) -> Found:
    """Clusters by our stages; the first run of a config is to compile and load."""
    for size in (200, truth.documents.height):
        documents = truth.documents.head(size).with_columns(
            source=pl.lit("truth"), url=pl.lit(None), lang=pl.lit("und"), meta=pl.lit("{}")
        )
        folder = Path(tempfile.mkdtemp(dir=scratch))
        corpus = empty_corpus(folder, ["truth"], workers=1, **given)
        publish_filtered(corpus, "truth", documents, PARTS)
        found = singles(documents.height)
        for stage in STAGES:
            with found.timed(stage):
                run_stage(corpus, stage)
    clusters = read_clusters(corpus)
    rows = [clusters[name].str.to_integer(base=16) for name in ("doc_id", "kept_doc_id")]
    labels = clusters["cluster_id"].str.to_integer(base=16).to_numpy()
    found.survivors[rows[0].to_numpy()] = rows[1].to_numpy()
    found.labels[rows[0].to_numpy()] = labels
    return found


def peers(truth: TruthSet, scratch: Path) -> dict[str, Found]:
    """The same by other tools, as far as they are installed."""
    documents, found = truth.documents, {}
    found["datasketch, 14 x 8"] = datasketch_minhash(documents, 14, 8)
    found["datasketch, 20 x 6"] = datasketch_minhash(documents, 20, 6)
    try:
        found["datatrove, 14 x 8"] = datatrove_minhash(documents, scratch / "datatrove", 14, 8)
    except ImportError as error:
        print(f"datatrove: {error}; make .venv/installed-bench\n")
    return found


def print_recall(truth: TruthSet, found: dict[str, Found]) -> None:
    """Print recall by true similarity, and which pairs are settled."""
    a, b, similarity = (truth.pairs[name].to_numpy() for name in ("a", "b", "jaccard"))
    ranges = [(low, high) for low, high in itertools.pairwise(EDGES)]
    masks = [(similarity >= low) & (similarity < high) for low, high in ranges]
    masks += [similarity >= 1.0, similarity >= SIMILAR]
    names = [f"{low}-{high}" for low, high in ranges] + ["1.0", f"all >= {SIMILAR}"]
    print(f"| recall by true similarity | {' | '.join(names)} | settled >= {SIMILAR} |")
    print("|---|" + "---:|" * (len(names) + 1))
    print(f"| *pairs* | {' | '.join(str(mask.sum()) for mask in masks)} | {masks[-1].sum()} |")
    for name, each in found.items():
        is_found = each.labels[a] == each.labels[b]
        is_removed = each.survivors != np.arange(len(each.survivors))
        is_settled = (is_removed[a] | is_removed[b])[masks[-1]].mean()
        cells = " | ".join(f"{is_found[mask].mean():.4f}" for mask in masks)
        print(f"| {name} | {cells} | {is_settled:.4f} |")


def print_precision(truth: TruthSet, found: dict[str, Found]) -> None:
    """Print the precision of removed documents and of whole clusters."""
    levels = " | ".join(f">= {level}" for level in LEVELS)
    print(f"\n| precision | removed | {levels} | pairs in clusters | {levels} |")
    print("|---|" + "---:|" * (2 * len(LEVELS) + 2))
    for name, each in found.items():
        removed = np.flatnonzero(each.survivors != np.arange(len(each.survivors)))
        kinds = [(removed, each.survivors[removed]), pairs_in_clusters(each.labels)]
        cells = []
        for pairs in kinds:
            similarity = truth.similarity(*pairs)
            cells.append(str(len(similarity)))
            cells += [f"{(similarity >= level - 1e-6).mean():.4f}" for level in LEVELS]
        print(f"| {name} | {' | '.join(cells)} |")


def print_originals(truth: TruthSet, found: dict[str, Found]) -> None:
    """Print how many originals stay, of those that have a similar pair with another text."""
    documents = truth.documents.with_row_index("row")
    texts, kinds = documents["text"], documents["kind"]
    similar = truth.pairs.filter(pl.col("jaccard") >= SIMILAR)
    differs = similar.filter(texts.gather(similar["a"]) != texts.gather(similar["b"]))
    paired = pl.concat([differs["a"], differs["b"].rename("a")]).unique()
    bases = documents.filter(kind="base").filter(pl.col("row").is_in(paired.implode()))
    print("\n| originals | clusters | kept | share | stay instead |\n|---|---:|---:|---:|---|")
    for name, each in found.items():
        survivors = each.survivors[bases["row"].to_numpy()]
        staying = texts.gather(np.unique(survivors))
        lost = pl.Series(survivors).filter(~bases["text"].is_in(staying.implode()))
        winners = Counter(kinds.gather(lost)).most_common(3)
        kept = bases.height - len(lost)
        beaten = ", ".join(f"{kind} {count}" for kind, count in winners)
        print(f"| {name} | {bases.height} | {kept} | {kept / bases.height:.4f} | {beaten} |")


def pairs_in_clusters(labels: Rows) -> tuple[Rows, Rows]:
    """All pairs of rows with the same label."""
    order = np.argsort(labels, kind="stable")
    cuts = np.flatnonzero(np.diff(labels[order])) + 1
    lefts, rights = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for members in np.split(order, cuts):
        if len(members) > 1:
            left, right = np.triu_indices(len(members), 1)
            lefts.append(members[left])
            rights.append(members[right])
    return np.concatenate(lefts), np.concatenate(rights)


def print_speed(truth: TruthSet, found: dict[str, Found]) -> None:
    """Print what it cost, in CPU time of one process."""
    size = float(truth.documents["text"].str.len_bytes().sum()) / 1e6
    print("\n| speed | signatures, MB/s | all, MB/s | documents/s | CPU seconds by step |")
    print("|---|---:|---:|---:|---|")
    for name, each in found.items():
        total = sum(each.seconds.values())
        steps = ", ".join(f"{step} {spent:.2f}" for step, spent in each.seconds.items())
        signed = size / each.seconds["signatures"]
        rate = truth.documents.height / total
        print(f"| {name} | {signed:.1f} | {size / total:.1f} | {rate:.0f} | {steps} |")


if __name__ == "__main__":
    main()
