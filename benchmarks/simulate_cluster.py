"""Hours and core-hours of a build on 1 to 1,000 nodes, 1 to 100 TB: the tables of docs/scaling.md.

    .venv/bin/python benchmarks/simulate_cluster.py [--tb 1 10 100] [--nodes 1 10 100 1000]
                                                    [--part-mb 256] [--losses 0.001] [--slow 0.02]

Parts are taken by free cores, in order, as the engine `ray` hands them out. Costs of parts are
measured on two cores (docs/performance.md, docs/scaling.md) and multiplied, so all hours are
extrapolations. Simulated:

    parts       CPU seconds per MB of each stage, spread over parts as a lognormal, and those of a
                worker's first part, slower on a machine all of whose cores work
    dispatch    the driver submits a task, and takes its receipt, in 1.2 ms; more than 50,000 parts
                go in as many tasks, and take 0.1 ms each
    store       a part's requests and bytes; each node has a share of its network for each core
    all files   each node copies those of all parts that `band_index` and `duplicates` look into;
                again for the tasks of the next wave if they are more than its scratch has room for
    ranges      pairs of duplicates, merged and sorted by ranges of documents; a node reads all
    one task    links of duplicates, training of the tokenizer, listing and manifest of a stage,
                and a file of each part that the driver reads, many at a time
    index       files that share a node's memory, four at a time
    slow nodes  a share of nodes works at half speed
    losses      nodes are lost with a rate per hour: their parts begin again elsewhere, and another
                node comes after five minutes

The same arguments give the same numbers.
"""

from __future__ import annotations

import argparse
import heapq
import math
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from cores import SLOWDOWN

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]

from assets.stages import BY_NAME  # noqa: E402
from corpus_loader.places.objects import IN_FLIGHT  # noqa: E402
from resources.engine.ray_tasks import MOST_TASKS  # noqa: E402

CORES = 64  # a node
NODE_BYTES_PER_SECOND = 25e9 / 8  # a network of 25 Gb/s
SCRATCH_BYTES = 500e9  # of a node: deploy/kubernetes/ray-values.yaml
REQUEST_SECONDS = 0.15  # first byte: Amazon's guidelines for S3 say 100 to 200 ms
PUTS_PER_SECOND = 3500  # to a prefix, the same guidelines; every partition has a prefix
PARTITIONS = 10  # sources
DISPATCH_SECONDS = 0.0012  # a Ray task
RECEIPT_SECONDS = 0.0001  # a part of several in a task
MANIFEST_SECONDS = 0.0003  # a part: planned, checked, and written into its manifest
STEP_SECONDS = 20.0  # a step joins the cluster
WINDOW_BYTES = 8e6  # of text in a window of `bucketed`, of several parts if they are smaller
PART_SECONDS = 0.006  # CPU, to open, hash and publish a part, however small
SPREAD = 0.3  # sigma of the logarithm of a part's cost
SLOW_SPEED = 0.5
NOTICED_SECONDS, REPLACED_SECONDS = 30.0, 300.0
DOCUMENT_BYTES = 3000
INDEX_FILES, INDEX_SIMULTANEOUS = 4096, 4
INDEX_BYTES, MEMORY_BYTES = 13_440, 32e9  # a document, over all files; `dedup.memory_bytes`
INDEX_SECONDS = 2.1e-6  # a document, in all files of the index
OPEN_SECONDS = 50e-6  # a part's keys, in one file of the index
PAIR_BYTES, LINK_BYTES = 26, 10  # a document: pairs in the index; merged pairs, and members
MERGE_SECONDS, SPLIT_SECONDS = 0.36e-6, 0.08e-6  # a document, in all ranges
RANGE_SHARE = 16  # of the memory for the pairs of a range
LINK_SECONDS = 0.08e-6  # a document, on one core
LISTED, KEYS = 1000, 3  # keys of a LIST request, and keys of a part
TRAINING_SECONDS = 60.0  # of a tokenizer, on a bounded sample
DEDUPLICATION = ("signatures", "band_index", "duplicates", "deduped")


@dataclass(frozen=True)
class Moved:
    """What a stage moves, for each byte of text and for each part.

    read, written  bytes for a byte of text
    waits          requests of a part's task that wait for each other: its files are written at once
    puts           requests that write
    driver         files of a part that the driver reads, or the one task of the tokenizer
    everywhere     bytes for a byte of text that each node copies, in a file of each part
    """

    read: float
    written: float
    waits: int
    puts: int
    driver: float = 0.0
    everywhere: float = 0.0


