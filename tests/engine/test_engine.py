"""Every engine gives the same results; a dead worker costs its part another try, and no more."""

from collections.abc import Generator, Iterable
from dataclasses import replace

from prelude import Any, Path, ValidationError, os, pytest

from resources.engine.map_parts import AUTO_PROCESS_BYTES, map_parts
from resources.engine.run_task import Ended, PartError
from resources.settings.engine import EngineConfig
from tests.engine.engine_workers import Part, die, fail, meet, process_of, square, wait_for_others

IN_PROCESS = EngineConfig(kind="in_process", workers=2)
PROCESSES = EngineConfig(kind="processes", workers=2)


def parts(folder: Path, *faults: str) -> list[Part]:
    return [Part(f"part-{number}", folder, fault) for number, fault in enumerate(faults)]


def values(ended: Iterable[Ended[Any]]) -> list[Any]:
    """Close the map at the first error, whose traceback keeps it until garbage is collected."""
    try:
        return [each.value() for each in ended]
    finally:
        if isinstance(ended, Generator):
            ended.close()


def attempts(folder: Path, title: str) -> int:
    return len(list(folder.glob(f"{title}.*")))


@pytest.mark.parametrize(
    "config",
    [EngineConfig(kind="in_process", workers=1), IN_PROCESS, PROCESSES, EngineConfig()],
    ids=["one thread", "two threads", "processes", "auto"],
)
def test_every_engine_gives_the_same_results(config: EngineConfig, tmp_path: Path) -> None:
    outcomes = list(map_parts(square, parts(tmp_path, *[""] * 9), config))
    assert sorted((ended.index, ended.value()) for ended in outcomes) == [
        (n, n * n) for n in range(9)
    ]
    assert all(ended.cost.seconds >= 0 for ended in outcomes)


@pytest.mark.parametrize("config", [IN_PROCESS, PROCESSES], ids=["in_process", "processes"])
def test_nothing_to_do_starts_nothing(config: EngineConfig) -> None:
    assert list(map_parts(square, [], config)) == []


@pytest.mark.parametrize("config", [IN_PROCESS, PROCESSES], ids=["in_process", "processes"])
def test_a_source_that_waits_leaves_a_worker_to_the_others(
    config: EngineConfig, tmp_path: Path
) -> None:
    """Both workers on its parts, which are first, would wait for ever."""
    slow = [replace(part, partition="slow") for part in parts(tmp_path, *["4"] * 3)]
    fast = [Part(f"part-{number}", tmp_path) for number in range(3, 7)]
    ended = list(map_parts(wait_for_others, [*slow, *fast], config))
    assert sorted(each.value() for each in ended) == [n * n for n in range(7)]


def test_sources_are_computed_one_after_the_other(tmp_path: Path) -> None:
    mixed = [
        replace(part, partition=name)
        for part, name in zip(parts(tmp_path, *[""] * 6), "abcacb", strict=True)
    ]
    alone = EngineConfig(kind="in_process", workers=1)
    assert [ended.index for ended in map_parts(square, mixed, alone)] == [0, 3, 1, 5, 2, 4]


def test_what_is_next_does_not_depend_on_the_number_of_sources(tmp_path: Path) -> None:
    """With a look at every source for each part, 10,000 sources of 100 parts took hours."""

    class Name(str):
        looks = 0

        def __hash__(self) -> int:
            Name.looks += 1
            return super().__hash__()

    many = [replace(part, partition=Name(part.title)) for part in parts(tmp_path, *[""] * 1000)]
    list(map_parts(square, many, IN_PROCESS))
    assert Name.looks < 30 * len(many)


@pytest.mark.parametrize(
    "config", [EngineConfig(workers=1), IN_PROCESS, PROCESSES], ids=["one", "threads", "processes"]
)
def test_an_error_names_its_part(config: EngineConfig, tmp_path: Path) -> None:
    with pytest.raises(PartError, match=r"^part-1: ValueError: no such column$"):
        values(map_parts(fail, parts(tmp_path, "", "no such column", ""), config))


def test_an_error_ends_its_own_part_only(tmp_path: Path) -> None:
    ended = list(map_parts(fail, parts(tmp_path, "", "no such column", "", ""), IN_PROCESS))
    assert sorted(each.index for each in ended if each.error is None) == [0, 2, 3]


def test_auto_computes_little_work_in_this_process(tmp_path: Path) -> None:
    outcomes = list(map_parts(process_of, parts(tmp_path, "", ""), EngineConfig()))
    assert {process for process, _ in values(outcomes)} == {os.getpid()}


@pytest.mark.parametrize(("num_parts", "threads"), [(1, 4), (3, 1)])
def test_auto_computes_much_work_in_processes_that_share_the_cores(
    tmp_path: Path, num_parts: int, threads: int
) -> None:
    large = [Part(f"part-{n}", tmp_path, work_bytes=AUTO_PROCESS_BYTES) for n in range(num_parts)]
    ended = values(map_parts(process_of, large, EngineConfig(workers=4)))
    assert os.getpid() not in {process for process, _ in ended}
    assert {threads_of for _, threads_of in ended} == {threads}


def test_a_part_whose_worker_died_once_is_tried_again(tmp_path: Path) -> None:
    outcomes = map_parts(die, parts(tmp_path, "", "once", "", "", ""), PROCESSES)
    assert sorted(values(outcomes)) == [0, 1, 4, 9, 16]
    assert attempts(tmp_path, "part-1") == 2


def test_retries_are_of_each_part_and_not_of_all(tmp_path: Path) -> None:
    config = EngineConfig(kind="processes", workers=1, retries=1)
    outcomes = map_parts(die, parts(tmp_path, "once", "", "once", "once"), config)
    assert values(outcomes) == [0, 1, 4, 9]


def test_after_a_death_the_rest_goes_on_with_all_workers(tmp_path: Path) -> None:
    outcomes = map_parts(meet, parts(tmp_path, "once", "once", "meets", "meets"), PROCESSES)
    assert sorted(values(outcomes)) == [0, 1, 4, 9]


def test_a_part_whose_worker_always_dies_is_named(tmp_path: Path) -> None:
    with pytest.raises(PartError, match=r"^part-2: its worker process died 3 times .*part_bytes"):
        values(map_parts(die, parts(tmp_path, "", "", "always", "", ""), PROCESSES))
    assert attempts(tmp_path, "part-2") == 4


def test_finished_parts_are_not_computed_again(tmp_path: Path) -> None:
    config = EngineConfig(kind="processes", workers=1, retries=0)
    with pytest.raises(PartError, match=r"^part-2: its worker process died 1 times"):
        values(map_parts(die, parts(tmp_path, "", "", "always", ""), config))
    assert [attempts(tmp_path, f"part-{number}") for number in range(4)] == [1, 1, 1, 0]


def test_workers_are_the_usable_cores_unless_given() -> None:
    assert EngineConfig().num_workers() == len(os.sched_getaffinity(0))
    assert EngineConfig(workers=7).num_workers() == 7


@pytest.mark.parametrize("config", [{"kind": "x"}, {"workers": 0}, {"retries": -1}, {"cores": 2}])
def test_bad_config_is_refused(config: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        EngineConfig.model_validate(config)
