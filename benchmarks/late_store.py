"""A build on an object store whose answers are late, by stage: measured, and as simulated.

    AWS_ENDPOINT_URL=http://127.0.0.1:7480 AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=... \
        .venv/bin/python benchmarks/late_store.py OUT s3://bucket/store [--late 0.1] [--workers 16]

OUT is what enlarge.py made. Its text is built into an empty place of the store, in some PARTS
parts, through a proxy that holds every request back for `--late` seconds. Each stage is built with
an empty scratch, as on a node that made nothing of what it reads. Prints a Markdown table: the
parts of each stage, the requests while its step ran, its seconds, and those that
simulate_cluster.py has for a node with so many workers on the cores of this machine. The last row
is of the driver, as it reads a file of each part that others made.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import threading
import time
import urllib.parse
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from cores import slowdown
from measured_run import ROOT, measure
from simulate_cluster import IN_FLIGHT, Cluster, simulate

sys.path.append(str(ROOT))

BLOCK = 1 << 16
PARTS = 1000
LENGTH = b"content-length:"


@dataclass
class LateProxy:
    """Passes requests on after `late` seconds, and notes when each came."""

    host: str
    port: int
    late: float
    times: list[float] = field(default_factory=list)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle one connection to its end."""
        answers, requests = await asyncio.open_connection(self.host, self.port)
        passing = asyncio.create_task(self.answer(answers, writer))
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.times.append(time.time())
                await asyncio.sleep(self.late)
                requests.write(head)
                lines = head.lower().split(b"\r\n")
                [left] = [int(x[len(LENGTH) :]) for x in lines if x.startswith(LENGTH)] or [0]
                while left and (block := await reader.read(min(BLOCK, left))):
                    left -= len(block)
                    requests.write(block)
                    await requests.drain()
        requests.close()
        await passing

    async def answer(self, answers: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass answers on as they come."""
        with suppress(OSError, asyncio.CancelledError):
            while block := await answers.read(BLOCK):
                writer.write(block)
                await writer.drain()
        writer.close()


@contextmanager
def late_proxy(endpoint: str, late: float) -> Iterator[tuple[LateProxy, str]]:
    """Run a proxy before an endpoint; yield it and its own endpoint."""
    parts = urllib.parse.urlsplit(endpoint)
    proxy = LateProxy(parts.hostname or "", parts.port or 80, late)
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(proxy.handle, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield proxy, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))


def main() -> None:
    """Build, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, help="folder that enlarge.py made")
    parser.add_argument("store", help="an empty place of an object store")
    parser.add_argument("--late", type=float, default=0.1, help="seconds")
    parser.add_argument("--workers", type=int, default=16)
    args = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        late_proxy(os.environ["AWS_ENDPOINT_URL"], args.late) as (proxy, endpoint),
    ):
        folder = Path(name)
        config, text_bytes = write_config(args.out.absolute(), args.workers, folder)
        os.environ |= {
            "TOKENMILL_CONFIG": str(config),
            "TOKENMILL_STORE": args.store,
            "TOKENMILL_SCRATCH": str(folder / "scratch"),
            "DAGSTER_HOME": str(folder),
            "PYTHONPATH": str(ROOT),
            "AWS_ENDPOINT_URL": endpoint,
        }
        cores = len(os.sched_getaffinity(0))
        busy = args.workers / cores * slowdown(cores) / slowdown(2)
        cluster = Cluster(
            1, 0.0, 0.0, args.workers, request_seconds=args.late, slowdown=busy, step_seconds=1.0
        )
        print("\n".join(table(proxy, cluster, text_bytes)))


def write_config(out: Path, workers: int, folder: Path) -> tuple[Path, int]:
    """Write OUT's pipeline.yaml for PARTS parts and so many workers; return it and OUT's bytes."""
    config = yaml.safe_load((out / "pipeline.yaml").read_text())
    files = [path for source in config["sources"] for path in (out / source["where"]).iterdir()]
    num_bytes = sum(path.stat().st_size for path in files)
    config |= {"part_bytes": num_bytes // PARTS, "engine": {"workers": workers}}
    for source in config["sources"]:
        source["where"] = str(out / source["where"])
    path = folder / "pipeline.yaml"
    path.write_text(yaml.safe_dump(config))
    return path, num_bytes


def table(proxy: LateProxy, cluster: Cluster, text_bytes: int) -> Iterator[str]:
    """Yield the lines of the table, stage after stage as they are built."""
    from assets.stages import used_stages
    from pipeline_defs.load_corpus import load_corpus
    from resources.stage import partition_names

    yield "| stage | parts | requests | s | simulated s |\n|---|---:|---:|---:|---:|"
    scratch, settings, num_parts = os.environ["TOKENMILL_SCRATCH"], load_corpus().settings, 0
    total, simulated_total = 0.0, 0.0
    for name, stage in used_stages(settings).items():
        os.environ["TOKENMILL_SCRATCH"] = f"{scratch}-{name}"
        measure([sys.executable, "-m", "pipeline_defs.commands.main", "build", "--to", name], {})
        begin, end = times_of_step(name)
        corpus = load_corpus()
        manifests = [corpus.store.newest(name, each) for each in partition_names(stage, settings)]
        parts = sum(len(manifest.parts) for manifest in manifests)
        num_parts = num_parts or parts
        requests = bisect_left(proxy.times, end) - bisect_left(proxy.times, begin)
        [run] = simulate(text_bytes, cluster, text_bytes / num_parts, [name])
        total, simulated_total = total + end - begin, simulated_total + run.seconds
        yield f"| {name} | {parts} | {requests:,} | {end - begin:.1f} | {run.seconds:.1f} |"
        if name == "filtered":
            of_filtered = manifests
    yield f"| all | | | {total:.1f} | {simulated_total:.1f} |"
    begin = time.time()
    for manifest in of_filtered:
        list(corpus.store.checked_files(manifest, manifest.parts, "summary"))
    seconds, read = time.time() - begin, num_parts * cluster.request_seconds / IN_FLIGHT
    yield f"| the driver's reads | {num_parts} | {num_parts:,} | {seconds:.1f} | {read:.1f} |"


def times_of_step(name: str) -> tuple[float, float]:
    """Return when the step of a stage began and ended in the newest run."""
    import dagster as dg

    with dg.DagsterInstance.get() as instance:
        for run in instance.get_runs(limit=12):
            for step in instance.get_run_step_stats(run.run_id, [name]):
                if step.start_time and step.end_time:
                    return step.start_time, step.end_time
    raise LookupError(name)


if __name__ == "__main__":
    main()
