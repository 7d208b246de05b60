"""Reading a file of another machine: memory over time with a slow consumer, and speed by latency.

    python benchmarks/remote_reading.py [--megabytes 512] [--slow 40] [--latency 0.05]

A server process sends ranges of a file that is on disk. A consumer that takes `--slow` MB/s is
shown over time: MB that it took, MB that were asked for, and the memory of the process, in columns
for a plot. Then one that takes all it gets is timed, with each request `--latency` seconds late.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]
import_module("pipeline_defs")  # what it tells Polars' allocator must come before polars

from assets.raw.places.find_inputs import find_inputs  # noqa: E402
from assets.raw.readers import open_input as opening  # noqa: E402
from assets.raw.readers.input_file import STREAM_END, InputFile  # noqa: E402
from assets.raw.readers.open_input import fetch_of  # noqa: E402
from resources.settings.sources import SourceConfig  # noqa: E402

MB = 1_000_000
LINES = 20
SERVER = """
import os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

path, latency = sys.argv[1], float(sys.argv[2])
size = os.path.getsize(path)

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        first, last = self.headers["Range"].removeprefix("bytes=").split("-")
        start, stop = int(first), int(last) + 1
        time.sleep(latency)
        self.send_response(206)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(stop - start))
        self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{size}")
        self.end_headers()
        with open(path, "rb") as file:
            file.seek(start)
            while start < stop and (data := file.read(min(1 << 20, stop - start))):
                self.wfile.write(data)
                start += len(data)

    def log_message(self, *_):
        pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=512)
    parser.add_argument("--slow", type=float, default=40, help="MB/s of the slow consumer")
    parser.add_argument("--latency", type=float, default=0.05, help="seconds before each answer")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        with path.open("wb") as file:
            for _ in range(options.megabytes):
                file.write(os.urandom(MB))
        with served(path, 0) as found:
            print(f"consumer of {options.slow:g} MB/s, {options.megabytes} MB")
            print(f"{'seconds':>8}{'taken':>8}{'asked':>8}{'RSS MB':>8}")
            consume(found, options.slow)
        with served(path, options.latency) as found:
            print(f"\nconsumer without a limit, answers {options.latency:g} s late")
            for ahead in (0, opening.AHEAD):
                opening.AHEAD = ahead
                start = time.perf_counter()
                consume(found, None)
                speed = options.megabytes / (time.perf_counter() - start)
                print(f"{ahead} windows ahead: {speed:.0f} MB/s")


@contextmanager
def served(path: Path, latency: float) -> Iterator[InputFile]:
    """Serve a file, and find it as planning does."""
    command = [sys.executable, "-c", SERVER, str(path), str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        url = f"http://127.0.0.1:{port}/{path.name}"
        source = SourceConfig.model_validate({"name": "s", "where": url})
        yield find_inputs(source, path.parent, path.parent / "store/_downloads").files[0]
        server.terminate()


def consume(file: InputFile, most: float | None) -> None:
    """Read a file; with a limit in MB/s, print what was taken and asked for, and the memory."""
    fetch, asked, taken, start = fetch_of(file), 0, 0, time.perf_counter()

    def counted(first: int, stop: int) -> bytes:
        nonlocal asked
        asked += stop - first
        return fetch(first, stop)

    shown = 0
    with opening.RangeFile(counted, file.bytes, STREAM_END) as stream:
        while data := stream.read(1 << 20):
            taken += len(data)
            if most is None:
                continue
            time.sleep(max(0.0, taken / MB / most - (time.perf_counter() - start)))
            if taken * LINES // file.bytes > shown:
                shown += 1
                row = (time.perf_counter() - start, taken / MB, asked / MB, resident_mb())
                print("".join(f"{value:8.1f}" for value in row), flush=True)


def resident_mb() -> float:
    """Return the memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MB


if __name__ == "__main__":
    main()
