"""Very many parts go to a cluster in batches; what a machine may be to blame for goes alone."""

import errno
from collections.abc import Callable, Iterator, Sequence

from prelude import Any, Counter, Path, pytest

from resources.engine import ray_tasks
from resources.engine.cost import NO_COST
from resources.engine.ray_tasks import Batch, map_on_ray
from resources.engine.run_task import Ended, NodeFault, PartError, run_task
from resources.settings.engine import EngineConfig
from tests.engine.engine_workers import Part

BEGUN: Counter[str] = Counter()
LOST = "part-1"


def compute(part: Part) -> str:
    BEGUN[part.title] += 1
    if part.fault == "wrong":
        raise ValueError(part.fault)
    if part.fault:
        raise OSError(errno.ENOSPC, part.fault)
    return part.title


class LocalDriver:
    """Runs tasks here, the last first; the batch with a part that is lost does not come back."""

    tasks: Sequence[Any] = ()

    def __init__(self, _: EngineConfig) -> None: ...

    def kill(self) -> None: ...

    def map(
        self, function: Callable[[Any], Any], tasks: Sequence[Any], _: EngineConfig
    ) -> Iterator[Ended[Any]]:
        LocalDriver.tasks = [*LocalDriver.tasks, *tasks]
        for index, task in reversed([*enumerate(tasks)]):
            if isinstance(task, Batch) and LOST in [part.title for _, part in task.parts]:
                yield Ended(index, None, PartError("lost"), NO_COST)
            else:
                yield run_task(function, index, task)


@pytest.mark.parametrize("most", [3, 8])
def test_every_part_ends_once_and_in_few_tasks(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_tasks, "Driver", LocalDriver)
    monkeypatch.setattr(ray_tasks, "MOST_TASKS", most)
    monkeypatch.setattr(ray_tasks, "_idle", [])
    monkeypatch.setattr(LocalDriver, "tasks", [])
    BEGUN.clear()
    faults = {2: "wrong", 3: "full"}
    parts = [Part(f"part-{n}", tmp_path, faults.get(n, ""), n) for n in range(8)]

    ended = {each.index: each for each in map_on_ray(compute, parts, EngineConfig(kind="ray"))}

    assert {n: each.result for n, each in ended.items()} == {
        n: None if n in faults else f"part-{n}" for n in range(8)
    }
    assert str(ended[2].error) == "part-2: ValueError: wrong"
    assert isinstance(ended[3].error, NodeFault)
    assert all(each.cost.end >= each.cost.start > 0 for each in ended.values())
    if most == 3:  # 0 3 6, 1 4 7 and 2 5, then those of the batches that were refused and lost
        assert [len(task.parts) for task in LocalDriver.tasks[:3]] == [3, 3, 2]
        alone = [f"part-{n}" for n in (0, 1, 3, 4, 6, 7)]
        assert [task.title for task in LocalDriver.tasks[3:]] == alone
        assert LocalDriver.tasks[0].work_bytes == 6
        assert {f"part-{n}": 1 + (n in {0, 3}) for n in range(8)} == BEGUN
    else:
        assert LocalDriver.tasks == parts
