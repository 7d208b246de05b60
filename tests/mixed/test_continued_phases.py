"""Phases that continue another draw what it left, whatever the split, the lengths and the classes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import Build, open_corpus, write_corpus
from loader_corpus import every_sample
from sharded_corpus import BUCKETS, corpus_with, shard, write_sharded

from assets.mixed.asset import plan_mixed
from assets.mixed.budgets import MixError
from assets.mixed.mixture_files import mixture_of
from corpus_loader import CorpusLoader, LoaderOptions
from corpus_loader.mixture import Mixture, check_version, mixture_json, parse_mixture
from corpus_loader.order import order_seed
from pipeline_defs.commands.train.plan import plan_corpus
from resources.store.records import to_json

MAIN = {"budgets": {"prose": 40, "notes": 8}, "batch_samples": 2}
LATE = {"budgets": {"prose": 40, "notes": 24}, "batch_samples": 2, "continues": "main"}
ALL_ROWS = [*range(100, 106), *range(200, 204), *range(300, 304)]


def mixture(corpus: Any, phase: str) -> Mixture:
    """Return the mixture that `mixed` would write for a phase."""
    [task] = plan_mixed(corpus, phase).tasks
    return mixture_of(task.root, task.payload)


def with_phases(corpus: Any, **phases: dict[str, Any]) -> Any:
    """The same shards under other phases."""
    named = [{"name": name} | config for name, config in phases.items()]
    return open_corpus(write_corpus(corpus.config.parent, buckets=BUCKETS, phases=named))


def seen(loader: CorpusLoader) -> list[int]:
    """The first token of every row that a loader gives: the number of the row."""
    return [int(row[0]) for batch in loader for row in batch.tokens]


def starts(found: Mixture) -> dict[str, int]:
    return {source.name: source.start for source in found.sources}


def drawn(found: Mixture) -> list[tuple[str, int, int]]:
    """(source, epoch, row) of all samples of a phase, in its order."""
    order = found.order(found.seed)
    samples = order.samples(np.arange(len(order)))
    names = [found.sources[number].name for number in samples.source]
    return list(zip(names, samples.epoch.tolist(), samples.row.tolist(), strict=True))


@pytest.mark.parametrize("seed", [None, 5])
def test_two_phases_read_every_row_of_their_sources_once(
    tmp_path: Path, build: Build, seed: int | None
) -> None:
    corpus = corpus_with(tmp_path, MAIN, LATE)
    build(corpus, "mixed")
    root = corpus.store.root

    first = seen(every_sample(root, "main", seed=seed))
    then = seen(every_sample(root, "late", seed=seed))

    assert (len(first), len(then)) == (6, 8)
    assert sorted(first + then) == ALL_ROWS
    assert first != seen(every_sample(root, "main", seed=9))
