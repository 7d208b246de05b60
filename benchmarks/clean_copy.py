"""Which copy of a document stays: the original, or what has become of it elsewhere.

    python benchmarks/clean_copy.py [folder of corpora] [--bases 1500] [--seed 1]

Real documents, each with damaged copies: one of a kind, the ten of truth_set.py, or one of every
kind. Every cluster is decided by our stages under two keep policies. A cluster counts if the
original has a pair; its original is kept if a document with the same text stays. The table has the
share for each kind, and the kind of the copies that beat it. A third of the documents, and three of
the kinds, were not looked at while the signs of damage were chosen: they have rows of their own.
"""

from __future__ import annotations

import argparse
import html
import os
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ.setdefault("POLARS_MAX_THREADS", "1")
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import_module("pipeline_defs")  # what it tells Polars' allocator must come before polars

import polars as pl  # noqa: E402
from corpus_texts import read_texts  # noqa: E402
from dedup_stages import empty_corpus, publish_filtered, read_clusters, run_stage  # noqa: E402
from truth_set import copies, edited  # noqa: E402

POLICIES: dict[str, dict[str, Any]] = {
    "longest": {"keep": ["priority", "ingested", "longest"]},
    "cleanest": {},
}
STEPS = ("signatures", "band_index", "duplicates")
CHARACTERS = (600, 20_000)
MENU = "Home | Products | Support | About us | Contact\nSign in\nSearch\n"
FOOT = "\nShare this page\nPrivacy policy\nAll rights reserved. Copyright 2019 Example Inc.\n"
Damage = Callable[[str, str, random.Random], str]  # text, text of another page, draws


def wrapped(text: str, other: str, rng: random.Random) -> str:
    """The text between the beginning and the end of another page."""
    words, width = other.split(" "), rng.randrange(10, 40)
    return f"{' '.join(words[:width])}\n{text}\n{' '.join(words[-width:])}"


def misread(text: str, _: str, __: random.Random) -> str:
    """The text's UTF-8 read as Windows-1252, or Latin-1 where that has no such byte."""
    try:
        return text.encode().decode("cp1252")
    except UnicodeDecodeError:
        return text.encode().decode("latin-1")


def hyphenated(text: str, _: str, rng: random.Random) -> str:
    """One word in thirty cut by a hyphen and the end of a line."""

    def cut(match: re.Match[str]) -> str:
        word = match[0]
        return f"{word[:3]}-\n{word[3:]}" if rng.random() < 1 / 30 else word

    return re.sub(r"[a-z]{6,}", cut, text)


def rewrapped(text: str, _: str, rng: random.Random) -> str:
    """Lines broken at a width that the text was not written for."""
    width = rng.randrange(30, 60)
    return re.sub(rf"(.{{{width}}}\S*) ", "\\1\n", text)


def truncated(text: str, _: str, rng: random.Random) -> str:
    """The beginning of the text: 82 to 95 % of its words, so that it remains a pair."""
    words = text.split(" ")
    return " ".join(words[: round(rng.uniform(0.82, 0.95) * len(words))])


