"""Threads and processes on this machine: a sample of text taken through the stages with both.

The stages are `raw` and `filtered`, half of the CPU time of a build, with the filters of the
shipped sample. Each is timed as it runs in a build: in a process of its own, a fork of the run's
server, from planning to its manifest. Of two amounts of text, a small and a larger one, the seconds
that a stage takes at least and those that grow with its work are told apart.
"""

from __future__ import annotations

import itertools
import json
import math
import multiprocessing
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

import polars as pl
import yaml

from assets.stages import BY_NAME
from pipeline_defs.warm_server import warm_server
from resources.corpus import Corpus
from resources.materialize.materialization import publish_partitions
from resources.settings.pipeline import load_settings
from resources.source_faults import SourceFaults
from resources.stage import partition_names
from resources.store.records import Manifest
from resources.store.store import Store

Kind = Literal["in_process", "processes"]
STAGES = (BY_NAME["raw"], BY_NAME["filtered"])
KINDS: tuple[Kind, ...] = ("in_process", "processes")
SHIPPED = Path(__file__).resolve().parents[2] / "pipeline.yaml"
WORKER_BYTES = 8_000_000  # of text: a second of work for a worker
MOST_BYTES = 128_000_000
SOURCE_BYTES = 4_000_000  # of text from one source
PARTS = 4  # a worker
SMALL = 16  # times less text
ROUNDS = 2  # of which the faster counts: other work slows a round down, nothing speeds one up
CONFIG: dict[str, Any] = {
    "store": "store",
    "sources": [{"name": "sample", "where": "sample.jsonl"}],
    "phases": [{"name": "main", "weights": {"sample": 1.0}}],
    "filters": {"presets": ["balanced"], "pii": {}},
}


@dataclass(frozen=True)
class Timed:
    """One engine over one stage: seconds that it takes at least, and seconds a byte of work."""

    least: float
    per_byte: float


@dataclass(frozen=True)
class StageTrial:
    """One stage with threads and with processes; bytes that its parts read in the trial."""

    stage: str
    work_bytes: int
    threads: Timed
    processes: Timed


@dataclass(frozen=True)
class Trial:
    """Measured stages of a sample of text."""

    text_bytes: int
    is_own_text: bool
    workers: int
    stages: tuple[StageTrial, ...]


def process_bytes(stages: Sequence[StageTrial]) -> float:
    """Return the work in each of some stages from which processes pay; infinity for never."""
    start = sum(each.processes.least - each.threads.least for each in stages)
    gain = sum(each.threads.per_byte - each.processes.per_byte for each in stages)
    if gain <= 0:
        return math.inf if start >= 0 else 0.0
    return max(0.0, start / gain)


def try_engines(corpus: Corpus, workers: int) -> Trial:
    """Time the stages over a sample of a corpus, or of the shipped one if it has no `raw` yet."""
    with ExitStack() as held:
        scratch = Path(held.enter_context(tempfile.TemporaryDirectory()))
        own = list(published_texts(corpus))
        texts = own or list(shipped_texts(scratch))
        size = min(MOST_BYTES, WORKER_BYTES * workers)
        few = write_sample(scratch / "few", texts, size // SMALL, workers)
        much = write_sample(scratch / "much", texts, size, workers)
        held.enter_context(warm_server([stage.name for stage in STAGES]))
        time_stages(few, "warm-up")
        rounds = [(time_stages(few, str(n)), time_stages(much, str(n))) for n in range(ROUNDS)]
    trials = (trial_of(stage.name, rounds) for stage in STAGES)
    return Trial(size, bool(own), workers, tuple(trials))


Seconds = dict[tuple[str, Kind], tuple[int, float]]  # (stage, engine) -> (bytes of work, seconds)


def trial_of(stage: str, rounds: Sequence[tuple[Seconds, Seconds]]) -> StageTrial:
    """Fit the fastest rounds of a stage."""
    timed = []
    for kind in KINDS:
        small, small_seconds = min((few[stage, kind] for few, _ in rounds), key=itemgetter(1))
        large, large_seconds = min((much[stage, kind] for _, much in rounds), key=itemgetter(1))
        per_byte = max(0.0, (large_seconds - small_seconds) / (large - small))
        timed.append(Timed(max(0.0, small_seconds - per_byte * small), per_byte))
    return StageTrial(stage, large, *timed)


def published_texts(corpus: Corpus) -> Iterator[str]:
    """Yield texts of `raw`: the first of the first part of every source that has one."""
    for source in corpus.settings.source_names():
        manifest = corpus.store.newest_or_none("raw", source)
        if manifest is not None and manifest.parts:
            yield from first_texts(corpus, manifest)


def first_texts(corpus: Corpus, manifest: Manifest) -> Iterator[str]:
    """Yield the first SOURCE_BYTES of a manifest's texts."""
    file = corpus.store.part_file(manifest, manifest.parts[0], "documents")
    texts = pl.read_parquet(file.checked(), columns=["text"])
    sizes = texts["text"].str.len_bytes().cast(pl.Int64).cum_sum()
    yield from texts.filter(sizes <= SOURCE_BYTES)["text"]


def shipped_texts(scratch: Path) -> Iterator[str]:
    """Yield the texts of the shipped sample, which is read into a store of its own."""
    corpus = Corpus(load_settings(SHIPPED), SHIPPED, Store(scratch / "shipped"))
    publish_partitions(corpus, STAGES[0], corpus.settings.source_names(), SourceFaults(stops=True))
    yield from published_texts(corpus)


def write_sample(folder: Path, texts: Sequence[str], size: int, workers: int) -> Corpus:
    """Make a corpus of `size` bytes of text, in some parts for every worker."""
    folder.mkdir()
    with open(folder / "sample.jsonl", "w", encoding="utf-8") as file:
        for text in itertools.cycle(texts):
            file.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
            size -= len(text.encode())
            if size <= 0:
                break
        cut = {"part_bytes": file.tell() // (PARTS * workers), "engine": {"workers": workers}}
    path = folder / "pipeline.yaml"
    path.write_text(yaml.safe_dump(CONFIG | cut))
    return Corpus(load_settings(path), path, Store(folder / "store"))


def time_stages(corpus: Corpus, name: str) -> Seconds:
    """Build with threads and with processes, each into a store of its own, stage by stage."""
    stores = {kind: with_engine(corpus, kind, f"{kind}-{name}") for kind in KINDS}
    seconds: Seconds = {}
    for stage, kind in itertools.product(STAGES, KINDS):
        context = multiprocessing.get_context("forkserver")
        with ProcessPoolExecutor(1, mp_context=context) as step:
            step.submit(int).result()  # started
            seconds[stage.name, kind] = step.submit(time_stage, stores[kind], stage.name).result()
    return seconds


def with_engine(corpus: Corpus, kind: Kind, store: str) -> Corpus:
    """Return a corpus with an engine and an empty store."""
    engine = corpus.settings.engine.model_copy(update={"kind": kind})
    settings = corpus.settings.model_copy(update={"engine": engine})
    return replace(corpus, settings=settings, store=Store(corpus.store.root.with_name(store)))


def time_stage(corpus: Corpus, name: str) -> tuple[int, float]:
    """Build a stage; return the bytes that its parts read, and the seconds."""
    begin = time.perf_counter()
    stage = BY_NAME[name]
    names = partition_names(stage, corpus.settings)
    done = publish_partitions(corpus, stage, names, SourceFaults(stops=True))
    seconds = time.perf_counter() - begin
    return sum(each.task.work_bytes for one in done for each in one.outcomes), seconds
