"""Where the CPU time of each stage goes: the table of docs/performance.md.

    .venv/bin/python benchmarks/profile_stages.py [pipeline.yaml]

Builds the corpus into a temporary store, all stages one after the other in this process, with one
worker and one thread of Polars, so that every second belongs to one of them. Columns:

    CPU s/GB  seconds per GB of UTF-8 text of the raw documents
    share     of the seconds of all stages
    Parquet   reading and writing Parquet files, most of it zstd
    hash      hashing files
    kernels   loading compiled kernels (or compiling them, on the first run after a change)
    system    in Linux: pages for allocations, reading and writing files
    lock      moments at which Python's interpreter lock was held, of all that were looked at
    fsync     wall seconds per GB in which the disk was waited for; no CPU time

The columns from Parquet to lock are shares of the stage; what is left are our kernels, Polars'
expressions and Python.
"""

from __future__ import annotations

import argparse
import functools
import os
import resource
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ["POLARS_MAX_THREADS"] = "1"
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

import_module("pipeline_defs")  # what it tells Polars' allocator must come before polars

import polars as pl  # noqa: E402

COLUMNS = ("CPU s/GB", "share", "Parquet", "hash", "kernels", "system", "lock", "fsync")
LOOK_SECONDS = 0.005
LATE_SECONDS = 0.002  # after which a thread that wakes up has waited for the lock
SWITCH_SECONDS = 0.02  # for which a thread keeps the lock that another one waits for


@dataclass
class Profile:
    """Seconds of one stage by kind, and the moments at which the lock was looked at."""

    cpu: float = 0.0
    system: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    looks: int = 0
    held: int = 0


def main() -> None:
    """Profile and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", nargs="?", type=Path, default=ROOT / "pipeline.yaml")
    config = parser.parse_args().config.absolute()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "dagster")
        home.mkdir()
        os.environ |= {
            "TOKENMILL_CONFIG": str(config),
            "TOKENMILL_STORE": str(Path(folder, "store")),
            "DAGSTER_HOME": str(home),
        }
        profiles, gigabytes = profile_build()
    print(f"{gigabytes * 1e3:,.1f} MB of text, one core:\n")
    for line in table(profiles, gigabytes):
        print(line)


def profile_build() -> tuple[dict[str, Profile], float]:
    """Build every stage; return their profiles, and the GB of text."""
    from assets.raw.asset import STAGE as RAW
    from assets.stages import used_stages
    from pipeline_defs.load_corpus import load_corpus
    from resources.materialize.materialization import publish_partitions
    from resources.source_faults import SourceFaults
    from resources.stage import partition_names

    loaded = load_corpus()
    alone = loaded.settings.engine.model_copy(update={"kind": "in_process", "workers": 1})
    settings = loaded.settings.model_copy(update={"engine": alone})
    corpus = replace(loaded, settings=settings)
    profiles: dict[str, Profile] = {}
    with seconds_by_kind() as kinds, looking_at_the_lock() as looks:
        for stage in used_stages(settings).values():
            kinds.clear(), looks.clear()
            before = resource.getrusage(resource.RUSAGE_SELF)
            partitions = partition_names(stage, settings)
            publish_partitions(corpus, stage, partitions, SourceFaults(stops=True))
            after = resource.getrusage(resource.RUSAGE_SELF)
            system = after.ru_stime - before.ru_stime
            cpu = after.ru_utime - before.ru_utime + system
            profiles[stage.name] = Profile(cpu, system, Counter(kinds), looks["all"], looks["held"])
    newest = [corpus.store.newest(RAW, name) for name in settings.source_names()]
    return profiles, sum(manifest.stats.bytes for manifest in newest) / 1e9


@contextmanager
def seconds_by_kind() -> Iterator[Counter[str]]:
    """Count the seconds that calls of each kind take, in the whole process."""
    from numba.core.dispatcher import Dispatcher

    from resources.store import disk

    counted: Counter[str] = Counter()
    replaced = [
        (pl, "read_parquet", timed(pl.read_parquet, "Parquet", counted)),
        (pl.DataFrame, "write_parquet", timed(pl.DataFrame.write_parquet, "Parquet", counted)),
        (Dispatcher, "compile", timed(Dispatcher.compile, "kernels", counted)),
        (os, "fsync", timed(os.fsync, "fsync", counted, time.perf_counter)),
    ]
    hashing = timed(disk.hash_file, "hash", counted)
    users = [module for module in sys.modules.values() if vars(module).get("hash_file")]
    replaced += [(module, "hash_file", hashing) for module in users]
    originals = [(place, name, getattr(place, name)) for place, name, _ in replaced]
    for place, name, function in replaced:
        setattr(place, name, function)
    try:
        yield counted
    finally:
        for place, name, function in originals:
            setattr(place, name, function)


def timed(
    function: Callable[..., Any],
    kind: str,
    counted: Counter[str],
    clock: Callable[[], float] = time.process_time,
) -> Callable[..., Any]:
    """Return the function, with its seconds added to a kind."""

    running: list[object] = []  # a kernel compiles those that it calls: the outermost call counts

    @functools.wraps(function)
    def with_clock(*args: Any, **kwargs: Any) -> Any:
        if running:
            return function(*args, **kwargs)
        running.append(kind)
        start = clock()
        try:
            return function(*args, **kwargs)
        finally:
            running.clear()
            counted[kind] += clock() - start  # type: ignore[assignment]

    return with_clock


@contextmanager
def looking_at_the_lock() -> Iterator[Counter[str]]:
    """Count the moments at which a thread that wakes up has to wait for the interpreter lock."""
    looks: Counter[str] = Counter()
    stop, before = threading.Event(), sys.getswitchinterval()

    def look() -> None:
        while not stop.is_set():
            start = time.perf_counter()
            time.sleep(LOOK_SECONDS)
            looks["all"] += 1
            looks["held"] += time.perf_counter() - start > LOOK_SECONDS + LATE_SECONDS

    sys.setswitchinterval(SWITCH_SECONDS)
    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield looks
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(before)


def table(profiles: dict[str, Profile], gigabytes: float) -> Iterator[str]:
    """Yield the lines of a table in Markdown: a row per stage, and one of all."""
    yield f"| stage | {' | '.join(COLUMNS)} |"
    yield f"|---|{'---:|' * len(COLUMNS)}"
    whole = Profile()
    for each in profiles.values():
        whole.cpu, whole.system = whole.cpu + each.cpu, whole.system + each.system
        whole.looks, whole.held = whole.looks + each.looks, whole.held + each.held
        whole.kinds += each.kinds
    for name, each in {**profiles, "all": whole}.items():
        spent = each.cpu or 1e-9
        shares = [each.cpu / whole.cpu]
        shares += [each.kinds[kind] / spent for kind in ("Parquet", "hash", "kernels")]
        shares += [each.system / spent, each.held / max(1, each.looks)]
        cells = [f"{each.cpu / gigabytes:.2f}", *(f"{share:.0%}" for share in shares)]
        cells.append(f"{each.kinds['fsync'] / gigabytes:.2f}")
        yield f"| {name} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
