"""A cluster gives what one process gives, whatever of it is killed; `make cluster` runs this.

The cluster is real: a head and two nodes, on loopback, in namespaces of their own.
"""

import logging
import shutil
import socket
import threading

import yaml
from builders import hashes, open_corpus, write_corpus
from faults.fault_runs import Site, kill_everything, make_site, run, start, wait_for
from prelude import Any, Callable, Iterator, Path, os, pytest

from resources.engine import ray_tasks
from resources.engine.map_parts import map_parts
from resources.engine.ray_tasks import end_drivers
from resources.engine.run_task import Ended, PartError
from resources.engine.system_errors import SystemFault
from tests.cluster.ray_nodes import ADDRESS, HEAD, ROOT, RayNodes, prepare_environment
from tests.cluster.ray_parts import (
    code_of_worker,
    crawl_on_first_node,
    hold_first_attempt,
    hold_until_drained,
    notes,
    refuse_on_a_node,
    wait_for_two_nodes,
    wait_until,
)
from tests.engine.engine_workers import Part, die, fail, process_of, square

pytestmark = pytest.mark.skipif(
    "TOKENMILL_CLUSTER" not in os.environ, reason="a Ray cluster; run `make cluster`"
)
FIRST, SECOND, LATE = "127.0.0.2", "127.0.0.3", "127.0.0.4"


@pytest.fixture(scope="module")
def started(ray_folder: Path) -> Iterator[RayNodes]:
    """A cluster of two nodes for all tests of this module, which mend what they kill."""
    prepare_environment(ray_folder)
    nodes = RayNodes(ray_folder)
    nodes.start(FIRST, SECOND)
    yield nodes
    end_drivers()
    nodes.end()


@pytest.fixture
def cluster(started: RayNodes) -> Iterator[RayNodes]:
    """The cluster with a head and its two first nodes."""
    running = started.running()
    if HEAD not in running:
        started.end()
        started.start(FIRST, SECOND)
    else:
        for node in {LATE} & set(running):
            started.kill(node)
        started.add(*({FIRST, SECOND} - set(running)))
    yield started


def parts(folder: Path, *faults: str, work_bytes: int = 1) -> list[Part]:
    return [Part(f"part-{n}", folder, fault, work_bytes) for n, fault in enumerate(faults)]


def results(ended: Iterator[Ended[Any]]) -> list[Any]:
    return sorted(each.value() for each in ended)


