r"""Rows a second of a Python function per row and of our stages: the tables of docs/performance.md.

    .venv/bin/python benchmarks/engines.py [--rows 1000 10000 100000 1000000] [--plots docs]

Every way cleans, filters and tokenizes the same rows (wikitext_rows.py) with the same tokenizer,
and must keep the same rows and make the same number of tokens:

    python       a function per row, in a loop
    pool.map     the same, by multiprocessing's Pool.map
    ray.remote   the same, by a Ray task per chunk of rows
    in_process, processes, ray
                 the stages raw to tokenized with that `engine.kind`, without deduplication: they
                 also hash, publish and count what they do

Each runs in a process of its own. *start* is for imports, pools, clusters, kernels and 100 rows;
*work* begins with the rows in a file and ends with their tokens. A way that would take more than
--seconds for a size is not run there. CPU seconds are those of work, in all processes.
Ray listens on all interfaces: run this in a network and process namespace of its own,

    unshare -n -p -f --mount-proc sh -c 'ip link set lo up; exec "$@"' sh \
        .venv/bin/python benchmarks/engines.py
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import yaml

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # a process per core is what Pool gives

WARM_UP_ROWS = 100
CHUNK_ROWS = 1000  # of a Ray task
PART_BYTES = 4 << 20  # 4 parts at 1e5 rows of 470 bytes, 100 at 1e6
VOCABULARY, TRAINING_ROWS = 16_000, 20_000
LEAST_WORDS, WORD_LENGTHS, LETTERS = 10, (3.0, 10.0), 0.8  # of the filter, as in CONFIG
END = "<|endoftext|>"
CONTROLS = {code: None for code in (*range(9), *range(14, 32), *range(127, 160), 0xFEFF, 0x200B)}
WAYS = ("python", "pool.map", "ray.remote", "in_process", "processes", "ray")
RAY_MEMORY = 100_000_000
CONFIG: dict[str, Any] = {
    "store": "store",
    "part_bytes": PART_BYTES,
    "sources": [{"name": "wiki", "where": "rows.jsonl"}],
    "phases": [{"name": "main", "weights": {"wiki": 1.0}}],
    "filters": {
        "language": {"backend": "none"},
        "rules": {
            "gopher_quality": {
                "min_words": LEAST_WORDS,
                "min_mean_word_length": WORD_LENGTHS[0],
                "max_mean_word_length": WORD_LENGTHS[1],
                "min_alphabetic_words": LETTERS,
                "max_words": None,
                "max_hash_ratio": None,
                "max_ellipsis_ratio": None,
                "max_bullet_lines": None,
                "max_ellipsis_lines": None,
                "min_stop_words": None,
            }
        },
    },
    "dedup": {"exact": False, "near": False},
    "tokenizer": {"path": "tokenizer.json"},
}


class Found(msgspec.Struct, frozen=True):
    """One way over one number of rows: rows kept, tokens, and seconds of start and work.

    cpu  CPU seconds of work, of all processes
    """

    kept: int
    tokens: int
    start: float
    work: float
    cpu: float


class Clock:
    """Seconds, and CPU seconds of this process and all below it."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), cpu_seconds()

    def since(self, earlier: Clock) -> tuple[float, float]:
        """Return the seconds since an earlier moment."""
        return self.wall - earlier.wall, self.cpu - earlier.cpu


class Run(msgspec.Struct, frozen=True):
    """A measured way: what it found, and bytes of all its processes at most."""

    way: str
    rows: int
    found: Found
    memory: int

    @property
    def rows_per_second(self) -> float:
        """Rows a second of work."""
        return self.rows / self.found.work


# The way of a function per row


class RowFunction:
    """Cleans, filters and tokenizes a row; the tokenizer is loaded once a process."""

    def __init__(self, tokenizer: Path) -> None:
        self.path = tokenizer
        self.tokenizer: Any = None

    def __call__(self, row: str) -> list[int] | None:
        """Return the ids of a row, None if it is rejected."""
        if self.tokenizer is None:
            from tokenizers import Tokenizer

            self.tokenizer = Tokenizer.from_file(str(self.path))
            self.end = self.tokenizer.token_to_id(END)
        text = unicodedata.normalize("NFC", row).translate(CONTROLS).rstrip()
        if not is_prose(text):
            return None
        return [*self.tokenizer.encode(text).ids, self.end]

    def __reduce__(self) -> tuple[Any, ...]:
        return RowFunction, (self.path,)

    def map(self, rows: Sequence[str]) -> list[list[int] | None]:
        """Return the ids of rows."""
        return [self(row) for row in rows]


