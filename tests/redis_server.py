"""A private Redis server that appends every entry to a file, from the system package."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from postgres_server import free_port

SECONDS = 20
PASSWORD = "correct/horse@battery"


class RedisServer:
    """A server on the loopback address whose data outlive its process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """URL of the stream `docs`, as a config names it."""
        return f"redis://:${{REDIS_PASSWORD}}@127.0.0.1:{self.port}/docs"

    @property
    def name(self) -> str:
        """Identity of the stream `docs`."""
        return f"redis://127.0.0.1:{self.port}/docs"

    @property
    def client(self) -> Any:
        """A client of our own, which waits for a server that starts."""
        import redis
        from redis.backoff import ConstantBackoff
        from redis.retry import Retry

        retry = Retry(ConstantBackoff(0.05), SECONDS * 20)
        return redis.Redis(
            "127.0.0.1", self.port, password=PASSWORD, protocol=2, retry=retry, socket_timeout=5
        )

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        found = shutil.which("redis-server")
        if found is None:
            pytest.fail("no redis-server: install the system package redis-server")
        options = f"--bind 127.0.0.1 --port {self.port} --appendonly yes --appendfsync always"
        self.process = subprocess.Popen(
            [found, *options.split(), "--dir", str(self.folder), "--requirepass", PASSWORD],
            stdout=subprocess.DEVNULL,
        )
        self.client.ping()

    def kill(self) -> None:
        """Kill the server at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def add(self, records: Sequence[Mapping[str, Any]], key: str = "docs") -> list[str]:
        """Append records, each as JSON in one field; return their ids."""
        with self.client.pipeline(transaction=False) as pipeline:
            for record in records:
                pipeline.xadd(key, {"json": json.dumps(record)})
            return [entry_id.decode() for entry_id in pipeline.execute()]


@contextmanager
def redis_server(folder: Path) -> Iterator[RedisServer]:
    """Run a server, and end it."""
    server = RedisServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()
