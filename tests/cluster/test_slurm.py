"""A Slurm cluster runs the script of `corpus slurm`; `make cluster` runs this.

The cluster is real: its controller and two nodes, all of this machine.
"""

import secrets
import signal
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

import yaml
from builders import hashes
from command_line import until
from faults.fault_runs import CORPUS, Site, descendants, make_site, published, run
from prelude import Iterator, Path, os, pytest, sys

from tests.cluster.ray_nodes import arguments_of

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    "TOKENMILL_CLUSTER" not in os.environ, reason="a Slurm cluster; run `make cluster`"
)
CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthInfo=socket={folder}/munge,cred_expire=2
StateSaveLocation={folder}
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/controller.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
MpiDefault=none
KillWait=5
NodeName=first NodeHostname={host} NodeAddr=127.0.0.1 Port=17001 RealMemory=2000
NodeName=second NodeHostname={host} NodeAddr=127.0.0.1 Port=17002 RealMemory=2000
PartitionName=all Nodes=ALL Default=YES
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cluster of two nodes with a core each."""
    folder = tmp_path / "slurm"
    folder.mkdir()
    # Where no address but 127.0.0.1 is up, the resolver that Slurm calls finds none.
    subprocess.run(["ip", "address", "replace", "10.0.0.1/32", "dev", "lo"], check=True)
    (folder / "key").write_bytes(secrets.token_bytes(64))
    (folder / "key").chmod(0o600)
    own = {"socket": "munge", "key-file": "key", "log-file": "log", "pid-file": "pid"}
    places = [f"--{name}={folder}/{file}" for name, file in (own | {"seed-file": "seed"}).items()]
    conf = folder / "slurm.conf"
    conf.write_text(CONF.format(folder=folder, host=socket.gethostname()))
    monkeypatch.setenv("SLURM_CONF", str(conf))
    nodes = [["slurmd", "-D", "-N", name] for name in ("first", "second")]
    commands = [["munged", "--foreground", "--force", *places], ["slurmctld", "-D"], *nodes]
    started = [subprocess.Popen(command) for command in commands]
    until(lambda: b"2 idle" in subprocess.run(["sinfo", "-ho%D %t"], capture_output=True).stdout)
    yield folder
    for process in reversed(started):
        process.terminate()
        process.wait(60)


def said(*command: str) -> str:
    """What a command of Slurm prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def state(job: str) -> str:
    """The state of a job, or of an element of an array."""
    asked = ("--noheader", "--array", "--states=all", "--format=%T", f"--job={job}")
    return said("squeue", *asked).strip()


@dataclass(frozen=True)
class Array:
    """An array that builds a site: its number, and the logs of its elements."""

    job: str
    site: Site

    def log(self, element: int) -> str:
        """The log of an element."""
        path = self.site.folder / f"{element}.log"
        return path.read_text() if path.exists() else ""

    def until(self, is_so: Callable[[], object]) -> None:
        """Wait until something is so, and no element has failed."""
        until(lambda: is_so() or "FAILED" in state(self.job))
        failed = "FAILED" in state(self.job)
        assert not failed, [self.log(element)[-3000:] for element in (1, 2)]


@pytest.fixture
def clean(tmp_path: Path) -> Site:
    """A corpus that one process has built."""
    site = make_site(tmp_path / "clean", "in_process")
    ending = run(site)
    assert ending.code == 0, ending.tail
    return site


def submit(folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> Array:
    """Submit what `corpus slurm` prints for a corpus that is not built."""
    site = make_site(folder / "a site", "in_process")
    config = yaml.safe_load(site.config.read_text())
    config["engine"] = {"kind": "ray", "ray": {"address": "127.0.0.1:9"}}  # not that of the job
    site.config.write_text(yaml.safe_dump(config, sort_keys=False))
    monkeypatch.setattr("command_line.LONGEST_SECONDS", 600)  # Ray may have to start twice
    for name, value in {
        "TOKENMILL_CONFIG": site.config,
        "TOKENMILL_STORE": site.store,
        "DAGSTER_HOME": site.home,
        "PYTHONPATH": ROOT,
    }.items():
        monkeypatch.setenv(name, str(value))
    script = site.folder / "job.sh"
    script.write_text(said(*CORPUS, "slurm", *options))
    log = f"--output={site.folder}/%a.log"
    return Array(said("sbatch", "--parsable", log, str(script)).strip(), site)


def readers(job: str) -> list[int]:
    """Ray's workers on the node of an element that read a part."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        arguments = arguments_of(path)
        if arguments[0].endswith("/raylet") and f"/tokenmill-{job}/" in "".join(arguments):
            for pid in descendants(int(path.parent.name)):
                title = arguments_of(Path(f"/proc/{pid}/cmdline"))[0]
                found += [pid] if title.startswith("ray::raw") else []
    return found


def test_an_array_begins_on_one_node_grows_and_outlives_a_requeue_of_its_head(
    slurm: Path, clean: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = ("--exclusive", "--nodelist=second", "--output=/dev/null", "--wrap=sleep 1000")
    other = said("sbatch", "--parsable", *hold).strip()
    until(lambda: state(other) == "RUNNING")
    array = submit(tmp_path, monkeypatch, "--nodes=2")
    head, second = f"{array.job}_1", f"{array.job}_2"
    array.until(lambda: state(head) == "RUNNING")
    numbers = said("squeue", "--noheader", "--sort=i", "--format=%A", f"--job={array.job}").split()
    array.until(lambda: readers(numbers[0]))
    [part] = readers(numbers[0])
    os.kill(part, signal.SIGSTOP)  # the core of the first node does no more
    assert state(second) == "PENDING"

    said("scancel", other)
    array.until(lambda: published(array.site.store, "filtered"))
    os.kill(part, signal.SIGCONT)
    assert "Ray runtime started" in array.log(2)

    said("scancel", "--batch", "--signal=USR1", head)  # as two minutes before its time is up
    array.until(lambda: state(head) == "PENDING")
    said("scontrol", "update", f"JobId={head}", "StartTime=now")  # it would wait two minutes
    array.until(lambda: (state(head), state(second)) == ("CANCELLED", "COMPLETED"))
    assert "Restarts=1" in said("scontrol", "show", "job", head)
    assert array.log(1).count("Local node IP") == 2  # as the head, then as a node
    assert not list(array.site.folder.glob(".slurm-*"))  # the token
    assert not [name for name in numbers if Path(f"/tmp/tokenmill-{name}").exists()]
    assert hashes(array.site.store) == hashes(clean.store)


def test_an_array_runs_in_containers(
    slurm: Path, clean: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, told = tmp_path / "apptainer", tmp_path / "told"  # it changes PATH alone
    inside = f'echo "$*" >>"{told}"; shift 2; PATH={Path(sys.executable).parent}:/bin exec "$@"'
    program.write_text(f"#!/bin/sh\n{inside}\n")
    program.chmod(0o755)
    array = submit(
        tmp_path, monkeypatch, "--nodes=1", f"--container='{program}' exec tokenmill.sif"
    )
    array.until(lambda: state(f"{array.job}_1") == "COMPLETED")
    commands = told.read_text()
    assert "exec tokenmill.sif env TOKENMILL_CONFIG=" in commands
    assert " ray start " in commands and " corpus build" in commands
    assert hashes(array.site.store) == hashes(clean.store)
