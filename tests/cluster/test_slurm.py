"""A Slurm cluster runs the script of `corpus slurm`; `make cluster` runs this.

The cluster is real: its controller and two nodes, all of this machine.
"""

import secrets
import socket
import subprocess

import yaml
from builders import hashes
from command_line import until
from faults.fault_runs import CORPUS, make_site, published, run
from prelude import Iterator, Path, os, pytest

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
    yield folder
    for process in reversed(started):
        process.terminate()
        process.wait(60)


def said(*command: str) -> str:
    """What a command of Slurm prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_a_job_that_is_requeued_builds_the_same_bytes(
    slurm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean, site = (make_site(tmp_path / name, "in_process") for name in ("clean", "a site"))
    ending = run(clean)
    assert ending.code == 0, ending.tail
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
    until(lambda: b"2 idle" in subprocess.run(["sinfo", "-ho%D %t"], capture_output=True).stdout)
    script = site.folder / "job.sh"
    script.write_text(said(*CORPUS, "slurm", "--nodes=2"))
    log = site.folder / "job.log"
    job = said("sbatch", "--parsable", f"--output={log}", str(script)).strip()

    def state() -> str:
        return said("squeue", "--noheader", "--states=all", "--format=%T", f"--job={job}").strip()

    until(lambda: published(site.store, "filtered") >= 2 or state() == "FAILED")
    assert state() == "RUNNING", log.read_text()[-3000:]
    said("scancel", "--batch", "--signal=USR1", job)  # as two minutes before its time is up
    until(lambda: state() == "PENDING")
    said("scontrol", "update", f"JobId={job}", "StartTime=now")  # it would wait two minutes
    until(lambda: state() in ("COMPLETED", "FAILED"))
    output = log.read_text()
    assert state() == "COMPLETED", output[-3000:]
    assert "STEP 1.1 ON second CANCELLED" in output  # it was a node of the cluster
    assert "Restarts=1" in said("scontrol", "show", "job", job)
    assert not list(site.folder.glob(".slurm-*"))  # the token
    assert hashes(site.store) == hashes(clean.store)
