"""Loader order of a corpus that grew over nights, beside that of one built from nothing.

    .venv/bin/python benchmarks/night_order.py CORPORA [--bytes 100000000] [--nights 8]

A corpus of enlarge.py is built in a temporary folder. Every night each source gets a file of new
documents, 1 % of its bytes, and loses 0.4 % of its documents, the last of an old file. Then the
shards are removed and made once more from nothing: of the same sequences, in one generation each.
The age of a sequence is the night in which it first came. Measured over the epochs of a phase, each
1 where the order is random:

* source, age: chi2/dof of the sources (ages) in every batch against their shares
* trend: chi2/dof of the ages in every sixteenth of an epoch against their shares
* neighbours: how often two neighbours are of one age, over how often chance makes them so
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import xxhash
from corpus_texts import read_texts
from enlarge import (
    MIN_FILES,
    Drawing,
    Recipe,
    by_source,
    enlarge,
    groups_of,
    read_file,
    take,
    write_file,
)
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from assets.bucketed.asset import STAGE as BUCKETED
from assets.sharded.asset import STAGE as SHARDED
from assets.sharded.formats.flat_rows import flat_rows
from assets.sharded.ledger_files import LEDGER, read_ledger
from assets.stages import used_stages
from corpus_loader import CorpusLoader, LoaderOptions
from pipeline_defs.commands.build.init import CONFIG_NAME
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.materialize.materialization import publish_partitions
from resources.source_faults import SourceFaults
from resources.stage import partition_names
from resources.store.mapped_files import map_arrow
from resources.store.records import required_file

STORE = "corpus_store"
NEW_SHARE, REMOVED_SHARE = 0.01, 0.004
SMALL = {
    "sources": "part_bytes: 500000\n\nsources:",
    "buckets": "buckets:\n  window_tokens: 200000",
    "shards": "shards:\n  rewrite_share: 0.3",  # generations with marked rows stay longer
}
BATCH, EPOCHS, STRETCHES = 512, 8, 16
PHASE = "general"
LAST_STAGES = ("sharded", "mixed")
Labels = NDArray[np.int64]


def main() -> None:
    """Build, grow and measure; print a row per corpus."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", type=Path, help="folder of folders of documents")
    parser.add_argument("--bytes", type=int, default=100_000_000)
    parser.add_argument("--nights", type=int, default=8)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "corpus")
        enlarge(args.corpora, out, Recipe(args.bytes, 0))
        config = out / CONFIG_NAME
        config.write_text(with_small_parts(config.read_text()))
        os.environ |= {"TOKENMILL_CONFIG": str(config)}
        texts = read_texts(args.corpora)
        ages: dict[int, int] = {}
        for night in range(args.nights + 1):
            if night:
                grow(out, texts, night)
            build()
            for identity in sequences_of_corpus():
                ages.setdefault(identity, night)
            print(f"night {night}: {generations()}", file=sys.stderr, flush=True)
        print("| shards | source | age | trend | neighbours |\n|---|---:|---:|---:|---:|")
        print(row(f"after {args.nights} nights", out, ages))
        for stage in LAST_STAGES:
            shutil.rmtree(out / STORE / stage)
        build()
        print(row("from nothing", out, ages))


def grow(out: Path, texts: pl.DataFrame, night: int) -> None:
    """Add a file of new documents to each source, and remove some of an old one."""
    for number, (name, documents) in enumerate(by_source(texts)):
        files = sorted((out / name).iterdir())
        size = sum(len(read_file(file)) for file in files[:MIN_FILES])
        rng = np.random.default_rng([night, number])
        drawing = Drawing(name, groups_of(documents), rng)
        new = take(drawing.documents(), int(size * NEW_SHARE))
        write_file(out / name / f"{name}-new-{night:03d}.jsonl", new)
        old = files[night % MIN_FILES]
        lines = read_file(old).splitlines(keepends=True)
        write_file(old, b"".join(lines[: -max(1, int(len(lines) * MIN_FILES * REMOVED_SHARE))]))


