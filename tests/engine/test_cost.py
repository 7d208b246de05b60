"""Costs of parts: wall seconds do not overlap, and CPU seconds add up to those of the process."""

from concurrent.futures import ThreadPoolExecutor

from prelude import Path, np, pytest, time
from tables import cases

from resources.engine.cost import Cost, CpuMeter, add_wall_seconds, begin_part
from resources.engine.run_task import run_task
from tests.engine.engine_workers import Part, square


@cases("""
    times                    | seconds
    []                       | 0
    [(1, 3)]                 | 2
    [(5, 6), (1, 3)]         | 3
    [(1, 4), (2, 3), (3, 6)] | 5
    [(1, 3), (1, 3)]         | 2
""")
def test_wall_seconds_count_once_whatever_runs_side_by_side(
    times: list[tuple[float, float]], seconds: float
) -> None:
    assert add_wall_seconds([Cost(start, end, 0.0, 0) for start, end in times]) == seconds


def test_cpu_seconds_are_divided_among_the_parts_that_run() -> None:
    readings = iter([10.0, 13.0, 17.0, 18.0, 25.0, 26.0])
    meter = CpuMeter(lambda: next(readings))

    first = meter.begin()  # 10
    second = meter.begin()  # 13: 3 s of the first part alone
    assert meter.end(first) == 3 + 2  # 17: half of 4 s
    assert meter.end(second) == 2 + 1  # 18: 1 s alone
    third = meter.begin()  # 25: nothing ran for 7 s
    assert meter.end(third) == 1


def test_cpu_seconds_of_other_threads_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resources.engine.cost.METER", CpuMeter())

    def multiply() -> None:
        matrix = np.random.default_rng(0).random((300, 300))
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            matrix @ matrix

    before, end_part = time.process_time(), begin_part()
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(multiply) for _ in range(2)]:
            done.result()
    measured = end_part()

    assert measured.cpu_seconds == pytest.approx(time.process_time() - before, abs=0.05)
    assert measured.seconds >= 0.3 and measured.peak_bytes > 10_000_000


def test_a_part_that_is_interrupted_takes_no_share_of_the_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    meter = CpuMeter(iter([0.0, 1.0, 2.0, 4.0]).__next__)
    monkeypatch.setattr("resources.engine.cost.METER", meter)

    def interrupted(_part: Part) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_task(interrupted, 0, Part("part-0", tmp_path))

    assert run_task(square, 1, Part("part-1", tmp_path)).cost.cpu_seconds == 2
