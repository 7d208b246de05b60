"""What the files of deploy/kubernetes rely on, without Kubernetes; `make cluster` runs this.

The head is started as KubeRay does. The driver has a network of its own, as a pod has.
"""

import subprocess
from urllib.request import urlopen

import yaml
from builders import hashes
from command_line import until
from faults.fault_runs import BUILD, make_site, run
from prelude import Any, Iterator, Path, os, pytest

from tests.cluster.ray_nodes import RAY, SMALL, prepare_environment

pytestmark = pytest.mark.skipif(
    "TOKENMILL_CLUSTER" not in os.environ, reason="a Ray cluster; run `make cluster`"
)
ROOT = Path(__file__).resolve().parents[2]
KUBERNETES = ROOT / "deploy/kubernetes"
HEAD, POD = "10.8.0.1", "10.8.0.2"
AS_KUBERAY = (
    *("--head", "--port=6379", "--dashboard-host=0.0.0.0", "--dashboard-agent-listen-port=52365"),
    *("--metrics-export-port=8080", "--num-cpus=2", "--block"),
)
PROBES = ("52365/api/healthz", "52365/api/local_raylet_healthz", "8265/api/gcs_healthz")


@pytest.fixture
def head(ray_folder: Path) -> Iterator[str]:
    """The address of a head; another network, that of the process whose id is given, reaches it."""
    prepare_environment(ray_folder)
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
    own = (f"--node-ip-address={HEAD}", f"--temp-dir={ray_folder}")
    values = yaml.safe_load((KUBERNETES / "ray-values.yaml").read_text())
    variables = {each["name"]: each["value"] for each in values["head"]["containerEnv"]}
    command = [RAY, "start", *own, *SMALL, *AS_KUBERAY]
    process = subprocess.Popen(command, env=os.environ | variables)
    until(lambda: (ray_folder / "ray_current_cluster").exists(), process)
    yield str(pod.pid)
    for each in (process, pod):
        each.terminate()
        each.wait(60)
    subprocess.run(["ip", "link", "delete", "outer"], check=False)


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
    values = (KUBERNETES / "dagster-values.yaml").read_text()
    assert "ray://ray-kuberay-head-svc:10001" in values
    clean, site = (make_site(tmp_path / name, "in_process") for name in ("clean", "site"))
    assert run(clean).code == 0
    monkeypatch.setenv("TOKENMILL_RAY_ADDRESS", f"ray://{HEAD}:10001")
    ending = run(site, ("nsenter", "--target", head, "--net", *BUILD))
    assert ending.code == 0, ending.tail
    assert hashes(site.store) == hashes(clean.store)


def pod_of_a_run() -> dict[str, Any]:
    """The pod of a run, as the launcher makes it of what Dagster's chart hands on of our values.

    The launcher gets its own part of `runLauncher`, the code location its `k8s` container context:
    names of secrets, volumes, resources (`dagster-user-deployments/templates/helpers`).
    """
    from dagster_k8s import DagsterK8sJobConfig, construct_dagster_k8s_job
    from dagster_k8s.container_context import K8sContainerContext
    from kubernetes.client import ApiClient

    values = yaml.safe_load((KUBERNETES / "dagster-values.yaml").read_text())
    assert values["runLauncher"]["type"] == "K8sRunLauncher"
    launcher = values["runLauncher"]["config"]["k8sRunLauncher"]
    [location] = values["dagster-user-deployments"]["deployments"]
    of_launcher = {
        "image_pull_policy": launcher["imagePullPolicy"],
        "security_context": launcher["securityContext"],
        "run_k8s_config": {
            "pod_spec_config": launcher["runK8sConfig"]["podSpecConfig"],
            "job_spec_config": launcher["runK8sConfig"]["jobSpecConfig"],
        },
    }
    of_location = {
        "image_pull_policy": location["image"]["pullPolicy"],
        "env_secrets": [each["name"] for each in location["envSecrets"]],
        "volumes": location["volumes"],
        "volume_mounts": location["volumeMounts"],
        "resources": location["resources"],
        "run_k8s_config": {"pod_spec_config": {"automount_service_account_token": True}},
    }
    context = K8sContainerContext.create_from_config({"k8s": of_launcher}).merge(
        K8sContainerContext.create_from_config({"k8s": of_location})
    )
    job = construct_dagster_k8s_job(
        DagsterK8sJobConfig(
            job_image="tokenmill:0.1.0",
            dagster_home="/opt/dagster/dagster_home",
            instance_config_map="dagster-instance",
        ),
        args=["dagster", "api", "execute_run"],
        job_name="dagster-run-1",
        user_defined_k8s_config=context.run_k8s_config,
        component="run_worker",
    )
    template: dict[str, Any] = ApiClient().sanitize_for_serialization(job)["spec"]["template"]
    return template


def test_a_run_is_a_pod_of_its_own_with_the_secrets_and_folders_of_the_code_location() -> None:
    pod = pod_of_a_run()
    [container] = pod["spec"]["containers"]

    assert container["image"] == "tokenmill:0.1.0"
    assert {"secretRef": {"name": "tokenmill"}} in container["envFrom"]
    mounts = {each["mountPath"] for each in container["volumeMounts"]}
    assert {"/etc/tokenmill", "/var/lib/tokenmill/scratch"} <= mounts
    assert container["resources"]["requests"]["ephemeral-storage"] == "20Gi"
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert pod["spec"]["securityContext"]["runAsUser"] == 10001
    budgets = yaml.safe_load_all((KUBERNETES / "disruption-budgets.yaml").read_text())
    selectors = [each["spec"]["selector"]["matchLabels"].items() for each in budgets]
    assert any(selector <= pod["metadata"]["labels"].items() for selector in selectors)
