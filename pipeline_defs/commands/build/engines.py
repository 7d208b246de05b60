"""`corpus engines`: when threads, processes or Ray pay on this machine, and why.

A sample of text is taken through `raw` and `filtered`, half of the CPU time of a build, with
threads and with processes, and the filters of the shipped sample. Each stage is timed as it runs in
a build: in a process of its own, a fork of the run's server, from planning to its manifest. Of two
amounts of text, a small and a larger one, the seconds that a stage takes at least and those that
grow with its work are told apart.
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
from typing import Annotated, Any, Literal

import msgspec
import polars as pl
import yaml
from cyclopts import Parameter

from assets.stages import BY_NAME
from pipeline_defs.commands.terminal import Json, print_json, print_table, say
from pipeline_defs.load_corpus import load_corpus
from pipeline_defs.warm_server import warm_server
from resources.auto_choice import keep_measured
from resources.corpus import Corpus
from resources.materialize.materialization import publish_partitions
from resources.settings.pipeline import load_settings
from resources.source_faults import SourceFaults
from resources.stage import partition_names
from resources.store.records import Manifest
from resources.store.store import Store

RAY_SECONDS = 15.0  # in which a Ray of this machine starts (docs/engines.md)
MACHINES = (2, 10)
Kind = Literal["in_process", "processes"]
STAGES = (BY_NAME["raw"], BY_NAME["filtered"])
KINDS: tuple[Kind, ...] = ("in_process", "processes")
SHIPPED = Path(__file__).resolve().parents[3] / "pipeline.yaml"
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


class EngineChoice(msgspec.Struct, frozen=True):
    """Measured choice, for programs: bytes of work from which processes pay, null for never."""

    workers: int
    text_bytes: int
    is_own_text: bool
    process_bytes: int | None
    stages: dict[str, int | None]


def engines(
    *,
    keep: Annotated[
        bool, Parameter(help="Let `engine.kind: auto` choose by it.", negative="--no-keep")
    ] = True,
    json: Json = False,
) -> int:
    """Measure threads and processes on a sample of text; the exit code is 0."""
    corpus = load_corpus()
    workers = corpus.settings.engine.num_workers()
    trial = try_engines(corpus, workers)
    found = choice_of(trial)
    file = keep_measured(found.process_bytes) if keep else None
    if json:
        print_json(found)
        return 0
    show(trial)
    say(*advice(trial, found))
    if file is not None:
        say(f"`engine.kind: auto` chooses by this from now on: {file}")
    return 0


def choice_of(trial: Trial) -> EngineChoice:
    """Return the choice that a trial leads to."""
    return EngineChoice(
        trial.workers,
        trial.text_bytes,
        trial.is_own_text,
        whole(process_bytes(trial.stages)),
        {each.stage: whole(process_bytes([each])) for each in trial.stages},
    )


def whole(work: float) -> int | None:
    """Return bytes of work, None for never."""
    return None if math.isinf(work) else math.ceil(work)


def show(trial: Trial) -> None:
    """Print a table of the stages."""
    text = "your own text" if trial.is_own_text else "the shipped sample's text"
    title = f"{trial.text_bytes / 1e6:,.0f} MB of {text}, {trial.workers} workers"
    rows = []
    for each in trial.stages:
        timed = (each.threads, each.processes)
        cells = (f"{n:,.2f}" for one in timed for n in (one.least, one.per_byte * 1e9))
        rows.append((each.stage, *cells, amount(whole(process_bytes([each])))))
    numbers = ("threads s", "and s/GB", "processes s", "and s/GB", "processes from")
    print_table(title, ("stage",), numbers, rows)


def amount(work: int | None) -> str:
    """Return bytes of work in words."""
    return "never" if work is None else f"{work / 1e6:,.0f} MB"


def advice(trial: Trial, found: EngineChoice) -> Iterator[str]:
    """Yield a sentence on each engine."""
    later = sum(each.processes.least - each.threads.least for each in trial.stages)
    a_stage = later / len(trial.stages)
    if found.process_bytes is None:
        yield f"Threads (in_process): for any work; {trial.workers} processes gain nothing here."
    else:
        yield f"Threads (in_process): below {amount(found.process_bytes)} of work in a stage."
        yield f"Processes: from there on. A stage begins {a_stage:.2f} s later, then each worker"
        yield "  has an interpreter of its own, where threads wait for one lock."
    yield f"Ray (ray): by name only, since it needs machines. It starts in {RAY_SECONDS:.0f} s,"
    yield "  and ends sooner than this machine alone from about:"
    for machines in MACHINES:
        size = ray_bytes(trial, machines)
        yield f"  {size / 1e9:,.1f} GB of text on {machines} machines like this one"


def ray_bytes(trial: Trial, machines: int) -> float:
    """Return the bytes of text from which a Ray cluster ends sooner than one machine does."""
    seconds = sum(
        each.work_bytes * min(each.threads.per_byte, each.processes.per_byte)
        for each in trial.stages
    )
    return RAY_SECONDS / (seconds / trial.text_bytes * (1 - 1 / machines))


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
