"""Machines that share an object store and no disk give what one process gives on its own disk.

Each node has a scratch that no other sees, and the store is a Ceph RADOS gateway's.
"""

import shutil
import subprocess
from dataclasses import dataclass, replace

import yaml
from builders import hashes
from faults.fault_runs import VERIFY, Site, make_site, run, start
from flaky_proxy import FlakyProxy, flaky_proxy
from prelude import Iterator, Path, hashlib, os, pytest, time
from rados_gateway import Gateway

from corpus_loader.places.objects import Objects
from tests.cluster.ray_nodes import ADDRESS, RayNodes, prepare_environment

pytestmark = pytest.mark.skipif(
    "TOKENMILL_CLUSTER" not in os.environ, reason="a Ray cluster; run `make cluster`"
)
FIRST, SECOND = "127.0.0.2", "127.0.0.3"
OUTAGE_SECONDS = 20


@dataclass
class Machines:
    """A cluster, a gateway, and the proxy before it, which the variables of all nodes name."""

    nodes: RayNodes
    gateway: Gateway
    proxy: FlakyProxy


@pytest.fixture(scope="module")
def machines(ray_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    gateway = Gateway(tmp_path_factory.mktemp("ceph"))
    scratch = tmp_path_factory.mktemp("scratch")
    with pytest.MonkeyPatch.context() as patch, flaky_proxy(gateway.endpoint) as proxy:
        prepare_environment(ray_folder)
        for name, value in (gateway.environment() | {"AWS_ENDPOINT_URL": proxy.endpoint}).items():
            patch.setenv(name, value)
        patch.setenv("TOKENMILL_SCRATCH", str(scratch))
        nodes = RayNodes(ray_folder, own_folder=scratch)
        nodes.start(FIRST, SECOND)
        yield Machines(nodes, gateway, proxy)
        nodes.end()
    gateway.stop()


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The hashes of the small corpus, built in one process on a disk."""
    site = make_site(tmp_path_factory.mktemp("clean") / "site", "in_process")
    ending = run(site)
    assert ending.code == 0, ending.tail
    return {name: each for name, each in hashes(site.store).items() if ".lock" not in name}


def site_on(machines: Machines, folder: Path, bucket: str) -> Site:
    """A small corpus whose parts are computed on the cluster, and stored at the gateway."""
    machines.gateway.make_bucket(bucket)
    site = make_site(folder, "ray")
    config = yaml.safe_load(site.config.read_text())
    config["engine"] = {"kind": "ray", "ray": {"address": machines.nodes.address}}
    site.config.write_text(yaml.safe_dump(config, sort_keys=False))
    return replace(site, url=f"s3://{bucket}/corpus")


def hashes_of_objects(url: str) -> dict[str, str]:
    """sha256 of every object but previews, as `hashes` of a folder."""
    objects = Objects(url)
    return {
        info.key: hashlib.sha256(objects.get(info.key)).hexdigest()
        for info in objects.list_objects()
        if "_previews" not in info.key
    }


def assert_whole(site: Site, clean: dict[str, str]) -> None:
    """The corpus is there and verified; what a writer left that lost its store is not removed yet.

    Its lease counts as that of one that works, for 15 minutes.
    """
    assert clean.items() <= hashes_of_objects(site.url).items()
    ending = run(site, VERIFY)
    assert ending.code == 0, ending.tail


def wait_for_objects(site: Site, process: subprocess.Popen[str], folder: str, number: int) -> None:
    """Wait until a stage has published so many objects; the command must not end before."""
    objects = Objects(site.url)
    while len(objects.list_objects(folder)) < number:
        assert process.poll() is None, (site.folder / "output").read_text()[-3000:]
        time.sleep(0.05)


def test_machines_without_a_shared_disk_build_the_same_bytes(
    machines: Machines, tmp_path: Path, clean: dict[str, str]
) -> None:
    site = site_on(machines, tmp_path / "site", "whole")
    ending = run(site)
    assert ending.code == 0, ending.tail
    assert hashes_of_objects(site.url) == clean
    ending = run(site, VERIFY)
    assert ending.code == 0, ending.tail


def test_a_lost_node_and_an_outage_of_the_store_change_nothing(
    machines: Machines, tmp_path: Path, clean: dict[str, str]
) -> None:
    site = site_on(machines, tmp_path / "site", "outage")
    process = start(site)
    wait_for_objects(site, process, "filtered", 2)
    machines.nodes.kill(FIRST)
    machines.gateway.kill()
    time.sleep(OUTAGE_SECONDS)
    machines.gateway.start()
    assert process.wait(300) == 0, (site.folder / "output").read_text()[-3000:]
    assert hashes_of_objects(site.url) == clean


def test_answers_that_are_cut_change_nothing(
    machines: Machines, tmp_path: Path, clean: dict[str, str]
) -> None:
    site = site_on(machines, tmp_path / "site", "cut")
    process = start(site)
    for stage in ("raw", "filtered", "signatures", "tokenized"):
        wait_for_objects(site, process, stage, 1)
        machines.proxy.cut(*range(200, 2200, 100))
    assert process.wait(300) == 0, (site.folder / "output").read_text()[-3000:]
    machines.proxy.cuts.clear()
    assert hashes_of_objects(site.url) == clean


def test_a_token_that_expires_is_named_and_the_same_command_goes_on_with_a_new_one(
    machines: Machines, tmp_path: Path, clean: dict[str, str]
) -> None:
    site = site_on(machines, tmp_path / "site", "expired")
    process = start(site)
    wait_for_objects(site, process, "filtered", 2)
    machines.proxy.refuse(400, "<Error><Code>ExpiredToken</Code></Error>")
    assert process.wait(120) == 1
    machines.proxy.recover()
    output = (site.folder / "output").read_text()
    assert "HTTP 400 ExpiredToken. Check the credentials" in output
    assert "Traceback" not in output
    assert run(site).code == 0
    assert_whole(site, clean)


def test_of_two_drivers_on_one_store_both_end_and_the_corpus_is_whole(
    machines: Machines, tmp_path: Path, clean: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = site_on(machines, tmp_path / "site", "two")
    other = replace(site, home=tmp_path / "other_home")
    shutil.copytree(site.home, other.home)
    processes = [start(site)]
    monkeypatch.setenv("TOKENMILL_SCRATCH", str(tmp_path / "scratch"))  # that of another machine
    processes.append(start(other))
    codes = [process.wait(300) for process in processes]
    output = (site.folder / "output").read_text()
    assert 0 in codes, output
    assert codes == [0, 0] or "another run committed manifest" in output, output
    assert run(other).code == 0
    assert_whole(site, clean)


@pytest.mark.skipif(
    "TOKENMILL_LARGE_CORPUS" not in os.environ, reason="for a folder of benchmarks/enlarge.py"
)
def test_a_large_corpus_is_the_same_bytes(machines: Machines, tmp_path: Path) -> None:
    large = Path(os.environ["TOKENMILL_LARGE_CORPUS"])
    config = yaml.safe_load((large / "pipeline.yaml").read_text())
    for source in config["sources"]:
        source["where"] = f"{source['name']}/*"
        shutil.copytree(large / source["name"], tmp_path / "site" / source["name"])
    alone = make_site(tmp_path / "unused", "processes")
    alone = replace(alone, folder=tmp_path / "site", store=tmp_path / "store")
    machines.gateway.make_bucket("large")
    for engine, url in (
        ({"kind": "processes"}, ""),
        (
            {"kind": "ray", "ray": {"address": ADDRESS}},
            "s3://large/corpus",
        ),
    ):
        alone.config.write_text(yaml.safe_dump(config | {"engine": engine}, sort_keys=False))
        ending = run(replace(alone, url=url))
        assert ending.code == 0, ending.tail
    expected = {name: each for name, each in hashes(alone.store).items() if ".lock" not in name}
    assert hashes_of_objects("s3://large/corpus") == expected