def with_small_parts(config: str) -> str:
    """Give a source some twenty windows, as one of 3 GB has: a night changes few of them."""
    for section, lines in SMALL.items():
        config = config.replace(f"\n{section}:\n", f"\n{lines}\n", 1)
    return config


def open_corpus() -> Corpus:
    """Load the corpus, to be built in this process."""
    loaded = load_corpus()
    alone = loaded.settings.engine.model_copy(update={"kind": "in_process"})
    return replace(loaded, settings=loaded.settings.model_copy(update={"engine": alone}))


def build() -> None:
    """Materialize every stage."""
    corpus = open_corpus()
    for stage in used_stages(corpus.settings).values():
        names = partition_names(stage, corpus.settings)
        publish_partitions(corpus, stage, names, SourceFaults(stops=True))


def sequences_of_corpus() -> Iterator[int]:
    """Yield a hash of the tokens of every sequence."""
    corpus = open_corpus()
    store = corpus.store
    for name in corpus.settings.source_names():
        manifest = store.newest(BUCKETED, name)
        for part in manifest.parts:
            file = store.file_of(manifest, required_file(manifest, part, "sequences"))
            tokens = map_arrow(file.checked(), ["tokens"])["tokens"]
            if len(tokens):
                yield from hashes_of(flat_rows(tokens).content.reshape(len(tokens), -1))


def hashes_of(tokens: NDArray[np.integer[Any]]) -> Iterator[int]:
    """Yield a hash of every row of tokens."""
    for row in np.ascontiguousarray(tokens, np.uint32):
        yield xxhash.xxh3_64_intdigest(row.data)


def generations() -> str:
    """Return the rows of the generations of each source, oldest first, and the marked ones."""
    said = []
    corpus = open_corpus()
    store = corpus.store
    for name in corpus.settings.source_names():
        manifest = store.newest(SHARDED, name)
        record = next(part for part in manifest.parts if part.name == LEDGER)
        ledger = read_ledger(store.partition("sharded", name), record).ledger
        rows = "+".join(str(each.rows) for each in ledger.generations)
        said.append(f"{name} {rows} (-{sum(each.removed for each in ledger.generations)})")
    return ", ".join(said)


def row(name: str, out: Path, ages: dict[int, int]) -> str:
    """Return a row of the table."""
    loader = CorpusLoader(out / STORE, PHASE, options=LoaderOptions(drop_last=False))
    samples = len(loader.reader.order)
    columns = []
    for epoch in range(EPOCHS):
        source, age = np.empty(samples, np.int64), np.empty(samples, np.int64)
        for first in range(0, samples, BATCH):
            these = np.arange(first, min(first + BATCH, samples))
            batch = loader.samples(epoch * samples + these)
            source[these] = batch.sources
            age[these] = [ages[identity] for identity in hashes_of(batch.tokens)]
        stretch = samples // STRETCHES
        columns.append((mix(source, BATCH), mix(age, BATCH), mix(age, stretch), neighbours(age)))
    return f"| {name} | {' | '.join(f'{mean:.3f}' for mean in np.mean(columns, axis=0))} |"


def mix(labels: Labels, size: int) -> float:
    """chi2/dof of the labels in stretches of `size` samples against their shares."""
    counted = labels[: len(labels) // size * size].reshape(-1, size)
    shares = np.bincount(labels) / len(labels)
    present = np.flatnonzero(shares)
    counts = (counted[:, :, None] == present).sum(axis=1)
    expected = size * shares[present]
    freedom = len(counted) * (len(present) - 1)
    return float(((counts - expected) ** 2 / expected).sum() / freedom)


def neighbours(labels: Labels) -> float:
    """Return how often neighbours have one label, over how often two random samples do."""
    shares = np.bincount(labels) / len(labels)
    return float((labels[1:] == labels[:-1]).mean() / (shares**2).sum())


if __name__ == "__main__":
    main()
