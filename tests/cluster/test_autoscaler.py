"""Ray's autoscaler starts nodes for all parts that wait, not one after the other.

The autoscaler is Ray's, with its provider of nodes that are processes of this machine.
"""

import json
import subprocess

from prelude import Any, Iterator, Path, os, pytest, re

from resources.engine.map_parts import map_parts
from resources.engine.ray_tasks import end_drivers
from resources.settings.engine import EngineConfig
from tests.cluster.ray_nodes import ADDRESS, RAY, SMALL, prepare_environment
from tests.cluster.ray_parts import wait_for_nodes
from tests.engine.engine_workers import Part

pytestmark = pytest.mark.skipif(
    "TOKENMILL_CLUSTER" not in os.environ, reason="a Ray cluster; run `make cluster`"
)
NODES, CORES = 3, 4
NO_COMMANDS = (  # that must be named
    *("initialization_commands", "setup_commands", "head_setup_commands"),
    *("worker_setup_commands", "head_start_ray_commands", "worker_start_ray_commands"),
    *("cluster_synced_files", "rsync_exclude"),
)
NODE: dict[str, Any] = {
    "resources": {"CPU": CORES, "memory": 8 << 30},
    "node_config": {},
    "min_workers": 0,
    "max_workers": NODES,
}
SCALING: dict[str, Any] = {
    "cluster_name": "fake_multinode",
    "max_workers": NODES,
    "provider": {
        "type": "external",
        "module": "tests.cluster.node_processes.NodeProcesses",
        "gcs_address": ADDRESS,
        "launch_multiple": True,
        "head_node_id": "f" * 51 + "00000",
    },
    "available_node_types": {
        "worker": NODE,
        "ray.head.default": {"resources": {"CPU": 0}, "node_config": {}, "max_workers": 0},
    },
    "head_node_type": "ray.head.default",
    "upscaling_speed": 1000,
    "idle_timeout_minutes": 1,
    "auth": {},
    "file_mounts_sync_continuously": False,
    "file_mounts": {},
    "docker": {},
    **{name: [] for name in NO_COMMANDS},
}


@pytest.fixture
def decisions(ray_folder: Path) -> Iterator[Path]:
    """The log of the autoscaler of a head without cores."""
    prepare_environment(ray_folder)
    (ray_folder / "scaling.json").write_text(json.dumps(SCALING))
    as_kuberay = {
        "RAY_enable_autoscaler_v2": "1",
        "RAY_FAKE_CLUSTER": "1",
        "RAY_CLOUD_INSTANCE_ID": SCALING["provider"]["head_node_id"],
        "RAY_OVERRIDE_NODE_ID_FOR_TESTING": SCALING["provider"]["head_node_id"],
        "AUTOSCALER_UPDATE_INTERVAL_S": "1",
    }
    own = ("--node-ip-address=127.0.0.1", f"--temp-dir={ray_folder}", "--include-dashboard=false")
    scaling = f"--autoscaling-config={ray_folder / 'scaling.json'}"
    command = [RAY, "start", "--head", "--port=6399", "--num-cpus=0", scaling, *own, *SMALL]
    subprocess.run(command, check=True, env=os.environ | as_kuberay, stdout=subprocess.DEVNULL)
    yield ray_folder / "session_latest/logs/monitor.log"
    end_drivers()
    subprocess.run([RAY, "stop", "--force"], check=False, stdout=subprocess.DEVNULL)


def test_from_no_node_all_are_started_at_once(decisions: Path, tmp_path: Path) -> None:
    parts = [Part(f"part {number}", tmp_path, str(NODES)) for number in range(NODES * CORES)]
    ray = EngineConfig.model_validate({"kind": "ray", "ray": {"address": ADDRESS}})
    ended = [*map_parts(wait_for_nodes, parts, ray)]
    assert [each.error for each in ended] == [None] * len(parts)
    assert len([*tmp_path.iterdir()]) == NODES  # each began a part before the first part ended
    added = re.findall(r"Adding (\d+) node\(s\) of type worker", decisions.read_text())
    assert added == [str(NODES)]