def is_prose(text: str) -> bool:
    """Return whether a row passes the filter."""
    words = text.split()
    if len(words) < LEAST_WORDS:
        return False
    mean = sum(map(len, words)) / len(words)
    letters = sum(any(map(str.isalpha, word)) for word in words) / len(words)
    return WORD_LENGTHS[0] <= mean <= WORD_LENGTHS[1] and letters >= LETTERS


Mapped = list[list[int] | None]
RowMap = Callable[[Sequence[str]], Mapped]


@contextmanager
def row_map(way: str, function: RowFunction) -> Iterator[RowMap]:
    """Hold what a way maps the function over rows with."""
    if way == "python":
        yield function.map
    elif way == "pool.map":
        with multiprocessing.Pool(num_cores()) as pool:
            yield partial(pool.map, function)
    else:
        with local_ray() as ray:
            remote = ray.remote(RowFunction.map)

            def over_chunks(rows: Sequence[str]) -> Mapped:
                starts = range(0, len(rows), CHUNK_ROWS)
                chunks = [rows[start : start + CHUNK_ROWS] for start in starts]
                done = ray.get([remote.remote(function, chunk) for chunk in chunks])
                return [ids for chunk in done for ids in chunk]

            yield over_chunks


@contextmanager
def local_ray() -> Iterator[Any]:
    """Hold a Ray of this machine."""
    import ray

    environment = {"PYTHONPATH": os.pathsep.join(sys.path[:2])}
    ray.init(
        address="local",
        num_cpus=num_cores(),
        object_store_memory=RAY_MEMORY,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": environment},
    )
    try:
        yield ray
    finally:
        ray.shutdown()


def run_row_function(way: str, folder: Path) -> Found:
    """Map a Python function over the rows of a folder."""
    start = Clock()
    with row_map(way, RowFunction(folder / "tokenizer.json")) as over:
        over([row for _, row in zip(range(WARM_UP_ROWS), read_rows(folder), strict=False)])
        begin = Clock()
        kept = [ids for ids in over(list(read_rows(folder))) if ids is not None]
        end = Clock()
    return Found(len(kept), sum(map(len, kept)), begin.since(start)[0], *end.since(begin))


def read_rows(folder: Path) -> Iterator[str]:
    """Yield the rows of a folder."""
    with open(folder / "rows.jsonl", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)["text"]


# The way of our stages


def run_stages(way: str, folder: Path) -> Found:
    """Build the rows of a folder, from `raw` to `tokenized`."""
    start = Clock()
    import_module("pipeline_defs")  # what it tells Polars' allocator must come before polars
    from assets.stages import used_stages
    from assets.tokenized.asset import STAGE as TOKENIZED
    from pipeline_defs.warm_server import warm_server

    with ExitStack() as held, tempfile.TemporaryDirectory() as scratch:
        few = make_folder(Path(scratch), read_rows(folder), WARM_UP_ROWS, folder)
        stages = used_stages(corpus_of(folder, way).settings).values()
        stages = list(stages)[: [stage.name for stage in stages].index(TOKENIZED.name) + 1]
        if way == "processes":
            held.enter_context(warm_server([stage.name for stage in stages]))
        publish(corpus_of(few, way), stages)
        begin = Clock()
        stats = publish(corpus_of(folder, way), stages)
        end = Clock()
    return Found(stats.rows_kept, stats.tokens, begin.since(start)[0], *end.since(begin))


def corpus_of(folder: Path, way: str) -> Any:
    """Return the corpus of a folder's rows, to be built with an engine."""
    from resources.corpus import Corpus
    from resources.settings.pipeline import load_settings
    from resources.store.store import Store

    path = folder / f"{way}.yaml"
    path.write_text(yaml.safe_dump(CONFIG | {"engine": {"kind": way}}))
    return Corpus(load_settings(path), path, Store(folder / f"store-{way}"))


def publish(corpus: Any, stages: Sequence[Any]) -> Any:
    """Build stages; return the numbers of the last."""
    from resources.materialize.materialization import publish_partitions
    from resources.source_faults import SourceFaults
    from resources.stage import partition_names

    for stage in stages:
        names = partition_names(stage, corpus.settings)
        done = publish_partitions(corpus, stage, names, SourceFaults(stops=True))
    return done[0].manifest.stats


# Measuring


def num_cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0))


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and all below it, those that have ended included."""
    from measured_run import descendants

    ticks = 0
    for pid in (os.getpid(), *descendants(os.getpid())):
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def make_folder(folder: Path, rows: Iterator[str], count: int, tokenizer: Path) -> Path:
    """Write rows and a tokenizer into a folder."""
    folder.mkdir(exist_ok=True)
    with open(folder / "rows.jsonl", "w", encoding="utf-8") as file:
        for _, row in zip(range(count), rows, strict=False):
            file.write(json.dumps({"text": row}) + "\n")
    os.link(tokenizer / "tokenizer.json", folder / "tokenizer.json")
    return folder


def train(folder: Path) -> Path:
    """Train the tokenizer of all ways, on the first rows."""
    from wikitext_rows import wikitext_rows

    from assets.tokenized.tokenizer import train_bpe
    from resources.settings.tokenizer import TokenizerConfig

    rows = list(wikitext_rows(TRAINING_ROWS))
    text = train_bpe([rows], TokenizerConfig(vocab_size=VOCABULARY))
    (folder / "tokenizer.json").write_text(text, encoding="utf-8")
    return folder


def main() -> None:
    """Measure every way over every number of rows; print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sizes = [1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000]
    parser.add_argument("--rows", type=int, nargs="*", default=sizes)
    parser.add_argument("--ways", nargs="*", default=WAYS, choices=WAYS)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--plots", type=Path, help="folder to draw the plots into")
    parser.add_argument("--runs", type=Path, help="file of runs: read if it is there, else written")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        way, folder = options.measure
        found = run_stages if way in ("in_process", "processes", "ray") else run_row_function
        result = found(way, Path(folder))
        Path(folder, f"{way}.json").write_bytes(msgspec.json.encode(result))
        return
    runs = read_runs(options.runs) or list(measure_all(options))
    if options.runs:
        options.runs.write_bytes(msgspec.json.encode(runs))
    from engine_plots import print_tables, write_plots

    print_tables(runs)
    if options.plots:
        options.plots.mkdir(parents=True, exist_ok=True)
        write_plots(runs, options.plots)


def read_runs(file: Path | None) -> list[Run]:
    """Read the runs of a file, none if there is no such file."""
    if file is None or not file.exists():
        return []
    return msgspec.json.decode(file.read_bytes(), type=list[Run])


def measure_all(options: argparse.Namespace) -> Iterator[Run]:
    """Yield a run per way and size."""
    from wikitext_rows import wikitext_rows

    slowest: dict[str, float] = {}  # rows a second at the last size
    with tempfile.TemporaryDirectory() as scratch:
        trained = train(Path(scratch))
        for rows in sorted(options.rows):
            folder = make_folder(Path(scratch, str(rows)), wikitext_rows(rows), rows, trained)
            of_size = []
            for way in options.ways:
                if rows / slowest.get(way, float("inf")) > options.seconds:
                    continue
                run = measured(way, rows, folder)
                slowest[way] = run.rows_per_second
                sys.stderr.write(f"{run}\n")
                of_size.append(run)
                yield run
            same = {(run.found.kept, run.found.tokens) for run in of_size}
            assert len(same) == 1, f"different rows or tokens of {rows} rows: {same}"


def measured(way: str, rows: int, folder: Path) -> Run:
    """Measure one way in a process of its own."""
    from measured_run import measure

    command = [sys.executable, str(HERE / "engines.py"), "--measure", way, str(folder)]
    costs = measure(command, {}, folder)
    found = msgspec.json.decode((folder / f"{way}.json").read_bytes(), type=Found)
    return Run(way, rows, found, costs.together)


if __name__ == "__main__":
    main()
