"""The simulated cluster: parts by hand, losses, and the numbers of docs/scaling.md."""

import math
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import simulate_cluster
from simulate_cluster import (
    DEDUPLICATION,
    DISPATCH_SECONDS,
    IN_FLIGHT,
    NOTICED_SECONDS,
    REPLACED_SECONDS,
    STAGES,
    Cluster,
    Nodes,
    copy_seconds,
    index_files,
    one_task_seconds,
    schedule,
    simulate,
)

GOLDEN = {  # nodes: hours of 1 TB, core-hours that are busy, parts lost
    1: (1.15, 61.7, 0),
    10: (0.25, 63.3, 0),
    100: (0.20, 73.9, 0),
}


def nodes_of(speeds: list[float], losses: list[float] | None = None) -> Nodes:
    """Make nodes with these speeds, and the next losses of each."""
    nodes = Nodes(Cluster(len(speeds), 0.0, 0.0))
    nodes.speeds = speeds
    nodes.next_loss = losses or [math.inf] * len(speeds)
    return nodes


def test_parts_follow_each_other_on_one_core() -> None:
    end, busy, lost = schedule([10.0, 20.0], nodes_of([1.0]), 1, 5.0)
    assert (end, busy, lost) == (35.0, 30.0, 0)


def test_a_core_takes_the_next_part_when_it_is_free() -> None:
    end, busy, _ = schedule([4.0, 1.0, 1.0, 1.0], nodes_of([1.0]), 2, 0.0)
    assert (end, busy) == (4.0, 7.0)


def test_a_slow_node_takes_fewer_parts() -> None:
    end, _, _ = schedule([1.0] * 9, nodes_of([1.0, 0.5]), 1, 0.0)
    assert end == pytest.approx(6.0, abs=0.1)


def test_short_parts_wait_for_the_driver() -> None:
    end, _, _ = schedule([0.0] * 1001, nodes_of([1.0] * 10), 64, 0.0)
    assert end == pytest.approx(1000 * DISPATCH_SECONDS)


def test_very_many_parts_are_submitted_in_batches() -> None:
    [few, many] = (simulate(parts * 1e9, Cluster(1), 1e9, ("raw",))[0] for parts in (400, 100_000))
    assert few.dispatch == pytest.approx(400 * DISPATCH_SECONDS)
    assert many.dispatch == pytest.approx(50_000 * DISPATCH_SECONDS + 10)
    assert many.busy == pytest.approx(250 * few.busy, rel=0.05)


def test_a_part_on_a_lost_node_begins_again_on_another() -> None:
    end, busy, lost = schedule([10.0, 10.0], nodes_of([1.0, 1.0], [4.0, math.inf]), 1, 0.0)
    assert lost == 1
    assert busy == pytest.approx(24.0)
    assert end == pytest.approx(4.0 + NOTICED_SECONDS + 10.0)


def test_a_node_that_was_lost_while_it_was_idle_is_replaced() -> None:
    nodes = nodes_of([1.0], [3.0])
    assert nodes.start(0, 2.0) == 2.0
    assert nodes.start(0, 3.0) == 3.0 + REPLACED_SECONDS
    assert nodes.start(0, 1000.0) == 1000.0


@given(
    st.lists(st.floats(0.0, 100.0), min_size=1, max_size=60),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(0, 3),
)
def test_every_part_ends_and_no_core_does_two(
    costs: list[float], number: int, cores: int, losses: int
) -> None:
    cluster = Cluster(number, 0.3, losses * 20.0, seed=losses)
    end, busy, lost = schedule(costs, Nodes(cluster), cores, 0.0)
    assert busy >= sum(costs) - 1e-6
    assert end >= max(max(costs), sum(costs) / (number * cores)) - 1e-6
    assert lost == 0 or losses


def test_a_scratch_without_room_is_filled_again_by_every_wave_of_the_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [cluster, disk] = (Cluster(10, request_seconds=each) for each in (0.1, 0.0))
    arguments = "band_index", 10e12, 1000
    once = 10e12 * 0.056 / cluster.bytes_per_second
    assert copy_seconds(*arguments, cluster) == pytest.approx(35 * once)  # 1,400 files, 40 at once
    assert copy_seconds(*arguments, disk) == 0
    monkeypatch.setattr(simulate_cluster, "SCRATCH_BYTES", 1e12)
    assert copy_seconds(*arguments, cluster) == pytest.approx(once)


def test_the_driver_reads_a_file_of_each_part_that_others_made() -> None:
    [alone, two] = (
        one_task_seconds("filtered", 0.0, 3200, Cluster(each, request_seconds=0.1))
        for each in (1, 2)
    )
    assert two - alone == pytest.approx(3200 * 0.1 / 2 / IN_FLIGHT)


def test_the_index_has_at_most_4096_files() -> None:
    assert [index_files(number) for number in (1, 1e9, 1e10)] == [1, 420, 4096]


def test_links_and_training_are_one_task() -> None:
    alone = {name: one_task_seconds(name, 3e12, 0, Cluster(1)) for name in STAGES}
    assert {name: value for name, value in alone.items() if value} == {
        "duplicates": pytest.approx(83.2),
        "tokenizer": 60.0,
    }


@pytest.mark.parametrize("number", GOLDEN)
def test_the_numbers_of_one_terabyte_stay(number: int) -> None:
    runs = simulate(1e12, Cluster(number), 256e6)
    hours = sum(run.seconds for run in runs) / 3600
    busy = sum(run.busy for run in runs) / 3600
    lost = sum(run.lost for run in runs)
    assert (round(hours, 2), round(busy, 1), lost) == GOLDEN[number]


def test_losses_cost_time_and_change_nothing_else() -> None:
    calm, stormy = (simulate(1e12, Cluster(10, 0.0, rate), 256e6) for rate in (0.0, 10.0))
    assert sum(run.lost for run in calm) == 0 < sum(run.lost for run in stormy)
    assert sum(run.seconds for run in calm) < sum(run.seconds for run in stormy)
    assert [run.one_task for run in calm] == [run.one_task for run in stormy]


def test_one_machine_deduplicates_8_tb_in_the_hours_that_are_documented() -> None:
    machine = Cluster(1, 0.0, 0.0, 128, 16e9, 0.0)
    runs = simulate(8e12, machine, 256e6, DEDUPLICATION)
    assert [round(run.seconds / 3600, 2) for run in runs] == [0.22, 0.58, 0.28, 0.16]