# Tables are half of their text (zstd); signatures have 748 bytes a document, a token 2. Keys have
# 168 bytes a document, gathered signatures 508 of each document in a cluster, a quarter of all.
# Requests are those that late_store.py counts.
STAGES = {
    "raw": Moved(0.4, 0.5, 3, 2),
    "filtered": Moved(0.5, 0.5, 3, 4, driver=1),
    "signatures": Moved(0.5, 0.25, 3, 3),
    "band_index": Moved(0.06, 0.09, 2, 3, everywhere=0.056),
    "duplicates": Moved(0.35, 0.05, 5, 5, driver=1, everywhere=0.042),
    "deduped": Moved(0.5, 0.5, 5, 3),
    "tokenizer": Moved(0.0, 0.0, 0, 0, driver=1),
    "tokenized": Moved(0.5, 0.5, 4, 4, driver=1),
    "bucketed": Moved(0.01, 0.01, 3, 4),
    "sharded": Moved(0.5, 0.5, 4, 4),
    "mixed": Moved(0.0, 0.0, 0, 0),
}


@dataclass(frozen=True)
class Cluster:
    """Nodes, the share of them that is slow, and losses of a node per hour.

    `request_seconds` is 0 for a disk, of which nothing is copied.
    `slowdown`: CPU seconds of a part, by those on two cores that both work.
    """

    nodes: int
    slow: float = 0.02
    losses: float = 0.001
    cores: int = CORES
    bytes_per_second: float = NODE_BYTES_PER_SECOND
    request_seconds: float = REQUEST_SECONDS
    slowdown: float = SLOWDOWN[16] / SLOWDOWN[2]
    step_seconds: float = STEP_SECONDS
    seed: int = 0


@dataclass(frozen=True)
class StageRun:
    """A simulated stage.

    seconds   from its start to its end
    one_task  of these, in one task while all other cores wait
    dispatch  in which the driver submits its parts, beside their work
    busy      seconds of cores, added up
    lost      parts that were begun and lost
    """

    name: str
    seconds: float
    one_task: float
    dispatch: float
    busy: float
    lost: int


class Nodes:
    """Speeds of the nodes, and the next time at which each is lost."""

    def __init__(self, cluster: Cluster) -> None:
        self.losses_per_second = cluster.losses / 3600
        self.rng = np.random.default_rng([cluster.seed, cluster.nodes])
        is_slow = self.rng.permutation(cluster.nodes) < round(cluster.nodes * cluster.slow)
        self.speeds: list[float] = np.where(is_slow, SLOW_SPEED, 1.0).tolist()
        self.next_loss = [self.draw_loss(0.0) for _ in range(cluster.nodes)]

    def draw_loss(self, after: float) -> float:
        """Draw when a node that works from `after` on is lost."""
        if not self.losses_per_second:
            return math.inf
        return after + float(self.rng.exponential(1 / self.losses_per_second))

    def start(self, node: int, time: float) -> float:
        """Return when a core that is free at a time can begin: later if its node is replaced."""
        while self.next_loss[node] <= time:
            back = self.next_loss[node] + REPLACED_SECONDS
            self.next_loss[node] = self.draw_loss(back)
            time = max(time, back)
        return time


def schedule(
    costs: Sequence[float], nodes: Nodes, cores: int, begin: float, submit: float = DISPATCH_SECONDS
) -> tuple[float, float, int]:
    """Give parts to the core that is free first; return the end, busy seconds and parts lost.

    A part on a node that is lost begins again, after those that wait.
    """
    number = len(nodes.speeds)
    free = [(begin, slot % number) for slot in range(min(len(costs), number * cores))]
    waiting = deque((begin + i * submit, cost) for i, cost in enumerate(costs))
    end, busy, lost = begin, 0.0, 0
    while waiting:
        ready, cost = waiting.popleft()
        since, node = heapq.heappop(free)
        while (start := nodes.start(node, max(since, ready))) > max(since, ready):
            since, node = heapq.heappushpop(free, (start, node))
        stop, loss = start + cost / nodes.speeds[node], nodes.next_loss[node]
        if loss < stop:
            lost += 1
            waiting.append((loss + NOTICED_SECONDS, cost))
            stop = loss
        else:
            end = max(end, stop)
        busy += stop - start
        heapq.heappush(free, (stop, node))
    return end, busy, lost


def simulate(
    total: float, cluster: Cluster, part_bytes: float, stages: Sequence[str] = tuple(STAGES)
) -> list[StageRun]:
    """Simulate a build of `total` bytes of text, stage after stage."""
    nodes, now, runs = Nodes(cluster), 0.0, []
    parts = max(1, round(total / part_bytes))
    for name in stages:
        begin, now = now, now + cluster.step_seconds
        costs = task_costs(name, total, parts, cluster)
        batches = [sum(costs[i::MOST_TASKS]) for i in range(min(len(costs), MOST_TASKS))]
        dispatch = len(batches) * DISPATCH_SECONDS
        if len(costs) > len(batches):
            dispatch += len(costs) * RECEIPT_SECONDS
        submit = dispatch / max(1, len(batches))
        end, busy, lost = schedule(batches, nodes, cores_for(name, cluster), now, submit)
        end = max(end, now + STAGES[name].puts * len(costs) / (PUTS_PER_SECOND * PARTITIONS))
        end += copy_seconds(name, total, parts, cluster)
        if name == "duplicates":
            end, of_ranges, lost_ranges = merge_ranges(total / DOCUMENT_BYTES, cluster, nodes, end)
            busy, lost = busy + of_ranges, lost + lost_ranges
        alone = one_task_seconds(name, total, parts, cluster)
        now = end + alone
        runs.append(StageRun(name, now - begin, alone, dispatch, busy + alone, lost))
    return runs


def merge_ranges(
    documents: float, cluster: Cluster, nodes: Nodes, begin: float
) -> tuple[float, float, int]:
    """Merge the pairs of ranges and sort them by batch, as `schedule` does parts."""
    num_bytes = documents * PAIR_BYTES
    ranges = math.ceil(num_bytes * RANGE_SHARE / MEMORY_BYTES)
    begin += num_bytes / cluster.bytes_per_second  # each node brings all files of pairs
    merged = [documents * MERGE_SECONDS / ranges] * ranges
    end, busy, lost = schedule(merged, nodes, cluster.cores, begin)
    split = [documents * SPLIT_SECONDS / ranges] * ranges
    stop, more, again = schedule(split, nodes, INDEX_SIMULTANEOUS, end)
    return stop, busy + more, lost + again


def cores_for(name: str, cluster: Cluster) -> int:
    """Return the cores of a node that work on a stage at once."""
    return INDEX_SIMULTANEOUS if name == "band_index" else cluster.cores


def index_files(documents: float) -> int:
    """Return the files of the index of so many documents."""
    return min(INDEX_FILES, math.ceil(documents * INDEX_BYTES / MEMORY_BYTES))


def task_costs(name: str, total: float, parts: int, cluster: Cluster) -> list[float]:
    """Return the seconds of a stage's tasks on a core: computing, bytes and requests."""
    if name == "tokenizer":
        return []
    documents = total / DOCUMENT_BYTES
    is_index = name == "band_index"
    tasks = index_files(documents) if is_index else parts
    if name in ("bucketed", "sharded"):
        tasks = min(parts, max(PARTITIONS, math.ceil(total / WINDOW_BYTES)))
    others = 0.0 if is_index else parts / tasks - 1  # files that a task copies, many at a time
    moved = total / tasks * (STAGES[name].read + STAGES[name].written)
    share = cluster.bytes_per_second / cores_for(name, cluster)
    requests = STAGES[name].waits + others / IN_FLIGHT
    waits = moved / share + requests * cluster.request_seconds
    if is_index:
        cpu_seconds = documents * INDEX_SECONDS / tasks + parts * OPEN_SECONDS
        of_few = min(cluster.slowdown, SLOWDOWN[INDEX_SIMULTANEOUS] / SLOWDOWN[2])
        return [cpu_seconds * of_few + waits] * tasks
    outlook = BY_NAME[name].outlook
    rng = np.random.default_rng([cluster.seed, list(STAGES).index(name), parts])
    spread = rng.lognormal(-SPREAD * SPREAD / 2, SPREAD, tasks)
    cpu_seconds = outlook.cpu_per_mb * total / tasks / 1e6 * spread + PART_SECONDS
    cpu_seconds[: cluster.nodes * cluster.cores] += outlook.first_seconds
    costs: list[float] = (cpu_seconds * cluster.slowdown + waits).tolist()
    return costs


