"""A Ceph RADOS gateway on the loopback address: one monitor, one OSD in memory, one gateway.

All state is in a folder of the caller's. The daemons stay in the foreground: they are children of
this process, and end with the thread that started them.
"""

from __future__ import annotations

import base64
import ctypes
import email.utils
import hmac
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

PACKAGES = "radosgw ceph-mon ceph-osd"
PROGRAMS = ("ceph", "ceph-mon", "ceph-osd", "monmaptool", "radosgw", "radosgw-admin")
ACCESS_KEY, SECRET_KEY = "testkey", "testsecret"
START_SECONDS = 120.0
PR_SET_PDEATHSIG = 1
CONFIG = """
[global]
fsid = {fsid}
mon host = v1:127.0.0.1:{monitor_port}
mon initial members = a
public network = 127.0.0.0/8
auth cluster required = none
auth service required = none
auth client required = none
auth allow insecure global id reclaim = true
ms bind ipv4 = true
ms bind ipv6 = false
ms bind msgr2 = true
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pgp num = 8
osd crush chooseleaf type = 0
mon warn on pool no redundancy = false
mon allow pool size one = true
mon max pg per osd = 1000
run dir = {folder}/run
log file = {folder}/$name.log
admin socket = {folder}/run/$name.asok
pid file = {folder}/run/$name.pid
keyring = {folder}/keyring
[mon]
mon data = {folder}/mon
mon data avail crit = 1
mon data avail warn = 2
mon cluster log file = {folder}/cluster.log
[osd]
osd data = {folder}/osd
osd objectstore = memstore
memstore device bytes = 4294967296
osd class dir = /usr/lib/x86_64-linux-gnu/rados-classes
public addr = 127.0.0.1
[client.rgw]
# without tcp_nodelay a GET of 1 KB takes 46 ms, not 2
rgw frontends = beast endpoint={address}:{port} tcp_nodelay=1
rgw data = {folder}/rgw
rgw enable usage log = false
rgw enable ops log = false
rgw thread pool size = 64
"""


class Gateway:
    """A running gateway; `kill` and `start` interrupt it, what it stores stays."""

    def __init__(self, folder: Path, address: str = "127.0.0.1") -> None:
        if missing := [program for program in PROGRAMS if shutil.which(program) is None]:
            pytest.fail(f"no {', '.join(missing)}: apt-get install {PACKAGES}")
        self.folder = folder
        self.port, monitor_port = free_port(), free_port()
        self.endpoint = f"http://{address}:{self.port}"
        self.daemons: list[subprocess.Popen[bytes]] = []
        self.gateway: subprocess.Popen[bytes] | None = None
        for name in ("mon", "osd", "run", "rgw"):  # the daemons' own state
            (folder / name).mkdir(parents=True)
        fsid = str(uuid.uuid4())
        text = CONFIG.format(
            fsid=fsid, folder=folder, address=address, port=self.port, monitor_port=monitor_port
        )
        (folder / "ceph.conf").write_text(text)
        (folder / "keyring").touch()
        try:
            self.start_cluster(fsid, f"[v1:127.0.0.1:{monitor_port}]")
            self.start()
            self.create_user()
        except BaseException:
            self.stop()
            raise

    def create_user(self) -> None:
        """Make the user whose keys the clients have."""
        user = ("user", "create", "--uid", "test", "--display-name", "test")
        keys = ("--access-key", ACCESS_KEY, "--secret", SECRET_KEY)
        self.run("radosgw-admin", "-n", "client.rgw", *user, *keys)

    def start_cluster(self, fsid: str, monitor: str) -> None:
        """Make and start the monitor and the OSD."""
        monmap = str(self.folder / "monmap")
        self.run(
            "monmaptool", "--create", "--clobber", "--fsid", fsid, "--addv", "a", monitor, monmap
        )
        self.run("ceph-mon", "--mkfs", "-i", "a", "--monmap", monmap)
        self.daemons.append(self.spawn("ceph-mon", "-f", "-i", "a"))
        osd = str(uuid.uuid4())
        new = ("ceph", "--connect-timeout", "60", "osd", "new", osd, "0")
        wait_until(lambda: self.attempt(*new).returncode == 0, "the monitor does not answer")
        self.run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", osd)
        self.daemons.append(self.spawn("ceph-osd", "-f", "-i", "0"))
        wait_until(self.osd_is_up, "the OSD is not up")

    def osd_is_up(self) -> bool:
        """Return whether the OSD works; start it again if it has ended.

        One that asks the monitor too early is refused for a wrong fsid, and ends.
        """
        if self.daemons[-1].poll() is not None:
            self.daemons[-1] = self.spawn("ceph-osd", "-f", "-i", "0")
        status = ("ceph", "--connect-timeout", "60", "osd", "stat")
        return b"1 up" in self.attempt(*status).stdout

    def make_bucket(self, name: str) -> None:
        """Make an empty bucket, by a request with the short signature of S3's first version."""
        date = email.utils.formatdate(usegmt=True)
        text = f"PUT\n\n\n{date}\n/{name}".encode()
        digest = base64.b64encode(hmac.digest(SECRET_KEY.encode(), text, "sha1")).decode()
        headers = {"Date": date, "Authorization": f"AWS {ACCESS_KEY}:{digest}"}
        request = urllib.request.Request(f"{self.endpoint}/{name}", None, headers, method="PUT")
        urllib.request.urlopen(request, timeout=60).close()

    def environment(self) -> dict[str, str]:
        """Return the environment variables by which clients find the gateway."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        }

    def start(self) -> None:
        """Start the gateway, and wait until it answers."""
        self.gateway = self.spawn("radosgw", "-f", "-n", "client.rgw")
        wait_until(self.answers, "the gateway does not answer")

    def kill(self) -> None:
        """End the gateway as a crash does."""
        assert self.gateway is not None
        self.gateway.kill()
        self.gateway.wait()
        self.gateway = None

    def stop(self) -> None:
        """End all daemons."""
        for daemon in [*([self.gateway] if self.gateway else []), *reversed(self.daemons)]:
            daemon.kill()
            daemon.wait()

    def answers(self) -> bool:
        """Check that the gateway answers."""
        try:
            urllib.request.urlopen(self.endpoint, timeout=5).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    def run(self, program: str, *arguments: str) -> None:
        """Run a program of Ceph to its end; fails if that does."""
        done = self.attempt(program, *arguments)
        if done.returncode:
            pytest.fail(f"{program} {' '.join(arguments)}: {done.stderr.decode(errors='replace')}")

    def attempt(self, program: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Run a program of Ceph to its end; one may fail while the monitor starts."""
        config = () if program == "monmaptool" else ("-c", str(self.folder / "ceph.conf"))
        return subprocess.run(
            [program, *config, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=START_SECONDS,
        )

    def spawn(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a daemon, which ends with this process."""
        with (self.folder / f"{program}.out").open("ab") as log:
            return subprocess.Popen(
                [program, "-c", str(self.folder / "ceph.conf"), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=end_with_parent,
            )


def end_with_parent() -> None:
    """Have the kernel kill this child when its parent ends, however that ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def wait_until(condition: Callable[[], bool], fault: str) -> None:
    """Wait for a condition; fails after START_SECONDS."""
    deadline = time.monotonic() + START_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"{fault} after {START_SECONDS:g} s")
        time.sleep(0.1)


def free_port() -> int:
    """Return a port that no server uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
