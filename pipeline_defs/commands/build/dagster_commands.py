"""The commands of Dagster that build a corpus, or a part of it, and their errors in a line each."""

from __future__ import annotations

import json
import shlex
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

import dagster as dg

from assets.mixed.mixed_records import MIXED
from assets.raw.raw_records import RAW
from assets.sharded.sharded_records import SHARDED
from assets.stages import BY_NAME, ancestors, used_stages
from pipeline_defs.commands.terminal import ONE_LINE
from pipeline_defs.dagster_internals import ENV_PREFIX, create_dagster_cli
from pipeline_defs.interruption import STOPPED
from resources.corpus import Corpus
from resources.dagster_home import records_folder
from resources.runs.run_notes import BUILD, MIX, RunNote, own_note
from resources.source_faults import has_failed_sources_only
from resources.stage import Stage
from resources.store.records import StageRecords
from resources.tasks import GLOBAL

FRAMES = "\nStack Trace:\n"  # begins the listing of Dagster's errors
MODULE = ("-m", "pipeline_defs.definitions")
Command = tuple[str, ...]


def commands_for(corpus: Corpus, sources: Sequence[str], to: str | None) -> Iterator[Command]:
    """Yield the commands that build `sources` (none: all of them) as far as a stage."""
    names = corpus.settings.source_names()
    last = to or (SHARDED if sources else MIXED).name
    used = used_stages(corpus.settings)
    upstream = used[SHARDED.name if last == MIXED.name else last]
    every = ("--partition-range", f"{names[0]}...{names[-1]}")
    if sources and upstream.partitions == "source":
        if shared := shared_stage(upstream, corpus):
            yield materialize(shared, *every)
        for name in sources:
            yield materialize(upstream, "--partition", name)
    elif upstream.name == SHARDED.name:
        yield ("job", "execute", *MODULE, "-j", BUILD)
    else:
        yield materialize(upstream, *every)
    if last == MIXED.name:
        yield ("job", "execute", *MODULE, "-j", MIX)


def raw_commands(corpus: Corpus, sources: Sequence[str], flag: str) -> Iterator[Command]:
    """Yield the commands that read `sources` (none: all of them) with a flag of `raw` set."""
    names = corpus.settings.source_names()
    for name in sources or [f"{names[0]}...{names[-1]}"]:
        partitions = ("--partition" if sources else "--partition-range", name)
        yield (*materialize(RAW, *partitions), *with_flag(RAW, flag))


def with_flag(stage: StageRecords[Any, Any], flag: str) -> Command:
    """Return the options that set a flag of a stage's run config."""
    return ("--config-json", json.dumps({"ops": {stage.name: {"config": {flag: True}}}}))


def renew(store: Path, stage: StageRecords[Any, Any], flag: str, *partitions: str) -> int:
    """Materialize one stage with a flag that has it made again; return the exit code."""
    options = ("--select", stage.name, *partitions, *with_flag(stage, flag))
    faults: list[str] = []
    with without_frames(store):
        code = run_dagster(("asset", "materialize", *MODULE, *options), store, faults)
    tell_faults(faults)
    return code


def shared_stage(stage: Stage[Any, Any], corpus: Corpus) -> Stage[Any, Any] | None:
    """Return the last stage that reads every source before a stage, None if there is none."""
    upstream = ancestors(stage)
    shared = [
        earlier
        for earlier in used_stages(corpus.settings).values()
        if earlier.name in upstream
        and earlier.partitions == "none"
        and any(BY_NAME[name].partitions == "source" for name in ancestors(earlier))
    ]
    return shared[-1] if shared else None


def materialize(stage: StageRecords[Any, Any], *partitions: str) -> Command:
    """Return the command for a stage and all stages that it reads."""
    return ("asset", "materialize", *MODULE, "--select", f"*{stage.name}", *partitions)


class WithoutFrames(TextIOWrapper):
    """Standard error without listings of code, which go to a file.

    Dagster writes an event with its whole error by one call: its first line is shown.
    """

    def __init__(self, shown: TextIO, frames: Path) -> None:
        super().__init__(shown.buffer, shown.encoding, shown.errors, write_through=True)
        self.frames = frames

    def write(self, text: str) -> int:
        """Write a text, or its first line."""
        if FRAMES in text:
            with open(self.frames, "a", encoding="utf-8") as file:
                file.write(text)
            text = text[: text.index("\n") + 1]
        return super().write(text)


def frames_path(store: Path) -> Path:
    """Return the path of the listings of code that a command has not printed."""
    return records_folder(store) / "frames.log"


@contextmanager
def without_frames(store: Path) -> Iterator[None]:
    """Print no listing of code, in this process nor in those that are forked of it."""
    frames = frames_path(store)
    frames.parent.mkdir(parents=True, exist_ok=True)
    frames.unlink(missing_ok=True)
    own = WithoutFrames(sys.stderr, frames)
    try:
        with redirect_stderr(own):
            yield
    finally:
        own.detach()


def run_dagster(command: Command, store: Path, faults: list[str]) -> int:
    """Print a command of Dagster and run it in this process; return its exit code.

    If it fails, `faults` gets the causes: a line for each step and source.
    """
    start, frames = time.time(), frames_path(store)
    sys.stdout.write(f"dagster {shlex.join(command)}\n")
    sys.stdout.flush()
    sys.stderr.flush()
    code = call_dagster(command)
    if code:
        if frames.exists() and not faults:
            faults.append(f"The errors with their frames: {frames}")
        faults += causes(own_note(store, start))
    return code


def tell_faults(faults: Sequence[str]) -> None:
    """Print the faults of commands that failed as the last lines."""
    sys.stdout.flush()
    sys.stderr.write("".join(f"{line.translate(ONE_LINE)}\n" for line in dict.fromkeys(faults)))


def causes(note: RunNote | None) -> Iterator[str]:
    """Yield a line for each source and step that failed in a run."""
    if note is None:  # it broke off before its first step
        return
    for stage, sources in note.failed_sources.items():
        for source, reason in sources.items():
            place = f"{stage}{'' if source == GLOBAL else f'[{source}]'}: "  # as some reasons begin
            yield f"{place}{reason.removeprefix(place)}"
    told = [reason for sources in note.failed_sources.values() for reason in sources.values()]
    of_sources = {name for sources in note.failed_sources.values() for name in sources}
    for fault in note.faults:
        is_told = any(reason.startswith(fault.error) for reason in told)
        if not is_told and fault.error.partition(": ")[0] not in of_sources:
            yield f"{fault.step}: {fault.error}"


def call_dagster(command: Command) -> int:
    """Run a command of Dagster in this process; return its exit code."""
    warnings.filterwarnings("ignore", category=dg.SupersessionWarning)  # it recommends `dg`
    try:
        dagster = create_dagster_cli()  # type: ignore[no-untyped-call]
        dagster.main(list(command), "dagster", auto_envvar_prefix=ENV_PREFIX)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except dg.DagsterExecutionInterruptedError:
        sys.stderr.write(f"{STOPPED}\n")
        return 1
    return 0


def failed_sources_only(store: Path, start: float) -> bool:
    """Return whether the run of this process since `start` failed for failed sources only.

    Such a run has built all that could be built.
    """
    note = own_note(store, start)
    if note is None:  # it broke off before its first step
        return False
    with dg.DagsterInstance.get() as instance:
        run = instance.get_run_by_id(note.run_id)
    return run is not None and has_failed_sources_only(run)