def copy_seconds(name: str, total: float, parts: int, cluster: Cluster) -> float:
    """Return the seconds in which each node copies the files of all parts that a stage needs."""
    num_bytes = total * STAGES[name].everywhere
    if not num_bytes or not cluster.request_seconds:
        return 0.0
    tasks = index_files(total / DOCUMENT_BYTES)
    waves = math.ceil(tasks / (cluster.nodes * INDEX_SIMULTANEOUS))
    times = waves if num_bytes > SCRATCH_BYTES else 1
    requests = parts * cluster.request_seconds / IN_FLIGHT
    return times * max(num_bytes / cluster.bytes_per_second, requests)


def one_task_seconds(name: str, total: float, parts: int, cluster: Cluster) -> float:
    """Return the seconds of what a stage does in one task; sources are listed side by side."""
    elsewhere = 1 - 1 / cluster.nodes  # of the parts: other nodes made them
    requests = parts * (KEYS / LISTED / PARTITIONS + elsewhere * STAGES[name].driver / IN_FLIGHT)
    seconds = parts * MANIFEST_SECONDS + requests * cluster.request_seconds
    if name == "duplicates":
        read_and_written = LINK_BYTES / cluster.bytes_per_second
        seconds += total / DOCUMENT_BYTES * (LINK_SECONDS + read_and_written)
    elif name == "tokenizer":
        seconds += TRAINING_SECONDS
    return seconds


def main() -> None:
    """Simulate every size on every number of nodes, and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tb", type=float, nargs="*", default=[1, 10, 100])
    parser.add_argument("--nodes", type=int, nargs="*", default=[1, 10, 100, 1000])
    parser.add_argument("--part-mb", type=float, default=256)
    parser.add_argument("--slow", type=float, default=0.02, help="share of nodes at half speed")
    parser.add_argument("--losses", type=float, default=0.001, help="of a node, per hour")
    options = parser.parse_args()
    print("\n".join(size_table(options)))
    print()
    print("\n".join(stage_table(options)))
    print()
    print("\n".join(one_machine()))


def size_table(options: argparse.Namespace) -> Iterator[str]:
    """Yield a row for every size and number of nodes."""
    yield "| text TB | nodes | hours | core-hours per TB | cores busy | one task | parts lost |"
    yield f"|---:|{'---:|' * 6}"
    for terabytes in options.tb:
        for number in options.nodes:
            cluster = Cluster(number, options.slow, options.losses)
            runs = simulate(terabytes * 1e12, cluster, options.part_mb * 1e6)
            seconds, busy = (sum(run.seconds for run in runs), sum(run.busy for run in runs))
            alone, lost = (sum(run.one_task for run in runs), sum(run.lost for run in runs))
            share = busy / (seconds * number * CORES)
            yield (
                f"| {terabytes:g} | {number:,} | {seconds / 3600:,.2f} | "
                f"{seconds / 3600 * number * CORES / terabytes:,.0f} | {share:.0%} | "
                f"{alone / seconds:.0%} | {lost:,} |"
            )


def stage_table(options: argparse.Namespace) -> Iterator[str]:
    """Yield a row for every stage, of the largest size on the most nodes."""
    terabytes, number = max(options.tb), max(options.nodes)
    cluster = Cluster(number, options.slow, options.losses)
    head = f"{terabytes:g} TB on {number:,} nodes"
    yield f"| {head} | minutes | in one task | to submit | cores busy |"
    yield f"|---|{'---:|' * 4}"
    for run in simulate(terabytes * 1e12, cluster, options.part_mb * 1e6):
        cells = (f"{value / 60:,.1f}" for value in (run.seconds, run.one_task, run.dispatch))
        share = run.busy / (run.seconds * number * CORES)
        yield f"| {run.name} | {' | '.join(cells)} | {share:.0%} |"


def one_machine() -> Iterator[str]:
    """Yield the hours of deduplication of 8 TB on one machine of 128 cores, by its disks' speed."""
    yield f"| GB/s | {' | '.join(DEDUPLICATION)} | hours |"
    yield f"|---:|{'---:|' * (len(DEDUPLICATION) + 1)}"
    for speed in (2e9, 8e9, 16e9):
        cluster = Cluster(1, 0.0, 0.0, 128, speed, 0.0)
        hours = [run.seconds / 3600 for run in simulate(8e12, cluster, 256e6, DEDUPLICATION)]
        cells = (f"{each:.2f}" for each in (*hours, sum(hours)))
        yield f"| {speed / 1e9:g} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
