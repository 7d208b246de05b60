"""`corpus shards`: the reads of a training job, without reading a token.

corpus shards simulate --world 64 --batch 8                        the first phase, one epoch of it
corpus shards simulate --phase general --world 64 --steps 1000 --cache-gb 50

The order is the loader's own, computed from the mixture: nothing is sampled or guessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
import numpy as np
import numpy.typing as npt
from cyclopts import Parameter
from cyclopts.types import PositiveFloat, PositiveInt

from assets.mixed.simulated_reads import Job, Reads
from corpus_loader.find_mixture import find_mixture, with_samples
from corpus_loader.mixture import Mixture
from corpus_loader.order import PhaseOrder
from corpus_loader.places.errors import CorpusError
from corpus_loader.reader import LoaderOptions, Reader
from corpus_loader.split import Split
from pipeline_defs.commands.terminal import print_json, print_table, say
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError, check_name
from resources.store.loader_files import StoreFiles

SHOWN_SAMPLES = 8
BLOCK_SAMPLES = 1 << 16  # of the order at a time: 0.3 us each


class SimulatedSource(msgspec.Struct, frozen=True):
    """A source of the phase: the share of samples that was asked for, and that the steps have."""

    planned_share: float
    share: float


class Simulated(msgspec.Struct, frozen=True, kw_only=True):
    """Steps of a training job over a phase.

    first_samples    source, shard and row of the first samples of rank 0
    largest_deviation   of a source's share in any step from the planned one, 0 to 1
    rank_bytes       of token ids that a rank reads in all steps
    shards_of_rank   shards that rank 0 reads from, of `shards`
    shards_of_worker   shards that the first of its workers reads from
    download_bytes   of whole shards to a node with an endless cache, the largest of all nodes
    cached_download_bytes, cache_hits   the same with a cache of `cache_bytes`, and the share of
                     reads of a shard that it answers
    most_step_bytes  of shards that one step downloads to a node
    """

    phase: str
    epoch_samples: int
    steps: int
    job: Job
    sources: dict[str, SimulatedSource]
    first_samples: list[str]
    largest_deviation: float
    rank_bytes: int
    shards: int
    shards_of_rank: int
    shards_of_worker: int
    download_bytes: int
    cache_bytes: int
    cached_download_bytes: int
    cache_hits: float
    most_step_bytes: int


@dataclass(frozen=True)
class JobOptions:
    """Shape of a training job, as options of a command."""

    world: Annotated[PositiveInt, Parameter(help="Ranks of the job.")]
    batch: Annotated[PositiveInt, Parameter(help="Samples of a rank's batch.")] = 8
    workers: Annotated[PositiveInt, Parameter(help="Processes that read for a rank.")] = 1
    ranks_per_node: Annotated[PositiveInt, Parameter(help="Ranks that share a cache.")] = 8

    def job(self) -> Job:
        """Return the job."""
        return Job(self.world, self.batch, min(self.ranks_per_node, self.world), self.workers)


def simulate(
    *,
    options: Annotated[JobOptions, Parameter(name="*")],
    phase: Annotated[str | None, Parameter(help="Phase; without: the first.")] = None,
    steps: Annotated[PositiveInt | None, Parameter(help="Steps; without: an epoch.")] = None,
    cache_gb: Annotated[PositiveFloat, Parameter(help="Cache of a node, 1e9 bytes.")] = 64.0,
    format_: Annotated[
        Literal["table", "json"], Parameter(name="--format", help="Form of the output.")
    ] = "table",
) -> int:
    """Compute and print the steps of a job."""
    corpus = load_corpus()
    known = corpus.settings.phase_names()
    name = phase or next(iter(known), "")
    check_name("phase", name, known)
    try:
        simulated = simulate_job(corpus, name, options.job(), steps, round(cache_gb * 1e9))
    except CorpusError as error:
        raise UsageError(str(error)) from error
    if format_ == "json":
        print_json(simulated)
    else:
        show(simulated)
    return 0


def simulate_job(
    corpus: Corpus, phase: str, job: Job, steps: int | None, cache_bytes: int
) -> Simulated:
    """Take the steps of a job from the start of a phase: an epoch if `steps` is None.

    Raises CorpusError for a phase that is not mixed, or has no full step.
    """
    files = StoreFiles(corpus.store.root)
    mixture = with_samples(find_mixture(files, phase))
    reader = Reader(files, mixture, mixture.seed, LoaderOptions(verify=False))
    split = Split(len(reader.order), 0, job.world_size, job.batch_size, "drop")
    num_steps = len(split) if steps is None else steps
    sizes = [sum(file.bytes for file in shard.files.values()) for shard in reader.shards.shards]
    planned = np.array([source.samples for source in mixture.sources]) / len(reader.order)
    reads = Reads(job, sizes, cache_bytes, planned)
    first = take_steps(reader, mixture, split, num_steps, reads)
    length = mixture.sequence_length or mixture.tokens / mixture.epoch_samples
    token_bytes = np.dtype(mixture.token_dtype).itemsize
    return Simulated(
        phase=phase,
        epoch_samples=len(reader.order),
        steps=num_steps,
        job=job,
        sources={
            source.name: SimulatedSource(float(share), count / reads.samples)
            for source, share, count in zip(
                mixture.sources, planned, reads.drawn.tolist(), strict=True
            )
        },
        first_samples=first,
        largest_deviation=reads.deviation,
        rank_bytes=round(num_steps * job.batch_size * length * token_bytes),
        shards=len(sizes),
        shards_of_rank=len(reads.of_first_rank),
        shards_of_worker=len(reads.of_first_worker),
        download_bytes=max(cache.downloaded_bytes for cache in reads.endless),
        cache_bytes=cache_bytes,
        cached_download_bytes=max(cache.downloaded_bytes for cache in reads.caches),
        cache_hits=reads.cache_hits,
        most_step_bytes=max(cache.most_step_bytes for cache in reads.caches),
    )


def take_steps(
    reader: Reader, mixture: Mixture, split: Split, num_steps: int, reads: Reads
) -> list[str]:
    """Take the steps of a job; return the first samples: source, shard and row."""
    first: list[str] = []
    for starts in starts_of_steps(split, num_steps):
        block = reader.look_up((starts[:, None] + np.arange(split.step_samples)).ravel())
        if not first:
            columns = (each[:SHOWN_SAMPLES] for each in (block.sources, block.shards, block.rows))
            first = [
                f"{mixture.sources[source].name}: {reader.shards.shards[shard].path} row {row}"
                for source, shard, row in zip(*columns, strict=True)
            ]
        shares, order = None, reader.order
        if isinstance(order, PhaseOrder) and order.knots:  # else they are the same in all steps
            begins = starts % len(order)
            shares = order.planned_shares(begins, begins + split.step_samples)
        reads.take(np.array(block.shards, np.int64), block.sources.astype(np.int64), shares)
    return first


def starts_of_steps(split: Split, num_steps: int) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the first positions of steps, some at a time: what fills no step ends its epoch."""
    at_once = max(1, BLOCK_SAMPLES // split.step_samples)
    for start in range(0, num_steps, at_once):
        epoch, step = np.divmod(np.arange(start, min(start + at_once, num_steps)), len(split))
        yield epoch * split.epoch_samples + step * split.step_samples


def show(found: Simulated) -> None:
    """Print the simulated steps for people."""
    rows = (
        (name, f"{source.planned_share:.2%}", f"{source.share:.2%}")
        for name, source in found.sources.items()
    )
    print_table(f"phase {found.phase}", ("source",), ("planned", "in these steps"), rows)
    job = found.job
    epochs = found.steps * job.step_samples / found.epoch_samples
    say(
        f"{found.steps:,} steps of {job.world_size:,} ranks with batches of {job.batch_size:,}: "
        f"{epochs:.2f} epochs of {found.epoch_samples:,} samples",
        f"share of a source in a step: at most {found.largest_deviation:.2%} from the planned one",
        f"a rank reads {found.rank_bytes / 1e6:,.1f} MB of tokens, from {found.shards_of_rank:,} "
        f"of {found.shards:,} shards; one of its {job.workers:,} workers from "
        f"{found.shards_of_worker:,}",
        f"a remote corpus sends a node {found.download_bytes / 1e9:,.2f} GB if its cache keeps "
        f"every shard ({job.num_nodes:,} nodes)",
        f"with a cache of {found.cache_bytes / 1e9:,.1f} GB: "
        f"{found.cached_download_bytes / 1e9:,.2f} GB, {found.cache_hits:.1%} of reads from the "
        f"cache, {found.most_step_bytes / 1e6:,.0f} MB in the worst step",
        "first samples of rank 0:",
        *(f"  {sample}" for sample in found.first_samples),
    )