KINDS: dict[str, Damage] = {
    "upper case": lambda text, _, __: text.upper(),
    "lower case": lambda text, _, __: text.lower(),
    "title case": lambda text, _, __: text.title(),
    "white space collapsed": lambda text, _, __: " ".join(text.split()),
    "white space broken": lambda text, _, rng: re.sub(
        r"\s",
        lambda match: match[0] if rng.random() < 0.7 else rng.choice(["  ", " \n", "\n"]),
        text,
    ),
    "misread encoding": misread,
    "entities": lambda text, _, __: html.escape(text.replace("\u00a0", "&nbsp;")),
    "hyphenated": hyphenated,
    "lines wrapped": rewrapped,
    "boilerplate": wrapped,
    "menu and foot": lambda text, _, __: f"{MENU}{text}{FOOT}",
    "truncated": truncated,
    "2 % edited": lambda text, other, rng: edited(
        re.findall(r"\s*\S+|\s+", text), 0.02, other, rng
    ),
}
KINDS_ASIDE: dict[str, Damage] = {
    "menu above": lambda text, _, __: MENU + text,
    "swapped case": lambda text, _, __: text.swapcase(),
    "paragraphs in tags": lambda text, _, __: f"<p>{text}</p>".replace("\n\n", "</p>\n<p>"),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "sample_data")
    parser.add_argument("--bases", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    planted = plant(options.folder, options.bases, options.seed)
    with tempfile.TemporaryDirectory() as scratch:
        for name, given in POLICIES.items():
            survivors = survivors_of(planted, given, Path(scratch) / name)
            print_kept(name, planted, survivors)


def plant(folder: Path, bases: int, seed: int) -> pl.DataFrame:
    """Copies in a random order: doc_id, text, kind, group (as tables name it), base, is_aside."""
    rng = random.Random(seed)
    texts = read_texts(folder)["text"].unique(maintain_order=True)
    pages = texts.filter(texts.str.len_chars().is_between(*CHARACTERS)).to_list()
    rng.shuffle(pages)
    rows = []
    for number, base in enumerate(pages[:bases]):
        group, cluster = cluster_of(number, base, pages[bases:], rng)
        aside = number % 3 == 0 or group in KINDS_ASIDE
        rows += [(text, kind, group, number, aside) for kind, text in cluster]
    rng.shuffle(rows)
    schema = {"text": pl.String, "kind": pl.String, "group": pl.String}
    planted = pl.DataFrame(rows, {**schema, "base": pl.Int64, "is_aside": pl.Boolean}, orient="row")
    ids = pl.Series("doc_id", [f"{row:032x}" for row in range(planted.height)])
    return planted.insert_column(0, ids)


def cluster_of(
    number: int, base: str, others: Sequence[str], rng: random.Random
) -> tuple[str, list[tuple[str, str]]]:
    """The name of a cluster and its documents: one copy, those of truth_set.py, or all kinds."""
    kinds = KINDS | KINDS_ASIDE
    names = [*kinds, "as truth_set.py", "all kinds"]
    name = names[number // 3 % len(names)]
    if name == "as truth_set.py":
        return name, list(copies(base, others, rng))
    chosen = kinds if name == "all kinds" else {name: kinds[name]}
    made = [(kind, damage(base, rng.choice(others), rng)) for kind, damage in chosen.items()]
    return name, [("base", base), *((kind, text) for kind, text in made if text != base)]


def survivors_of(planted: pl.DataFrame, given: dict[str, Any], folder: Path) -> pl.DataFrame:
    """The clusters of all planted documents (doc_id, kept_doc_id), by our stages."""
    documents = planted.select("doc_id", "text").with_columns(
        source=pl.lit("planted"), url=pl.lit(None), lang=pl.lit("und"), meta=pl.lit("{}")
    )
    corpus = empty_corpus(folder, ["planted"], workers=1, **given)
    publish_filtered(corpus, "planted", documents, 4)
    for step in STEPS:
        run_stage(corpus, step)
    return read_clusters(corpus).select("doc_id", "kept_doc_id")


def print_kept(name: str, planted: pl.DataFrame, survivors: pl.DataFrame) -> None:
    """Print the table of one policy."""
    judged = planted.join(survivors, on="doc_id", how="left")
    is_kept = pl.col("kept_doc_id").is_null() | (pl.col("kept_doc_id") == pl.col("doc_id"))
    staying = judged.filter(is_kept).select("text").unique().with_columns(stays=True)
    kinds = planted.select(kept_doc_id="doc_id", winner="kind")
    bases = judged.filter(kind="base").filter(pl.col("kept_doc_id").is_not_null())
    bases = bases.join(staying, on="text", how="left").join(kinds, on="kept_doc_id", how="left")
    print(f"\n| keep {name} | clusters | original kept | aside: clusters | kept | beaten by |")
    print("|---|---:|---:|---:|---:|---|")
    for group, rows in groups_of(bases):
        cells = []
        for part in (rows.filter(~pl.col("is_aside")), rows.filter("is_aside")):
            share = part["stays"].is_not_null().mean()
            cells += [str(part.height), "" if share is None else f"{share:.3f}"]
        beaten = Counter(rows.filter(pl.col("stays").is_null())["winner"]).most_common(3)
        print(f"| {group} | {' | '.join(cells)} | {', '.join(f'{k} {n}' for k, n in beaten)} |")


def groups_of(bases: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """The judged originals of each kind of cluster, and all."""
    for group in bases["group"].unique(maintain_order=True).sort():
        yield str(group), bases.filter(group=group)
    yield "all", bases


if __name__ == "__main__":
    main()
