"""Partitions end one after the other: each is given as soon as it has all of its outcomes."""

from dataclasses import replace

from prelude import Any, Path, pytest, time

from resources.corpus import Corpus
from resources.engine.map_parts import map_parts
from resources.run_tasks import run_partitions, run_tasks, stopped_by_errors
from resources.store.records import PartRecord, Stats
from resources.tasks import Task
from tests.engine.engine_workers import PROCESSES, Part, wait_for_ever_with_a_fault

PLACES = [("books", "a"), ("web", "a"), ("books", "b"), ("web", "b"), ("books", "c")]


def tasks_of(corpus: Corpus) -> list[Task[Any]]:
    """Two sources, in turn; of those of `books` the last is the largest, and begins first."""
    return [
        Task(corpus.store.root, "counted", source, name, f"{source} {name}", ord(name), name)
        for source, name in PLACES
    ]


def publish(task: Task[Any]) -> list[PartRecord]:
    with (task.root.parent / "done").open("a") as done:
        done.write(f"{task.partition} {task.name}\n")
    if task.payload == "broken":
        raise ValueError(f"{task.title} is broken")
    return [task.writer().publish(Stats(1, 1))]


def done_in(corpus: Corpus) -> list[str]:
    return (corpus.store.root.parent / "done").read_text().splitlines()


@pytest.fixture
def one_worker(corpus: Corpus) -> Corpus:
    engine = corpus.settings.engine.model_copy(update={"kind": "in_process", "workers": 1})
    return replace(corpus, settings=corpus.settings.model_copy(update={"engine": engine}))


def test_partitions_are_computed_and_given_one_after_the_other(one_worker: Corpus) -> None:
    with stopped_by_errors(run_partitions(one_worker, tasks_of(one_worker), publish)) as ended:
        first = next(ended)
        expected = [("books", "a"), ("books", "b"), ("books", "c")]
        assert [(each.task.partition, each.task.name) for each in first] == expected
        assert {line.split()[0] for line in done_in(one_worker)[:3]} == {"books"}
        assert [[each.task.name for each in of_source] for of_source in ended] == [["a", "b"]]


def test_the_next_part_is_computed_while_an_outcome_is_looked_at(one_worker: Corpus) -> None:
    with stopped_by_errors(run_partitions(one_worker, tasks_of(one_worker), publish)) as ended:
        next(ended)
        deadline = time.monotonic() + 20
        while len(done_in(one_worker)) < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(done_in(one_worker)) == 4


def test_published_partitions_are_given_before_anything_is_computed(one_worker: Corpus) -> None:
    tasks = tasks_of(one_worker)
    run_tasks(one_worker, [task for task in tasks if task.partition == "web"], publish)

    partitions = run_partitions(one_worker, tasks, publish)

    expected = [("a", True), ("b", True)]
    assert [(each.task.name, each.is_reused) for each in next(partitions)] == expected
    assert len(done_in(one_worker)) == 2
    partitions.close()


def test_an_error_is_given_with_the_outcomes_of_its_partition(one_worker: Corpus) -> None:
    tasks = tasks_of(one_worker)
    tasks[0] = replace(tasks[0], payload="broken")

    by_partition = list(run_partitions(one_worker, tasks, publish))

    errors = [[str(each.error) for each in outcomes if each.error] for outcomes in by_partition]
    assert errors == [["counted[books] part a: ValueError: counted[books] part a is broken"], []]


def test_an_interruption_between_outcomes_kills_what_is_computed(tmp_path: Path) -> None:
    """Without it the loop would wait for a part that never ends."""
    parts = [Part("books-1", tmp_path, partition="books"), Part("web-2", tmp_path, "waits")]

    with (
        pytest.raises(KeyboardInterrupt),
        stopped_by_errors(map_parts(wait_for_ever_with_a_fault, parts, PROCESSES)) as ended,
    ):
        next(ended)
        raise KeyboardInterrupt

    [worker] = tmp_path.glob("*.pid")
    deadline = time.monotonic() + 20
    while is_there(int(worker.stem)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_there(int(worker.stem))


def is_there(pid: int) -> bool:
    """Return whether a process runs; one that has ended may still wait for its parent."""
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "State:\tZ" not in status.read_text()
