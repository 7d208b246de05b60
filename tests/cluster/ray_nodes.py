"""A real Ray cluster on loopback: a head without cores, and nodes of one core each.

It ends every Ray process that it sees, so that it is for a process namespace of its own.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from faults.fault_runs import descendants, kill

from resources.settings.engine import EngineConfig

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "127.0.0.1:6399"
HEAD = "127.0.0.1"
RAY = str(Path(sys.executable).with_name("ray"))
SMALL = ("--object-store-memory=80000000", "--disable-usage-stats")
NODE_BYTES = 2_000_000_000
DEADLINE_SECONDS = 120


def prepare_environment(folder: Path) -> None:
    """Let this process, its nodes and their workers share a token, and import the tests."""
    token = folder / "token"
    token.write_text(secrets.token_hex(32))
    os.environ |= {
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests"))),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
        "RAY_DISABLE_IMPORT_WARNING": "1",
    }


@dataclass
class RayNodes:
    """The nodes of a cluster by their addresses on loopback; `folder` has a short path.

    `own_folder`: a path that every node has a disk of its own at.
    """

    folder: Path
    own_folder: Path | None = None

    def start(self, *nodes: str) -> None:
        """Start the head and some nodes."""
        head = ("--head", "--port=6399", "--num-cpus=0", "--include-dashboard=false")
        self.wait_for(self.begin(HEAD, *head, f"--temp-dir={self.folder}"))
        self.add(*nodes)

    def add(self, *nodes: str) -> None:
        """Let nodes join, one by one: two at once on one machine take each other's session."""
        for node in nodes:
            self.wait_for(self.begin_node(node))

    def begin_node(self, node: str) -> subprocess.Popen[bytes]:
        """Begin to let a node join."""
        own = (f"--address={ADDRESS}", "--num-cpus=1", f"--memory={NODE_BYTES}")
        return self.begin(node, *own)

    def begin(self, node: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start Ray for one node."""
        command = [RAY, "start", f"--node-ip-address={node}", *SMALL, *arguments]
        if self.own_folder is not None:
            mount = f'mount -t tmpfs tmpfs {self.own_folder} && exec "$@"'
            command = ["unshare", "--mount", "sh", "-c", mount, "sh", *command]
        with open(self.folder / f"{node}.log", "ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def wait_for(self, starting: subprocess.Popen[bytes]) -> None:
        """Wait until Ray has started."""
        code = starting.wait(DEADLINE_SECONDS)
        logs = "".join(path.read_text()[-2000:] for path in self.folder.glob("*.log"))
        assert code == 0, logs

    def running(self) -> dict[str, int]:
        """Return the process of the raylet of each node."""
        found = {}
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            arguments = arguments_of(path)
            if arguments and arguments[0].endswith("/raylet"):
                named = dict(a.lstrip("-").partition("=")[::2] for a in arguments[1:])
                found[named["node_ip_address"]] = int(path.parent.name)
        return found

    def kill(self, node: str) -> None:
        """Kill a node as a power cut does, with its workers, which would end their part."""
        raylet = self.running()[node]
        for pid in [raylet, *descendants(raylet)]:
            kill(pid)
        if node == HEAD:
            self.kill_head_server()

    def kill_head_server(self) -> None:
        """Kill the server that knows the cluster's nodes, jobs and functions."""
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            if (arguments_of(path) or [""])[0].endswith("/gcs_server"):
                kill(int(path.parent.name))

    def end(self) -> None:
        """Kill all nodes and the head."""
        for node in self.running():
            self.kill(node)
        self.kill_head_server()
        end = time.monotonic() + DEADLINE_SECONDS
        while self.running():
            assert time.monotonic() < end, "nodes do not end"
            time.sleep(0.1)

    def config(self, **ray: str | int | float) -> EngineConfig:
        """Return the settings of an engine on this cluster."""
        return EngineConfig.model_validate({"kind": "ray", "ray": {"address": ADDRESS} | ray})


def arguments_of(path: Path) -> list[str]:
    """Return the command line of a process; nothing if it has just ended."""
    try:
        return path.read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []
