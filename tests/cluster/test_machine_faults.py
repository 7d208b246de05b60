"""Machines of a cluster that fail in mid-build: each in a network, and with a disk, of its own.

Two nodes of one core in network namespaces, with a head and a Ceph gateway on the other side of a
bridge. `pytest -o log_cli=true` prints the table of docs/how_to/several_machines.md.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from faults.fault_runs import Site, start

from tests.cluster.ray_nodes import RayNodes, cable, ip, prepare_environment
from tests.cluster.test_cluster_on_objects import (
    Machines,
    clean,
    hashes_of_objects,
    site_on,
    wait_for_objects,
)
from tests.rados_gateway import Gateway

__all__ = ["clean"]
pytestmark = pytest.mark.skipif(
    "TOKENMILL_MACHINE_FAULTS" not in os.environ,
    reason="minutes of a quiet machine each; run `TOKENMILL_MACHINE_FAULTS=1 make cluster`",
)
HEAD, FIRST, SECOND = "10.77.0.1", "10.77.0.2", "10.77.0.3"
FULL = 'dd if=/dev/zero of="$TOKENMILL_SCRATCH/fill" bs=4k 2>/dev/null; true'


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # sockets need a short path
    scratch = tmp_path_factory.mktemp("scratch")
    with pytest.MonkeyPatch.context() as patch:
        prepare_environment(folder)
        patch.setenv("TOKENMILL_SCRATCH", str(scratch))
        nodes = RayNodes(folder, own_folder=scratch, own_bytes="64m", bridge=HEAD)
        nodes.start()
        gateway = Gateway(tmp_path_factory.mktemp("ceph"), HEAD)
        for name, value in gateway.environment().items():
            patch.setenv(name, value)
        nodes.add(FIRST, SECOND)
        yield Machines(nodes, gateway)
        nodes.end()
    gateway.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def whole(machines: Machines) -> Machines:
    """All machines and the cable, after what was done to the first node."""
    for node in (FIRST, SECOND):
        if "state UP" not in ip("link", "show", cable(node)):
            ip("link", "set", cable(node), "up")
            machines.nodes.kill(node)
    if FIRST in machines.nodes.running():
        machines.nodes.kill(FIRST)
    machines.nodes.add(*({FIRST, SECOND} - set(machines.nodes.running())))
    return machines


def disturbed(site: Site, disturb: Callable[[], object]) -> tuple[int, float, str]:
    """Build, and disturb that in mid-stage: the exit code, seconds since then, and the output."""
    (site.folder / "output").unlink(missing_ok=True)
    process = start(site)
    wait_for_objects(site, process, "filtered", 1)
    begun = time.monotonic()
    disturb()
    code = process.wait(400)
    return code, time.monotonic() - begun, (site.folder / "output").read_text()


def workers_of(nodes: RayNodes, node: str) -> list[int]:
    """The processes of a node's workers that compute parts."""
    from faults.fault_runs import descendants

    found = []
    for pid in descendants(nodes.running()[node]):
        title = Path(f"/proc/{pid}/cmdline").read_text()
        if title.startswith("ray::") and not title.startswith(("ray::Dash", "ray::Runtime")):
            found.append(pid)
    return found


def tell(fault: str, seconds: float, output: str, code: int) -> None:
    """Print a row of the table."""
    lines = [line for line in output.splitlines() if "10.77." in line]
    logging.getLogger("faults").warning(f"| {fault} | {seconds:.0f} | {code} | {lines[:3]}")


@pytest.mark.parametrize("restored", [30, 0], ids=["restored", "cut"])
def test_a_cut_cable_ends_no_build(
    whole: Machines, tmp_path: Path, clean: dict[str, str], restored: int
) -> None:
    site = site_on(whole, tmp_path / "site", f"cable-{restored}")

    def cut() -> None:
        ip("link", "set", cable(FIRST), "down")
        if restored:
            up = ("link", "set", cable(FIRST), "up")
            threading.Timer(restored, ip, up).start()

    code, seconds, output = disturbed(site, cut)
    tell(f"cable {restored}", seconds, output, code)
    assert code == 0, output[-3000:]
    assert hashes_of_objects(site.url) == clean


def test_a_full_disk_leaves_its_node_out(
    whole: Machines, tmp_path: Path, clean: dict[str, str]
) -> None:
    site = site_on(whole, tmp_path / "site", "full")
    enter = ["nsenter", f"--mount=/proc/{whole.nodes.running()[FIRST]}/ns/mnt", "sh", "-c"]
    code, seconds, output = disturbed(site, lambda: subprocess.run([*enter, FULL], check=True))
    tell("full", seconds, output, code)
    assert code == 0, output[-3000:]
    assert f"({FIRST}) is left out: 2 parts failed" in output
    assert hashes_of_objects(site.url) == clean


def test_a_frozen_worker_ends_no_build(
    whole: Machines, tmp_path: Path, clean: dict[str, str]
) -> None:
    site = site_on(whole, tmp_path / "site", "frozen")

    def freeze() -> None:
        for pid in workers_of(whole.nodes, FIRST):
            os.kill(pid, signal.SIGSTOP)

    code, seconds, output = disturbed(site, freeze)
    tell("frozen", seconds, output, code)
    assert code == 0, output[-3000:]
    assert hashes_of_objects(site.url) == clean
