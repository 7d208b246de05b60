"""Files of deploy/: what they name exists, what they limit agrees, nothing is open or secret."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from documented import ROOT

DEPLOY = ROOT / "deploy"
SECRET = re.compile(r"PASSWORD|SECRET|ACCESS_KEY")


def read(name: str) -> Any:
    """Content of a YAML file of deploy/."""
    return yaml.safe_load((DEPLOY / name).read_text())


def test_every_file_is_yaml_and_every_variable_of_dagster_is_set_for_containers() -> None:
    files = {path.relative_to(DEPLOY).as_posix() for path in DEPLOY.rglob("*.yaml")}
    environment = read("compose.yaml")["x-tokenmill"]["environment"]
    named = {
        variable
        for name in ("dagster.yaml", "workspace.yaml")
        for variable in re.findall(r"\{env: (\w+)\}", (DEPLOY / name).read_text())
    }
    assert all(all(yaml.safe_load_all((DEPLOY / name).read_text())) for name in files)
    assert len(named) == 7 and named <= set(environment)


def test_only_the_web_server_has_a_port_and_only_on_this_machine() -> None:
    services = read("compose.yaml")["services"]
    ports = {name: each["ports"] for name, each in services.items() if "ports" in each}
    assert ports == {"web": ["127.0.0.1:3000:3000"]}
    assert "corpus ui --workspace" in " ".join(services["web"]["command"])  # with its guard
    values = read("kubernetes/dagster-values.yaml")
    assert not values["ingress"]["enabled"]
    assert values["dagsterWebserver"]["service"]["type"] == "ClusterIP"


def test_no_secret_has_a_value() -> None:
    for service in read("compose.yaml")["services"].values():
        for name, value in service.get("environment", {}).items():
            if SECRET.search(name) and value is not None:  # None: the shell's
                assert re.fullmatch(r"\$\{\w+:\?.+\}", value), name
    for path in (DEPLOY / "kubernetes").glob("*.yaml"):
        assert not re.search(r"(?i)password: *\S", path.read_text())


def test_services_have_limits_and_an_upgrade_replaces_what_is_not_data() -> None:
    compose = read("compose.yaml")
    for name, service in compose["services"].items():
        assert service["mem_limit"] and service["logging"]["options"]["max-file"], name
        assert service["image"] == "tokenmill" or re.fullmatch(
            r"\$\{\w+_IMAGE:-\S+\}", service["image"]
        )
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    volumes = dict(each.split(":")[:2] for each in compose["x-tokenmill"]["volumes"][2:])
    assert volumes["cache"] == re.findall(r"XDG_CACHE_HOME=(\S+)", dockerfile)[0]
    assert volumes["scratch"] == re.findall(r"TOKENMILL_SCRATCH=(\S+)", dockerfile)[0]
    assert volumes["./dagster.yaml"] == f"{volumes['dagster']}/dagster.yaml"
    store = compose["x-tokenmill"]["environment"]["TOKENMILL_STORE"]
    assert store == f"${{TOKENMILL_STORE:-{volumes['store']}}}"
    folders = {folder.removeprefix("/var/lib/") for folder in volumes.values()}
    made = dockerfile.split("install -d", 1)[1]  # a volume begins with the owner of its folder
    assert all(folder in made for folder in folders - {"tokenmill/dagster/dagster.yaml"})
    units = [unit.read_text() for unit in (DEPLOY / "systemd").glob("*.service")]
    assert all(
        "CacheDirectory=tokenmill\nEnvironment=XDG_CACHE_HOME=/var/cache\n" in u for u in units
    )


def test_runs_have_the_same_limits_everywhere() -> None:
    own, shipped = (
        read("dagster.yaml"),
        yaml.safe_load((ROOT / ".dagster/dagster.yaml").read_text()),
    )
    daemon = read("kubernetes/dagster-values.yaml")["dagsterDaemon"]
    queue = daemon["runCoordinator"]["config"]["queuedRunCoordinator"]
    limits = own["concurrency"]["runs"]
    assert limits["max_concurrent_runs"] == queue["maxConcurrentRuns"]
    assert limits["tag_concurrency_limits"] == queue["tagConcurrencyLimits"]
    for key in ("telemetry", "python_logs", "run_monitoring", "run_retries", "nux"):
        assert own[key] == shipped[key]


def test_the_image_is_built_from_files_that_it_gets_and_runs_without_rights() -> None:
    lines = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    taken = (ROOT / ".dockerignore").read_text().split()
    copied = [word for line in lines for word in re.findall(r"^COPY (?!--)(.+) \S+$", line)]
    locks = [name for words in copied for name in words.split() if name != "."]
    assert all((ROOT / name[1:]).exists() for name in taken if name.startswith("!"))
    assert locks and all(f"!{name}" in taken for name in locks)
    installs = re.findall(r"pip install [^&]*", "\n".join(lines))
    assert all("--require-hashes" in each or "--no-deps dist/*.whl" in each for each in installs)
    assert [line for line in lines if line.startswith("USER")] == ["USER 10001"]
    assert any(line.startswith("HEALTHCHECK") for line in lines)


def test_units_of_systemd_start_programs_of_the_checkout() -> None:
    for unit in (DEPLOY / "systemd").glob("*.service"):
        text = unit.read_text()
        assert re.search(r"^ExecStart=/opt/tokenmill/\.venv/bin/(corpus|ray) ", text, re.M)
        assert "User=tokenmill" in text and "NoNewPrivileges=true" in text
        assert Path(unit.name).stem in (ROOT / "docs/cluster.md").read_text()


def environments(values: dict[str, Any]) -> dict[str, set[str]]:
    """Names of the variables of each container that speaks to Ray, by the rules of KubeRay 1.6.

    The secret `tokenmill` has the variables that docs/cluster.md names. An init container of a
    worker gets the `env` of its first container, and no `envFrom` (`common/pod.go`); the
    autoscaler's has that of `autoscalerOptions` alone.
    """
    of_secret = {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN"}

    def names(env: list[dict[str, Any]] | None, sources: list[dict[str, Any]] | None) -> set[str]:
        is_given = any(
            each.get("secretRef", {}).get("name") == "tokenmill" for each in sources or ()
        )
        return {each["name"] for each in env or ()} | (of_secret if is_given else set())

    head, worker = values["head"], values["worker"]
    autoscaler = head["autoscalerOptions"]
    return {
        "head": names(head.get("containerEnv"), head.get("envFrom")),
        "autoscaler": names(autoscaler.get("env"), autoscaler.get("envFrom")),
        "worker": names(worker.get("containerEnv"), worker.get("envFrom")),
        "wait-gcs-ready": names(worker.get("containerEnv"), None),
    }


def test_each_container_that_speaks_to_ray_has_its_token() -> None:
    values = read("kubernetes/ray-values.yaml")

    assert values["head"]["enableInTreeAutoscaling"] and values["worker"]["replicas"] == 0
    for container, names in environments(values).items():
        assert {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN"} <= names, container


def test_every_pod_of_kubernetes_runs_as_the_user_of_the_image_and_without_rights() -> None:
    dagster, ray = (read(f"kubernetes/{name}-values.yaml") for name in ("dagster", "ray"))
    [location] = dagster["dagster-user-deployments"]["deployments"]
    launcher = dagster["runLauncher"]["config"]["k8sRunLauncher"]
    of_run = launcher["runK8sConfig"]["podSpecConfig"]["securityContext"]
    pods = [dagster["dagsterWebserver"], dagster["dagsterDaemon"], location]
    pods += [ray["head"], ray["worker"]]
    [user] = re.findall(r"^USER (\d+)$", (DEPLOY / "Dockerfile").read_text(), re.M)

    for each in (*(pod["podSecurityContext"] for pod in pods), of_run):
        assert (each["runAsNonRoot"], each["runAsUser"]) == (True, int(user))
    for each in (*pods, launcher, ray["head"]["autoscalerOptions"]):
        assert each["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert not each["securityContext"]["allowPrivilegeEscalation"]
    for pod in pods:
        assert pod["resources"]["requests"]["ephemeral-storage"]
        assert pod.get("image", {"tag": "0.1.0"})["tag"] == ray["image"]["tag"]


def test_the_hook_of_a_worker_waits_for_ray_with_what_every_image_has(tmp_path: Path) -> None:
    hook = read("kubernetes/ray-values.yaml")["worker"]["lifecycle"]["preStop"]["exec"]["command"]
    name = f"r{os.getpid()}"  # other tests run Ray
    waiting = hook[-1].partition("; ")[2].replace("raylet", name)
    (tmp_path / name).symlink_to(shutil.which("sleep") or "sleep")

    with (
        subprocess.Popen([tmp_path / name, "60"]) as raylet,
        subprocess.Popen(["sh", "-c", waiting]) as waits,
    ):
        with pytest.raises(subprocess.TimeoutExpired):
            waits.wait(1)
        raylet.kill()
        raylet.wait()
        assert waits.wait(30) == 0

    assert {"pgrep", "pkill", "ps"}.isdisjoint(hook[-1].split())
