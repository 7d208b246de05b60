"""What the files of deploy/kubernetes rely on, without Kubernetes; `make cluster` runs this.

The head is started as KubeRay does. The driver has a network of its own, as a pod has.
"""

import shutil
import subprocess
import tempfile
from urllib.request import urlopen

import yaml
from builders import hashes
from command_line import until
from faults.fault_runs import BUILD, make_site, run
from prelude import Iterator, Path, os, pytest

from tests.cluster.ray_nodes import RAY, SMALL, prepare_environment

pytestmark = pytest.mark.skipif(
    "TOKENMILL_CLUSTER" not in os.environ, reason="a Ray cluster; run `make cluster`"
)
ROOT = Path(__file__).resolve().parents[2]
HEAD, POD = "10.8.0.1", "10.8.0.2"
AS_KUBERAY = (
    *("--head", "--port=6379", "--dashboard-host=0.0.0.0", "--dashboard-agent-listen-port=52365"),
    *("--metrics-export-port=8080", "--num-cpus=2", "--block"),
)
PROBES = ("52365/api/healthz", "52365/api/local_raylet_healthz", "8265/api/gcs_healthz")


@pytest.fixture
def head() -> Iterator[str]:
    """The address of a head; another network, that of the process whose id is given, reaches it."""
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # sockets need a short path
    prepare_environment(folder)
    pod = subprocess.Popen(["unshare", "--net", "sleep", "600"])
    until(lambda: os.readlink(f"/proc/{pod.pid}/ns/net") != os.readlink("/proc/self/ns/net"))
    inside = f"nsenter --target {pod.pid} --net ip"
    for words in (
        f"ip link add outer type veth peer name inner netns {pod.pid}",
        f"ip address add {HEAD}/24 dev outer",
        "ip link set outer up",
        f"{inside} link set lo up",
        f"{inside} address add {POD}/24 dev inner",
        f"{inside} link set inner up",
    ):
        subprocess.run(words.split(), check=True)
    own = (f"--node-ip-address={HEAD}", f"--temp-dir={folder}")
    values = yaml.safe_load((ROOT / "deploy/kubernetes/ray-values.yaml").read_text())
    variables = {each["name"]: each["value"] for each in values["head"]["containerEnv"]}
    command = [RAY, "start", *own, *SMALL, *AS_KUBERAY]
    process = subprocess.Popen(command, env=os.environ | variables)
    until(lambda: (folder / "ray_current_cluster").exists(), process)
    yield str(pod.pid)
    for each in (process, pod):
        each.terminate()
        each.wait(60)
    subprocess.run(["ip", "link", "delete", "outer"], check=False)
    shutil.rmtree(folder, ignore_errors=True)


def probe(path: str) -> bytes:
    """What a probe of KubeRay gets; nothing while no one answers."""
    try:
        with urlopen(f"http://{HEAD}:{path}", timeout=5) as answer:
            return bytes(answer.read())
    except OSError:
        return b""


def test_probes_are_answered_and_a_driver_in_another_network_builds_the_same_bytes(
    head: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in PROBES:
        until(lambda path=path: b"success" in probe(path))
    values = (ROOT / "deploy/kubernetes/dagster-values.yaml").read_text()
    assert "ray://ray-kuberay-head-svc:10001" in values
    clean, site = (make_site(tmp_path / name, "in_process") for name in ("clean", "site"))
    assert run(clean).code == 0
    monkeypatch.setenv("TOKENMILL_RAY_ADDRESS", f"ray://{HEAD}:10001")
    ending = run(site, ("nsenter", "--target", head, "--net", *BUILD))
    assert ending.code == 0, ending.tail
    assert hashes(site.store) == hashes(clean.store)
