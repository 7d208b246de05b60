"""Machines of a cluster that fail in mid-build: each in a network, and with a disk, of its own.

Two nodes of one core in network namespaces, with a head and a Ceph gateway on the other side of a
bridge. `pytest -o log_cli=true` prints the table of docs/ray.md.
"""

import logging
import signal
import subprocess
import threading
from datetime import datetime

from faults.fault_runs import Site, start
from prelude import Callable, Iterator, Path, os, pytest, time

from resources.engine.map_parts import map_parts
from resources.engine.ray_tasks import end_drivers
from resources.engine.system_errors import SystemFault
from tests.cluster.ray_nodes import RayNodes, cable, ip, prepare_environment
from tests.cluster.test_cluster_on_objects import (
    Machines,
    clean,
    hashes_of_objects,
    site_on,
    wait_for_objects,
)
from tests.engine.engine_workers import Part, square
from tests.rados_gateway import Gateway

__all__ = ["clean"]
pytestmark = pytest.mark.skipif(
    not {"TOKENMILL_CLUSTER", "TOKENMILL_MACHINE_FAULTS"} <= os.environ.keys(),
    reason="minutes of a quiet machine each; run `TOKENMILL_MACHINE_FAULTS=1 make cluster`",
)
HEAD, FIRST, SECOND = "10.77.0.1", "10.77.0.2", "10.77.0.3"
FULL = 'dd if=/dev/zero of="$TOKENMILL_SCRATCH/fill" bs=4k 2>/dev/null; true'


@pytest.fixture(scope="module")
def machines(ray_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    scratch = tmp_path_factory.mktemp("scratch")
    with pytest.MonkeyPatch.context() as patch:
        prepare_environment(ray_folder)
        patch.setenv("TOKENMILL_SCRATCH", str(scratch))
        nodes = RayNodes(ray_folder, own_folder=scratch, own_bytes="64m", bridge=HEAD)
        nodes.start()
        gateway = Gateway(tmp_path_factory.mktemp("ceph"), HEAD)
        for name, value in gateway.environment().items():
            patch.setenv(name, value)
        nodes.add(FIRST, SECOND)
        yield Machines(nodes, gateway)
        nodes.end()
    gateway.stop()


@pytest.fixture
def whole(machines: Machines) -> Machines:
    """All machines and their cables, whatever was done to them."""
    end_drivers()
    if not machines.nodes.head_server():
        machines.nodes.end()
        machines.nodes.start()
    for node in (FIRST, SECOND):
        if "state UP" not in ip("link", "show", cable(node)):
            ip("link", "set", cable(node), "up")
            if node in machines.nodes.running():  # after a minute it has ended by itself
                machines.nodes.kill(node)
    if FIRST in machines.nodes.running():
        machines.nodes.kill(FIRST)
    machines.nodes.add(*({FIRST, SECOND} - set(machines.nodes.running())))
    return machines


def disturbed(site: Site, fault: str, disturb: Callable[[], object]) -> str:
    """Build, disturb that in mid-stage, and return the output of what goes on in 90 s."""
    (site.folder / "output").unlink(missing_ok=True)
    process = start(site)
    wait_for_objects(site, process, "filtered", 1)
    begun = time.time()
    disturb()
    code = process.wait(400)
    output = (site.folder / "output").read_text()
    told = [line for line in output.splitlines() if "another node" in line]
    went_on = datetime.strptime(told[0][:25], "%Y-%m-%d %H:%M:%S %z").timestamp() if told else begun
    tell(fault, went_on - begun, f"in {time.time() - begun:.0f} s", *told)
    assert code == 0, output[-3000:]
    assert went_on - begun < 90
    return output


def workers_of(nodes: RayNodes, node: str) -> list[int]:
    """The processes of a node's workers that compute parts."""
    from faults.fault_runs import descendants

    found = []
    for pid in descendants(nodes.running()[node]):
        title = Path(f"/proc/{pid}/cmdline").read_text()
        if title.startswith("ray::") and not title.startswith(("ray::Dash", "ray::Runtime")):
            found.append(pid)
    return found


def tell(fault: str, seconds: float, *told: str) -> None:
    """Print a row of the table: seconds until the build went on, and what it told."""
    logging.getLogger("faults").warning(f"| {fault} | {seconds:.0f} | {told}")


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
def test_a_lost_head_is_reported_within_20_seconds(
    whole: Machines, tmp_path: Path, end: signal.Signals
) -> None:
    tasks = [Part("part-3", tmp_path)]
    assert len(list(map_parts(square, tasks, whole.nodes.config()))) == 1
    for pid in whole.nodes.head_server():
        os.kill(pid, end)
    begun = time.monotonic()
    try:  # the driver's next call is of the head
        with pytest.raises(SystemFault, match=f"cluster at {HEAD}:6399 was lost: its head") as lost:
            list(map_parts(square, tasks, whole.nodes.config()))
        seconds = time.monotonic() - begun
        tell(f"head {end.name}", seconds, str(lost.value))
    finally:
        whole.nodes.kill_head_server()
    assert seconds < 20


@pytest.mark.parametrize("restored", [30, 0], ids=["restored", "cut"])
def test_a_cut_cable_holds_up_a_build_for_90_seconds_at_most(
    whole: Machines, tmp_path: Path, clean: dict[str, str], restored: int
) -> None:
    site = site_on(whole, tmp_path / "site", f"cable-{restored}")

    def cut() -> None:
        ip("link", "set", cable(FIRST), "down")
        if restored:
            up = ("link", "set", cable(FIRST), "up")
            threading.Timer(restored, ip, up).start()

    disturbed(site, f"cable {restored}", cut)
    assert hashes_of_objects(site.url) == clean


def test_a_full_disk_leaves_its_node_out(
    whole: Machines, tmp_path: Path, clean: dict[str, str]
) -> None:
    site = site_on(whole, tmp_path / "site", "full")
    enter = ["nsenter", f"--mount=/proc/{whole.nodes.running()[FIRST]}/ns/mnt", "sh", "-c"]
    output = disturbed(site, "full", lambda: subprocess.run([*enter, FULL], check=True))
    assert f"({FIRST}) is left out: 2 parts failed" in output
    assert hashes_of_objects(site.url) == clean


def test_a_frozen_worker_holds_up_a_build_for_90_seconds_at_most(
    whole: Machines, tmp_path: Path, clean: dict[str, str]
) -> None:
    site = site_on(whole, tmp_path / "site", "frozen")

    def freeze() -> None:
        for pid in workers_of(whole.nodes, FIRST):
            os.kill(pid, signal.SIGSTOP)

    disturbed(site, "frozen", freeze)
    assert hashes_of_objects(site.url) == clean
