"""Progress of a step: its sums, the number of its lines, and its end."""

import logging
import pty
import threading
from dataclasses import dataclass

from builders import open_corpus, write_corpus
from prelude import Any, Path, os, pairwise, pytest, time

from resources import progress as module
from resources.engine.cost import NO_COST, Cost
from resources.progress import Progress, after, as_time, current, shown_progress
from resources.run_tasks import run_tasks
from resources.settings.engine import EngineConfig
from resources.store.records import PartRecord, Stats
from resources.tasks import Task


@dataclass(frozen=True)
class Piece:
    """A task with so much work."""

    work_bytes: int
    title: str = "a part"


class Clock:
    """A clock that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines after 40 ms."""
    monkeypatch.setattr(module, "FIRST", 0.04)
    monkeypatch.setattr(module, "REDRAW", 0.02)


def record(rows: int, text_bytes: int) -> PartRecord:
    return PartRecord("p", "f", (), Stats(rows, rows, text_bytes=text_bytes))


def test_a_line_has_parts_speeds_time_left_and_memory() -> None:
    clock = Clock()
    progress = Progress("filtered", clock)
    clock.now += 10
    progress.begin_pass([Piece(30), Piece(10), Piece(20)])
    clock.now += 20
    progress.end_part(Piece(30), Cost(0, 1, 1, 900_000_000_000))
    progress.add_records([record(500, 3_000_000), record(100, 1_000_000)])

    assert progress.line() == (
        "filtered: 1 of 3 parts, 30 s so far, 0.2 MB/s, 30 docs/s, about 20 s left, "
        "900,000 MB of memory"
    )
    assert progress.bar(60).startswith("filtered ━━━━━━━━━━────────── 1 of 3 parts, 30 s")
    assert len(progress.bar(60)) == 59


def test_a_long_part_shows_while_none_has_ended() -> None:
    clock = Clock()
    progress = Progress("duplicates", clock)
    assert progress.line().startswith("duplicates: planning, 0 s so far, ")
    progress.begin_pass([Piece(0)])
    clock.now += 200
    assert progress.line().startswith("duplicates: 0 of 1 parts, 3 min 20 s so far, ")
    assert "left" not in progress.line() and "/s" not in progress.line()


def test_a_plan_that_is_slow_is_named() -> None:
    progress = Progress("raw", Clock())
    progress.planned_meanwhile = ["feed"]
    assert progress.line().startswith("raw: planning feed, 0 s so far, ")
    progress.begin_pass([Piece(0)])
    assert progress.line().startswith("raw: 0 of 1 parts, planning feed, 0 s so far, ")


def test_a_pass_counts_its_own_parts() -> None:
    clock = Clock()
    progress = Progress("substrings", clock)
    progress.begin_pass([Piece(5)])
    progress.end_part(Piece(5), NO_COST)
    progress.begin_pass([])
    clock.now += 30
    progress.begin_pass([Piece(1), Piece(3)])
    clock.now += 10
    progress.end_part(Piece(1), NO_COST)

    assert progress.line().startswith("substrings, pass 2: 1 of 2 parts, 40 s so far, about 30 s")


def test_tasks_that_run_one_by_one_are_one_pass() -> None:
    progress, pieces = Progress("raw"), [Piece(1), Piece(2), Piece(3)]

    with progress.one_pass(pieces):
        for piece in pieces[:2]:
            progress.begin_pass([piece])
            progress.end_part(piece, NO_COST)

    assert (progress.passes, progress.done, progress.parts) == (1, 2, 3)


def test_lines_are_bounded() -> None:
    times = [module.FIRST]
    while times[-1] < 24 * 3600:
        times.append(after(times[-1]))
    assert len(times) <= 26
    assert all(later - earlier >= module.FIRST for earlier, later in pairwise(times))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (3600, "1 h 0 min"), (7500, "2 h 5 min")],
)
def test_a_duration_has_two_units(seconds: float, text: str) -> None:
    assert as_time(seconds) == text


def test_a_short_step_says_nothing() -> None:
    lines: list[str] = []
    read, write = os.pipe()
    with shown_progress("raw", lines.append, write):
        time.sleep(0.05)
    os.close(write)
    assert lines == [] and os.read(read, 100) == b""
    os.close(read)


def test_the_log_has_lines_and_the_terminal_a_bar(quick: None) -> None:
    lines: list[str] = []
    ours, terminal = pty.openpty()
    with shown_progress("raw", lines.append, terminal) as progress:
        progress.begin_pass([Piece(1), Piece(1)])
        progress.end_part(Piece(1), NO_COST)
        time.sleep(0.3)

    drawn = b""
    while not drawn.endswith(b"\r\r\x1b[2K"):  # the last bar, erased
        drawn += os.read(ours, 1 << 16)
    os.close(terminal)
    os.close(ours)
    assert 2 <= len(lines) <= 9
    assert all(line.startswith("raw: 1 of 2 parts, ") for line in lines)
    assert "raw ━━━━━━━━━━────────── 1 of 2 parts" in drawn.decode()


def test_progress_ends_with_a_step_that_fails(quick: None) -> None:
    lines: list[str] = []
    with pytest.raises(ValueError, match="no such column"), shown_progress("raw", lines.append):
        assert any(thread.name == "progress" for thread in threading.enumerate())
        raise ValueError("no such column")

    assert not any(thread.name == "progress" for thread in threading.enumerate())
    assert current().passes == 0
    said = len(lines)
    time.sleep(0.1)
    assert len(lines) == said


def test_kernels_that_are_compiled_are_named_in_the_log() -> None:
    lines: list[str] = []
    with shown_progress("filtered", lines.append):
        logging.getLogger("tokenmill").warning("Compiling the kernels of %s ...", "filtered")
    assert lines == ["Compiling the kernels of filtered ..."]
    assert logging.getLogger("tokenmill").handlers == []


def publish(task: Task[int]) -> list[PartRecord]:
    stats = Stats(task.payload, task.payload, text_bytes=10 * task.payload)
    return [task.writer().publish(stats)]


@pytest.mark.parametrize("kind", ["in_process", "processes"])
def test_the_tasks_of_a_stage_are_counted_as_they_end(tmp_path: Path, kind: Any) -> None:
    corpus = open_corpus(write_corpus(tmp_path, engine={"kind": kind, "workers": 2}))
    tasks = [Task(tmp_path, "counted", "web", f"{n}", f"made of {n}", n, n) for n in range(1, 6)]
    publish(tasks[0])

    with shown_progress("counted", print, None) as progress:
        run_tasks(corpus, tasks, publish)

    assert corpus.settings.engine == EngineConfig(kind=kind, workers=2)
    assert (progress.parts, progress.done) == (4, 4)
    assert (progress.work_bytes, progress.done_bytes) == (14, 14)
    assert (progress.rows, progress.text_bytes) == (14, 140)
    assert progress.peak_bytes > 10_000_000
