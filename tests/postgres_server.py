"""A private PostgreSQL server, started from the system's programs."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import randrange

import psutil
import pytest

PROGRAMS = Path("/usr/lib/postgresql")
USER = "dagster"
SETTINGS = "-c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=200"


@dataclass(frozen=True)
class PostgresServer:
    """A server on the loopback address whose data outlive its processes."""

    folder: Path
    port: int
    password: str

    def environment(self) -> dict[str, str]:
        """Variables of deploy/dagster.yaml."""
        return {
            "DAGSTER_POSTGRES_HOST": "127.0.0.1",
            "DAGSTER_POSTGRES_PORT": str(self.port),
            "DAGSTER_POSTGRES_USER": USER,
            "DAGSTER_POSTGRES_PASSWORD": self.password,
            "DAGSTER_POSTGRES_DB": "postgres",
        }

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        settings = f"{SETTINGS} -p {self.port} -k {self.folder}"
        log = str(self.folder / "log")
        run("pg_ctl", "start", "-w", "-D", str(self.data), "-l", log, "-o", settings)

    def kill(self) -> None:
        """Kill the server and the processes of its connections at once, as the OOM killer may."""
        main = psutil.Process(int((self.data / "postmaster.pid").read_text().split()[0]))
        main.suspend()  # or a connection that comes now gets a child, which holds its memory
        processes = [main, *main.children()]
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        psutil.wait_procs(processes, timeout=20)

    @property
    def data(self) -> Path:
        """Folder of the databases."""
        return self.folder / "data"


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Run a server with an empty database, and end it."""
    with tempfile.TemporaryDirectory(prefix="postgres-") as name:  # pytest's own are closed to it
        folder = Path(name)
        server = PostgresServer(folder, free_port(), secrets.token_urlsafe(12))
        password = folder / "password"
        password.write_text(server.password)
        if os.geteuid() == 0:  # the server refuses root
            for path in (folder, password):
                shutil.chown(path, "postgres")
        options = ("-A", "scram-sha-256", "--pwfile", str(password), "--no-sync")
        run("initdb", "-D", str(server.data), "-U", USER, *options)
        server.start()
        try:
            yield server
        finally:
            server.kill()


def run(program: str, *options: str) -> None:
    """Run a program of PostgreSQL; as the user postgres if this one is root."""
    found = sorted(PROGRAMS.glob(f"*/bin/{program}"))
    if not found:
        pytest.fail(f"no {PROGRAMS}/*/bin/{program}: install the system package postgresql")
    command = [str(found[-1]), *options]
    if os.geteuid() == 0:
        command = ["runuser", "-u", "postgres", "--", *command]
    subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True, cwd="/"
    )


def free_port() -> int:
    """A port that nothing listens on, and that Linux gives no client as its own.

    A client that retries while the server is down may otherwise be given the server's own port.
    """
    while True:
        with (
            suppress(OSError),
            socket.create_server(("127.0.0.1", randrange(20000, 32768))) as bound,
        ):
            return int(bound.getsockname()[1])