def site_on_cluster(folder: Path) -> Site:
    """A small corpus whose parts are computed on the cluster."""
    site = make_site(folder, "ray")
    config = yaml.safe_load(site.config.read_text())
    config["engine"] = {"kind": "ray", "ray": {"address": ADDRESS}}
    site.config.write_text(yaml.safe_dump(config, sort_keys=False))
    return site


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The hashes of the small corpus, built without a cluster."""
    site = make_site(tmp_path_factory.mktemp("clean") / "site", "in_process")
    ending = run(site)
    assert ending.code == 0, ending.tail
    return hashes(site.store)


def test_a_cluster_computes_every_part_once(cluster: RayNodes, tmp_path: Path) -> None:
    ended = list(map_parts(square, parts(tmp_path, *[""] * 2000), cluster.config()))
    assert sorted((each.index, each.value()) for each in ended) == [(n, n * n) for n in range(2000)]
    assert all(each.cost.seconds >= 0 for each in ended)


def test_an_error_names_its_part_and_ends_no_other(cluster: RayNodes, tmp_path: Path) -> None:
    ended = list(map_parts(fail, parts(tmp_path, "", "no such column", ""), cluster.config()))
    assert [str(each.error) for each in ended if each.error] == [
        "part-1: ValueError: no such column"
    ]
    assert sorted(each.index for each in ended if not each.error) == [0, 2]


def test_workers_have_one_polars_thread(cluster: RayNodes, tmp_path: Path) -> None:
    found = [each.value() for each in map_parts(process_of, parts(tmp_path, ""), cluster.config())]
    assert [threads for _, threads in found] == [1]


def test_a_killed_worker_costs_its_part_another_try(cluster: RayNodes, tmp_path: Path) -> None:
    faults = parts(tmp_path, "", "once", "")
    assert results(map_parts(die, faults, cluster.config())) == [0, 1, 4]
    assert len(list(tmp_path.glob("part-1.*"))) == 2


def test_a_part_whose_worker_always_dies_is_named(cluster: RayNodes, tmp_path: Path) -> None:
    config = cluster.config().model_copy(update={"retries": 1})
    with pytest.raises(PartError, match=r"^part-1: its worker or its node was lost .*part_bytes"):
        results(map_parts(die, parts(tmp_path, "", "always", ""), config))
    assert len(list(tmp_path.glob("part-1.*"))) == 2


def test_a_part_of_a_lost_node_runs_on_another(cluster: RayNodes, tmp_path: Path) -> None:
    def kill_its_node() -> None:
        wait_until(lambda: bool(notes(tmp_path)))
        [[_, node, _]] = notes(tmp_path)
        cluster.kill(node)

    killer = threading.Thread(target=kill_its_node)
    killer.start()
    assert results(map_parts(hold_first_attempt, parts(tmp_path, "held"), cluster.config())) == [0]
    killer.join()
    assert len({node for _, node, _ in notes(tmp_path)}) == 2


def test_a_node_that_joins_late_gets_work(cluster: RayNodes, tmp_path: Path) -> None:
    cluster.kill(SECOND)
    joining: list[Any] = []

    def join() -> None:
        wait_until(lambda: bool(notes(tmp_path)))
        joining.append(cluster.begin_node(LATE))

    joiner = threading.Thread(target=join)
    joiner.start()
    tasks = parts(tmp_path, *[""] * 6)
    assert len(results(map_parts(wait_for_two_nodes, tasks, cluster.config()))) == 6
    joiner.join()
    cluster.wait_for(joining[0])
    assert {node for _, node, _ in notes(tmp_path)} == {FIRST, LATE}


def test_a_slow_node_does_not_hold_up_the_rest(cluster: RayNodes, tmp_path: Path) -> None:
    tasks = parts(tmp_path, *["30"] * 40)  # the first ends only when 30 others have
    assert len(results(map_parts(crawl_on_first_node, tasks, cluster.config()))) == 40


def test_a_part_larger_than_any_node_runs_and_is_told_of(
    cluster: RayNodes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    large = parts(tmp_path, "", "", work_bytes=1 << 40)
    with caplog.at_level(logging.WARNING, "tokenmill"):
        assert results(map_parts(square, large, cluster.config())) == [0, 1]
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 1
    assert "part-0 may take more memory than the largest node has (2.0 GB)" in told[0]


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    """What a new driver, which knows nothing of the nodes yet, has warned of."""
    end_drivers()
    with caplog.at_level(logging.WARNING, "tokenmill"):
        yield lambda: [record.getMessage() for record in caplog.records]
    end_drivers()


@pytest.mark.parametrize(("kind", "most"), [("full", 99), ("package", 99), ("full", 10)])
def test_a_node_that_fails_two_parts_is_left_out(
    cluster: RayNodes,
    tmp_path: Path,
    warnings: Callable[[], list[str]],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    most: int,
) -> None:
    monkeypatch.setattr(ray_tasks, "MOST_TASKS", most)  # more go in batches
    tasks = parts(tmp_path, *[f"{kind}@{FIRST}"] * 20)
    assert len(results(map_parts(refuse_on_a_node, tasks, cluster.config()))) == 20
    failed = [title for title, node, _ in notes(tmp_path) if node == FIRST]
    assert len(failed) >= 2
    first, left_out = warnings()
    assert f"({FIRST}); another node tries it. part-" in first
    assert f"({FIRST}) is left out: 2 parts failed there" in left_out
    assert f"The disk of /tmp on {socket.gethostname()}" in left_out or kind == "package"
    again = parts(tmp_path / "again", *[""] * 6)
    again[0].folder.mkdir()
    assert len(results(map_parts(refuse_on_a_node, again, cluster.config()))) == 6
    assert {node for _, node, _ in notes(tmp_path / "again")} == {SECOND}
    assert len(warnings()) == 2


def test_an_error_that_follows_its_part_is_the_parts(
    cluster: RayNodes, tmp_path: Path, warnings: Callable[[], list[str]]
) -> None:
    tasks = parts(tmp_path, "", "full@all", "full@all", *[""] * 20)
    ended = list(map_parts(refuse_on_a_node, tasks, cluster.config()))
    assert sorted(each.index for each in ended if each.error) == [1, 2]
    tried = [(title, node) for title, node, _ in notes(tmp_path)]
    for task in tasks[1:3]:
        assert {node for title, node in tried if title == task.title} == {FIRST, SECOND}
    healthy = [node for title, node in tried if title not in ("part-1", "part-2")]
    assert min(healthy.count(FIRST), healthy.count(SECOND)) > 3  # neither is left out for long


def test_a_node_with_other_code_is_left_out(
    cluster: RayNodes, tmp_path: Path, warnings: Callable[[], list[str]]
) -> None:
    other, folder = tmp_path / "other", tmp_path / "parts"
    folder.mkdir()
    shutil.copytree(ROOT / "resources", other)
    (other / "__init__.py").write_text('"""Another version."""')
    cluster.kill(FIRST)
    mount = f'mount --bind {other} {ROOT / "resources"} && exec "$@"'
    program = ("unshare", "--mount", "sh", "-c", mount, "sh")
    cluster.wait_for(cluster.begin_node(LATE, *program))
    tasks = parts(folder, *[""] * 20)
    assert len(results(map_parts(refuse_on_a_node, tasks, cluster.config()))) == 20
    assert {node for _, node, _ in notes(folder)} == {SECOND}
    assert f"({LATE}) is left out: 2 parts failed there" in warnings()[1]
    assert f"{socket.gethostname()} has another version of this package" in warnings()[1]


def test_a_node_with_a_wrong_clock_is_left_out(
    cluster: RayNodes, tmp_path: Path, warnings: Callable[[], list[str]]
) -> None:
    cluster.kill(FIRST)
    clock, folder = tmp_path / "clock", tmp_path / "parts"
    clock.mkdir()
    folder.mkdir()
    ahead = "import time; now = time.time; time.time = lambda: now() + 7200"
    (clock / "sitecustomize.py").write_text(ahead)
    program = ("env", f"PYTHONPATH={clock}:{os.environ['PYTHONPATH']}")
    cluster.wait_for(cluster.begin_node(LATE, *program))
    tasks = parts(folder, *[f"skew@{LATE}"] * 20)
    assert len(results(map_parts(refuse_on_a_node, tasks, cluster.config()))) == 20
    assert f"({LATE}) is left out: 2 parts failed there" in warnings()[1]
    assert f"({LATE}) is 7,200 s ahead of that of the build's machine" in warnings()[1]


def test_a_part_without_progress_is_begun_elsewhere(
    cluster: RayNodes, tmp_path: Path, warnings: Callable[[], list[str]]
) -> None:
    assert results(map_parts(hold_first_attempt, parts(tmp_path, "held"), cluster.config())) == [0]
    assert len({node for _, node, _ in notes(tmp_path)}) == 2
    [told] = warnings()
    assert "part-0 makes no progress on " in told


def test_a_notice_drains_a_node(cluster: RayNodes, tmp_path: Path) -> None:
    def give_notice() -> None:
        wait_until(lambda: len({node for _, node, _ in notes(tmp_path)}) == 2)
        cluster.drain(FIRST)
        (tmp_path / "drained").touch()

    notice = threading.Thread(target=give_notice)
    notice.start()
    tasks = parts(tmp_path, "held", "held", *[""] * 20)
    assert len(results(map_parts(hold_until_drained, tasks, cluster.config()))) == 22
    notice.join()
    tried = [node for _, node, _ in notes(tmp_path)]
    assert len(tried) == 22  # no part was killed
    assert tried.count(FIRST) == 1
    wait_until(lambda: FIRST not in cluster.running())


def test_an_abandoned_pass_cancels_what_runs(cluster: RayNodes, tmp_path: Path) -> None:
    tasks = parts(tmp_path, "", "held", "held")
    ended = map_parts(hold_first_attempt, tasks, cluster.config())
    next(ended)
    wait_until(lambda: len(notes(tmp_path)) == 3)
    ended.close()  # as a step that is interrupted does
    held = [int(pid) for title, _, pid in notes(tmp_path) if title != "part-0"]
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in held))
    assert results(map_parts(square, tasks, cluster.config())) == [0, 1, 4]


def test_sent_code_is_what_workers_import(cluster: RayNodes, tmp_path: Path) -> None:
    config = cluster.config(code="sent")
    [folder] = results(map_parts(code_of_worker, parts(tmp_path, ""), config))
    assert "runtime_resources" in folder
    end_drivers()


def test_an_address_without_a_cluster_fails_soon(cluster: RayNodes, tmp_path: Path) -> None:
    config = cluster.config(address="127.0.0.1:9", connect_seconds=5)
    with pytest.raises(SystemFault, match=r"127\.0\.0\.1:9 cannot be reached within 5 s"):
        results(map_parts(square, parts(tmp_path, ""), config))


def test_a_cluster_builds_the_same_bytes_after_a_kill_of_the_driver(
    cluster: RayNodes, tmp_path: Path, clean: dict[str, str]
) -> None:
    site = site_on_cluster(tmp_path / "site")
    process = start(site)
    assert wait_for(site, process, "filtered", 2), (site.folder / "output").read_text()[-3000:]
    kill_everything(process)
    ending = run(site)
    assert ending.code == 0, ending.tail
    assert hashes(site.store) == clean


def test_a_lost_head_fails_the_run_and_the_same_command_finishes_it(
    cluster: RayNodes, tmp_path: Path, clean: dict[str, str]
) -> None:
    site = site_on_cluster(tmp_path / "site")
    process = start(site)
    assert wait_for(site, process, "filtered", 2), (site.folder / "output").read_text()[-3000:]
    cluster.kill(HEAD)
    assert process.wait(300) != 0
    output = (site.folder / "output").read_text()
    assert "run the same command again" in output, output[-3000:]
    assert f"The connection to the Ray cluster at {ADDRESS} was lost: its head" in output
    cluster.end()
    cluster.start(FIRST)
    ending = run(site)
    assert ending.code == 0, ending.tail
    assert hashes(site.store) == clean


def test_a_cluster_that_dagster_starts_computes_the_same_bytes(
    cluster: RayNodes, tmp_path: Path, clean: dict[str, str]
) -> None:
    import dagster as dg
    from dagster_ray import Lifecycle, LocalRay

    from pipeline_defs.definitions import build_defs

    class RunningRay(LocalRay):
        """As a cluster on Kubernetes: it tells its address when it has started."""

        @property
        def ray_address(self) -> str:  # type: ignore[override]
            return ADDRESS

    corpus = open_corpus(write_corpus(tmp_path))
    started = RunningRay(lifecycle=Lifecycle(connect=False))
    job = build_defs(corpus, started).resolve_job_def("build_corpus")
    with dg.DagsterInstance.ephemeral() as instance:
        selection = [dg.AssetKey("raw"), dg.AssetKey("filtered")]
        assert job.execute_in_process(instance=instance, asset_selection=selection).success
    assert hashes(corpus.store.root).items() <= clean.items()
    with pytest.raises(ValueError, match="connect=False"):
        build_defs(corpus, RunningRay())
