"""Progress of a step: lines in the run's log, and a bar where the run was started on a terminal.

A step of less than five seconds says nothing. The pauses between the lines grow, so that a step has
at most 25 lines in its first day. A thread writes them, for one long part to show, too.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field

from resources.engine.cost import Cost, peak_bytes
from resources.engine.run_task import PartTask
from resources.store.records import PartRecord

FIRST = 5.0  # seconds until the first line, and the shortest pause
GROWTH = 1.5  # each line comes that much later than the one before
REDRAW = 0.5  # seconds between two states of the bar
BAR_CELLS = 20
DEFAULT_COLUMNS = 80  # of a terminal that does not tell its width
ERASE = "\r\x1b[2K"
TERMINAL = os.dup(2) if os.isatty(2) else None  # while a step runs, Dagster redirects 2 to a file

Log = Callable[[str], object]
Clock = Callable[[], float]


@dataclass
class Progress:
    """Progress of a step: the parts of its current pass, and the speed since that began."""

    title: str
    clock: Clock = time.monotonic
    began: float = 0.0
    pass_began: float = 0.0
    passes: int = 0
    parts: int = 0
    done: int = 0
    work_bytes: int = 0
    done_bytes: int = 0
    rows: int = 0
    text_bytes: int = 0
    peak_bytes: int = 0
    is_open: bool = False
    planned_meanwhile: Sequence[str] = ()  # partitions whose plan waits for other machines
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.began = self.clock()

    def begin_pass(self, tasks: Sequence[PartTask]) -> None:
        """Begin to compute parts; those of earlier passes are all done."""
        if not tasks or self.is_open:
            return
        with self.lock:
            self.passes += 1
            self.pass_began = self.clock()
            self.parts, self.done = len(tasks), 0
            self.work_bytes, self.done_bytes = sum(task.work_bytes for task in tasks), 0
            self.rows = self.text_bytes = 0

    @contextmanager
    def one_pass(self, tasks: Sequence[PartTask]) -> Iterator[None]:
        """Take what begins meanwhile for one pass over these tasks, which may end before the last.

        `run_tasks` is then called for a few of them at a time.
        """
        self.begin_pass(tasks)
        self.is_open = True
        try:
            yield
        finally:
            self.is_open = False

    def end_part(self, task: PartTask, cost: Cost) -> None:
        """Count a task that has ended."""
        with self.lock:
            self.done += 1
            self.done_bytes += task.work_bytes
            self.peak_bytes = max(self.peak_bytes, cost.peak_bytes)

    def add_records(self, records: Sequence[PartRecord]) -> None:
        """Count the rows and bytes that the parts of a task were made of."""
        with self.lock:
            self.rows += sum(record.stats.rows_in for record in records)
            self.text_bytes += sum(record.stats.text_bytes for record in records)

    def seconds(self) -> float:
        """Return the seconds since the step began."""
        return self.clock() - self.began

    def share(self) -> float:
        """Return the share of the pass that is done: of its bytes, or of its parts without any."""
        if self.work_bytes:
            return self.done_bytes / self.work_bytes
        return self.done / self.parts if self.parts else 0.0

    def describe(self) -> str:
        """Return what is done, how fast, and how long the rest may take."""
        with self.lock:
            facts = [f"{self.done:,} of {self.parts:,} parts"] if self.passes else []
            if self.planned_meanwhile or not self.passes:
                facts.append(" ".join(["planning", *self.planned_meanwhile]))
            facts.append(f"{as_time(self.seconds())} so far")
            spent = self.clock() - self.pass_began
            if self.text_bytes:
                facts.append(f"{self.text_bytes / 1e6 / spent:.3g} MB/s")
            if self.rows:
                facts.append(f"{self.rows / spent:,.0f} docs/s")
            share = self.share()
            if 0 < share < 1:
                facts.append(f"about {as_time(spent * (1 - share) / share)} left")
            facts.append(f"{max(self.peak_bytes, peak_bytes()) / 1e6:,.0f} MB of memory")
        return ", ".join(facts)

    def line(self) -> str:
        """Return a line for the run's log."""
        number = f", pass {self.passes}" if self.passes > 1 else ""
        return f"{self.title}{number}: {self.describe()}"

    def bar(self, columns: int) -> str:
        """Return one line of a terminal, with a bar."""
        full = int(self.share() * BAR_CELLS)
        cells = "━" * full + "─" * (BAR_CELLS - full)
        return f"{self.title} {cells} {self.describe()}"[: columns - 1]


CURRENT: ContextVar[Progress | None] = ContextVar("progress of the running step", default=None)


def current() -> Progress:
    """Return the progress of the step that runs here, or one that no one looks at."""
    return CURRENT.get() or Progress("")


@contextmanager
def shown_progress(title: str, log: Log, terminal: int | None = TERMINAL) -> Iterator[Progress]:
    """Show the progress of a step while it runs; `terminal` is a file descriptor, if there is one.

    Warnings of Tokenmill's own logger go to the run's log, too: kernels that are compiled first.
    """
    progress, has_ended = Progress(title), threading.Event()
    thread = threading.Thread(
        target=show, args=(progress, log, terminal, has_ended), name="progress", daemon=True
    )
    with ExitStack() as ending:
        ending.callback(CURRENT.reset, CURRENT.set(progress))
        ending.enter_context(warnings_to(log))
        thread.start()
        ending.callback(thread.join)
        ending.callback(has_ended.set)
        yield progress


def show(progress: Progress, log: Log, terminal: int | None, has_ended: threading.Event) -> None:
    """Write lines and draw the bar until the step has ended."""
    next_line = FIRST
    while not has_ended.wait(min(REDRAW, FIRST)):
        seconds = progress.seconds()
        if seconds < FIRST:
            continue
        if seconds >= next_line:
            erase(terminal)
            log(progress.line())
            next_line = after(seconds)
        draw(terminal, progress)
    if progress.seconds() >= FIRST:
        erase(terminal)


def after(seconds: float) -> float:
    """Return the time of the line that follows the one at `seconds`."""
    return max(seconds + FIRST, seconds * GROWTH)


def draw(terminal: int | None, progress: Progress) -> None:
    """Draw the bar; the cursor stays at its start, so that a line of the log takes its place."""
    if terminal is not None:
        columns = os.get_terminal_size(terminal).columns or DEFAULT_COLUMNS
        write_to(terminal, f"{ERASE}{progress.bar(columns)}\r")


def erase(terminal: int | None) -> None:
    """Erase the bar."""
    if terminal is not None:
        write_to(terminal, ERASE)


def write_to(terminal: int, text: str) -> None:
    """Write to a terminal; one that was closed is no reason to fail."""
    with suppress(OSError):
        os.write(terminal, text.encode())


@contextmanager
def warnings_to(log: Log) -> Iterator[None]:
    """Send the warnings of Tokenmill's own logger to a run's log."""
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: log(record.getMessage())  # type: ignore[assignment,method-assign]
    logger = logging.getLogger("tokenmill")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def as_time(seconds: float) -> str:
    """Write a duration in its two largest units: 40 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"
