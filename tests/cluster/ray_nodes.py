"""A real Ray cluster on loopback: a head without cores, and nodes of one core each.

It ends every Ray process that it sees, so that it is for a process namespace of its own.
"""

import secrets
import subprocess
from dataclasses import dataclass

from faults.fault_runs import descendants, kill
from prelude import Path, os, sys, time

from resources.settings.engine import EngineConfig

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "127.0.0.1:6399"
HEAD = "127.0.0.1"
RAY = str(Path(sys.executable).with_name("ray"))
SMALL = ("--object-store-memory=80000000", "--disable-usage-stats")
NODE_BYTES = 2_000_000_000
DEADLINE_SECONDS = 300


def prepare_environment(folder: Path) -> None:
    """Let this process, its nodes and their workers share a token, and import the tests."""
    token = folder / "token"
    token.write_text(secrets.token_hex(32))
    os.environ |= {
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests"))),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
        "RAY_worker_niceness": "0",  # 15 is 3 % of a core beside other work
    }


@dataclass
class RayNodes:
    """The nodes of a cluster by their addresses; `folder` has a short path.

    `own_folder`: a path that every node has a disk of its own at, of `own_bytes`. `bridge`: the
    address of the head in a network, where the others are in namespaces of their own; else they
    are on loopback.
    """

    folder: Path
    own_folder: Path | None = None
    own_bytes: str = "50%"
    bridge: str = ""

    @property
    def head(self) -> str:
        """The address of the head."""
        return self.bridge or HEAD

    @property
    def address(self) -> str:
        """The address of the head with its port."""
        return f"{self.head}:6399"

    def start(self, *nodes: str) -> None:
        """Start the head and some nodes."""
        head = ("--head", "--port=6399", "--num-cpus=0", "--include-dashboard=false")
        if self.bridge:
            make_bridge(self.bridge)
        self.wait_for(self.begin(self.head, *head, f"--temp-dir={self.folder}"))
        self.add(*nodes)

    def add(self, *nodes: str) -> None:
        """Let nodes join, one by one: two at once on one machine take each other's session."""
        for node in nodes:
            self.wait_for(self.begin_node(node))

    def begin_node(self, node: str, *program: str) -> subprocess.Popen[bytes]:
        """Begin to let a node join, under a program that changes what it sees."""
        own = (f"--address={self.address}", "--num-cpus=1", f"--memory={NODE_BYTES}")
        return self.begin(node, *own, program=program)

    def begin(
        self, node: str, *arguments: str, program: tuple[str, ...] = ()
    ) -> subprocess.Popen[bytes]:
        """Start Ray for one node."""
        command = [*program, RAY, "start", f"--node-ip-address={node}", *SMALL, *arguments]
        if self.own_folder is not None:
            mount = f'mount -t tmpfs -o size={self.own_bytes} tmpfs {self.own_folder} && exec "$@"'
            command = ["unshare", "--mount", "sh", "-c", mount, "sh", *command]
        if self.bridge and node != self.head:
            command = ["nsenter", f"--net={make_network(node)}", *command]
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

    def drain(self, node: str) -> None:
        """Give a node notice, as docs/ray.md says."""
        arguments = arguments_of(Path(f"/proc/{self.running()[node]}/cmdline"))
        [name] = [each.partition("=")[2] for each in arguments if each.startswith("--node_id=")]
        reason = ("--reason=DRAIN_NODE_REASON_PREEMPTION", "--reason-message=notice")
        notice = (*reason, "--deadline-remaining-seconds=110", f"--node-id={name}")
        subprocess.run([RAY, "drain-node", f"--address={self.address}", *notice], check=True)

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
        if node == self.head:
            self.kill_head_server()

    def head_server(self) -> list[int]:
        """The server that knows the cluster's nodes, jobs and functions."""
        paths = Path("/proc").glob("[0-9]*/cmdline")
        return [
            int(path.parent.name)
            for path in paths
            if (arguments_of(path) or [""])[0].endswith("/gcs_server")
        ]

    def kill_head_server(self) -> None:
        """Kill it."""
        for pid in self.head_server():
            kill(pid)

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
        return EngineConfig.model_validate({"kind": "ray", "ray": {"address": self.address} | ray})


def make_bridge(address: str) -> None:
    """Make the network that all nodes are in, and its address here."""
    if " nodes:" in ip("link"):
        return
    names = Path("/run/netns")  # own ones: the names are files, which outlive this mount namespace
    names.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(names)], check=True)
    ip("link", "add", "nodes", "type", "bridge")
    ip("addr", "add", f"{address}/24", "dev", "nodes")
    ip("link", "set", "nodes", "up")


def make_network(node: str) -> str:
    """Make the network namespace of a node, with a cable to the bridge; return its path."""
    name = cable(node)
    if f"{name} " not in ip("netns", "list") + " ":
        ip("netns", "add", name)
        ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("link", "set", name, "master", "nodes", "up")
        for device in ("lo", "eth0"):
            ip("-n", name, "link", "set", device, "up")
        ip("-n", name, "addr", "add", f"{node}/24", "dev", "eth0")
    return f"/run/netns/{name}"


def cable(node: str) -> str:
    """Return the name of the cable to a node: the device on the side of the bridge."""
    return f"n{node.rpartition('.')[2]}"


def ip(*arguments: str) -> str:
    """Run ip(8)."""
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def arguments_of(path: Path) -> list[str]:
    """Return the command line of a process; nothing if it has just ended."""
    try:
        return path.read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []
