"""`corpus build --dry-run`: what the next run would compute by stage, and why.

Reads the store and the input files, and runs nothing: it works beside a run that holds the lock.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
from rich import box

from assets.stages import ancestors, used_stages
from pipeline_defs.commands.terminal.output import ONE_LINE, new_table, print_json, table_console
from pipeline_defs.forecast.forecast import Forecast, forecast, totals
from resources.corpus import Corpus

STEP_SECONDS = 0.4  # a step with nothing to compute (docs/architecture.md)
MOST_REASONS = 4  # shown of one partition of a stage
WIDTH = 100  # columns, where the output is no terminal


class Reason(msgspec.Struct, frozen=True):
    """Why parts of a partition would be computed, how many, and the first of them."""

    why: tuple[str, ...]
    parts: int
    example: str


class StageForecast(msgspec.Struct, frozen=True):
    """What the next run would do to a partition of a stage."""

    stage: str
    partition: str
    compute: int
    reuse: int
    drop: int
    is_exact: bool
    read_bytes: int
    written_bytes: int
    cpu_seconds: float
    is_measured_here: bool
    reasons: tuple[Reason, ...]
    note: str


class Expected(msgspec.Struct, frozen=True):
    """What the next run would do."""

    stages: tuple[StageForecast, ...]
    workers: int
    seconds: float


def print_forecast(corpus: Corpus, sources: Sequence[str], last: str, *, json: bool) -> int:
    """Print what a run up to a stage would do, of all sources or some; the exit code is 0."""
    used = used_stages(corpus.settings)
    wanted = used.keys() & {last, *ancestors(used[last])}
    others = set(corpus.settings.source_names()) - set(sources) if sources else set()
    forecasts = [
        each for each in forecast(corpus) if each.stage in wanted and each.partition not in others
    ]
    workers = corpus.settings.engine.num_workers()
    seconds = sum(each.cpu_seconds for each in forecasts) / workers + STEP_SECONDS * len(wanted)
    if json:
        stages = tuple(as_record(each) for each in forecasts)
        print_json(Expected(stages, workers, round(seconds, 1)))
        return 0
    show(forecasts)
    say(f"About {seconds:,.1f} s on {workers} workers. Nothing was run or written.")
    return 0


def as_record(each: Forecast) -> StageForecast:
    """Return a forecast for programs: its parts as numbers and reasons."""
    return StageForecast(
        each.stage,
        each.partition,
        len(each.computed),
        each.reused,
        len(each.gone),
        each.is_exact,
        each.read_bytes,
        each.written_bytes,
        round(each.cpu_seconds, 3),
        each.is_measured_here,
        tuple(reasons_of(each)),
        each.note,
    )


def reasons_of(each: Forecast) -> Iterator[Reason]:
    """Yield the reasons of a partition's parts, the most frequent first."""
    counts = Counter(part.why for part in each.computed.values())
    for why, count in counts.most_common():
        example = next(part.name for part in each.computed.values() if part.why == why)
        yield Reason(why, count, example)


def show(forecasts: Sequence[Forecast]) -> None:
    """Print a table of stages, then the reasons by partition."""
    numbers = ("compute", "reuse", "drop", "read MB", "write MB", "CPU s")
    table = new_table("the next run, in parts", ["stage"], numbers)
    table.box = box.SIMPLE_HEAD
    for stage, each in totals(forecasts).items():
        about = "" if each.is_exact else "about "
        cells = (len(each.computed), each.reused, len(each.gone))
        sizes = (each.read_bytes / 1e6, each.written_bytes / 1e6, each.cpu_seconds)
        first, *others = (f"{count:,}" for count in cells)
        table.add_row(stage, about + first, *others, *(f"{size:,.1f}" for size in sizes))
    table_console(WIDTH).print(table)
    for each in forecasts:
        for line in lines_of(each):
            say(line)
    measured = [each.stage for each in forecasts if each.computed and not each.is_measured_here]
    if measured:
        say(
            "CPU seconds are those of the last runs on this store; of "
            f"{', '.join(dict.fromkeys(measured))} those of docs/performance.md."
        )


def lines_of(each: Forecast) -> Iterator[str]:
    """Yield a line per reason of a partition."""
    title = f"{each.stage}[{each.partition}]"
    listed = list(reasons_of(each))
    for reason in listed[:MOST_REASONS]:
        parts = "1 part" if reason.parts == 1 else f"{reason.parts:,} parts"
        yield f"{title}: {parts} ({reason.example}): {'; '.join(reason.why)}"
    if len(listed) > MOST_REASONS:
        yield f"{title}: {len(listed) - MOST_REASONS:,} more reasons: `corpus explain PART`"
    if each.note:
        yield f"{title}: {each.note}"


def say(text: str) -> None:
    """Print a line; names of files are untrusted."""
    sys.stdout.write(text.translate(ONE_LINE) + "\n")
