"""Passes: each is planned from the earlier ones by partition, and only the kept ones are kept."""

import errno
from dataclasses import replace

from prelude import Any, pytest

from resources import passes as module
from resources.corpus import Corpus
from resources.engine.cost import Cost
from resources.passes import Earlier, Pass, derive_task, in_passes, run_passes
from resources.run_tasks import run_partitions
from resources.store.records import PartRecord, Stats
from resources.tasks import SIMULTANEOUS, Outcome, Task


def task(corpus: Corpus, partition: str, name: str) -> Task[Any]:
    return Task(corpus.store.root, "counted", partition, name, f"made of {name}", 1, payload=1)


def tasks_of_two_sources(corpus: Corpus) -> list[Task[Any]]:
    places = [("web", "a"), ("books", "a"), ("web", "b")]
    return [task(corpus, *place) for place in places]


def count(one: Task[Any]) -> list[PartRecord]:
    return [one.writer().publish(Stats(one.payload, one.payload))]


def sum_up(_: Corpus, tasks: list[Task], earlier: Earlier) -> list[Task]:
    """Plan one task with the sum of the pass before."""
    total = sum(outcome.records[0].stats.rows_in for outcome in earlier[-1])
    return [replace(tasks[0], name="sum", payload=total)]


def double(_: Corpus, tasks: list[Task], earlier: Earlier) -> list[Task]:
    """Plan the stage's own tasks, with a number of the pass before if there was any."""
    if not earlier[-1]:
        return tasks
    total = earlier[-1][0].records[0].stats.rows_in
    return [replace(one, payload=2 * total) for one in tasks]


def beforehand(_: Corpus, tasks: list[Task], __: Earlier) -> list[Task]:
    return [replace(one, name=f"early-{one.name}") for one in tasks]


def rows(outcomes: list[Outcome]) -> list[tuple[str, str, int]]:
    """Partition, part and rows of each outcome."""
    return [
        (outcome.task.partition, record.name, record.stats.rows_in)
        for outcome in outcomes
        for record in outcome.records
    ]


def test_a_pass_is_planned_from_the_earlier_ones_of_its_partition(corpus: Corpus) -> None:
    passes = [Pass(count), Pass(count, plan=sum_up)]
    outcomes = run_passes(corpus, tasks_of_two_sources(corpus), passes)

    assert rows(outcomes) == [
        *[("web", "a", 1), ("web", "b", 1), ("web", "sum", 2)],
        *[("books", "a", 1), ("books", "sum", 1)],
    ]


def test_a_pass_that_is_not_kept_is_in_no_outcome(corpus: Corpus) -> None:
    passes = [Pass(count, plan=beforehand, is_kept=False), Pass(count)]

    outcomes = run_passes(corpus, tasks_of_two_sources(corpus), passes)

    assert rows(outcomes) == [("web", "a", 1), ("web", "b", 1), ("books", "a", 1)]
    assert corpus.store.partition("counted", "web").find_part("early-a", "made of a")


def test_a_pass_that_is_not_kept_is_skipped_where_nothing_is_missing(corpus: Corpus) -> None:
    tasks = tasks_of_two_sources(corpus)
    count(tasks[0])
    count(tasks[1])  # all of books, half of web
    passes = [
        Pass(count, plan=beforehand, is_kept=False),
        Pass(count, plan=sum_up, is_kept=False),
        Pass(count, plan=double),
    ]

    outcomes = run_passes(corpus, tasks, passes)

    assert rows(outcomes) == [("web", "a", 1), ("web", "b", 4), ("books", "a", 1)]
    assert [outcome.is_reused for outcome in outcomes] == [True, False, True]
    assert corpus.store.partition("counted", "web").find_part("early-b", "made of b")
    assert corpus.store.partition("counted", "books").find_part("early-a", "made of a") is None


def test_kept_passes_over_published_tasks_are_planned_all_the_same(corpus: Corpus) -> None:
    tasks = tasks_of_two_sources(corpus)
    for one in tasks:
        count(one)

    outcomes = run_passes(corpus, tasks, [Pass(count), Pass(count, plan=sum_up)])

    assert ("web", "sum", 2) in rows(outcomes)
    assert run_passes(corpus, [], [Pass(count), Pass(count, plan=sum_up)]) == []


def test_costs_of_a_pass_that_is_not_kept_count_for_the_others(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpu_seconds = {"early-a": 4.0, "early-b": 2.0, "early-c": 2.0, "a": 1.0, "b": 1.0, "c": 3.0}
    costs = {name: Cost(0.0, 1.0, spent, 0) for name, spent in cpu_seconds.items()}
    tasks = [*tasks_of_two_sources(corpus), task(corpus, "web", "c")]

    def run_tasks(_: Corpus, tasks: list[Task], work: Any) -> list[Outcome]:
        return [
            Outcome(one, work(one), () if one.name == "b" else (costs[one.name],), one.name == "b")
            for one in tasks
        ]

    monkeypatch.setattr(module, "run_tasks", run_tasks)
    passes = [Pass(count, plan=beforehand, is_kept=False), Pass(count)]

    outcomes = run_passes(corpus, tasks, passes)

    spent = [(one.task.name, sum(cost.cpu_seconds for cost in one.costs)) for one in outcomes]
    assert spent == [("a", 9.0), ("b", 0), ("c", 3.0), ("a", 5.0)]


def test_a_pass_that_shares_memory_has_few_workers(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = corpus.settings.engine.model_copy(update={"workers": 99})
    many = replace(corpus, settings=corpus.settings.model_copy(update={"engine": engine}))
    workers: list[int] = []

    def run_tasks(corpus: Corpus, tasks: list[Task], _: Any) -> list[Outcome]:
        workers.append(corpus.settings.engine.num_workers())
        return [Outcome(one, [], (), False) for one in tasks]

    monkeypatch.setattr(module, "run_tasks", run_tasks)
    run = in_passes(Pass(count), Pass(count, shares_memory=True))
    list(run(many, tasks_of_two_sources(many), count, run_partitions))

    assert workers == [99, SIMULTANEOUS]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.ENOENT])
def test_a_full_disk_ends_all_partitions_of_a_pass_that_is_planned(
    corpus: Corpus, number: int
) -> None:
    def plan(_: Corpus, tasks: list[Task], __: Earlier) -> list[Task]:
        if tasks[0].partition == "web":
            raise OSError(number, "refused")
        return tasks

    def outcomes() -> list[bool]:
        ran = run_passes(corpus, tasks_of_two_sources(corpus), [Pass(count, plan)])
        return [outcome.error is not None for outcome in ran]

    if number == errno.ENOENT:
        assert outcomes() == [True, False]
        return
    with pytest.raises(OSError, match="refused"):
        outcomes()


def test_a_derived_task_is_made_of_all_that_the_other_is_made_of(corpus: Corpus) -> None:
    one, other = task(corpus, "web", "a"), task(corpus, "web", "b")

    derived = derive_task(one, "c", ["x", 1], 7)

    assert (derived.partition, derived.name, derived.payload) == ("web", "c", 7)
    assert derived.work_bytes == one.work_bytes
    assert derive_task(one, "c", [], None, work_bytes=9).work_bytes == 9
    others = derive_task(one, "c", ["x", 2], 7), derive_task(other, "c", ["x", 1], 7)
    assert len({made.fingerprint for made in (one, derived, *others)}) == 4
    assert derive_task(one, "other name", ["x", 1], 0).fingerprint == derived.fingerprint
