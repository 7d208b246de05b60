"""`corpus build`: build the corpus, or some sources, or as far as a stage.

Stands for commands of Dagster, which are printed before they run. Without options these are the
jobs build_corpus and mix_corpus; parts that are published already are not computed again.

One clustering and one tokenizer serve all sources: before some sources go on to `deduped` or
beyond, all of them are built as far as that takes.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated

from cyclopts import Parameter

from pipeline_defs.load_corpus import load_corpus
from resources.errors import UsageError, unknown_name
from resources.run_reports import HOME_VARIABLE, dagster_home

MODULE = ("-m", "pipeline_defs.definitions")
MIXED = "mixed"
STAGES = (
    "raw",
    "quality",
    "filtered",
    "evaluation",
    "signatures",
    "band_index",
    "duplicates",
    "repeated",
    "substrings",
    "deduped",
    "tokenizer",
    "tokenized",
    "bucketed",
    "sharded",
    MIXED,
)
# The last stage that looks at every source, before the stages of one source.
SHARED = {"repeated": "duplicates", "deduped": "substrings"}
SHARED |= dict.fromkeys(("tokenized", "bucketed", "sharded"), "tokenizer")
Command = tuple[str, ...]


def build(
    *,
    source: Annotated[
        tuple[str, ...], Parameter(help="A source; may be repeated (default: all).")
    ] = (),
    to: Annotated[
        str | None,
        Parameter(help="Last stage to build (default: mixed, or sharded with --source)."),
    ] = None,
) -> int:
    """Build the corpus; the exit code is that of the first command that fails."""
    names = load_corpus().settings.source_names()
    for what, given, known in (("source", source, names), ("stage", [to] if to else [], STAGES)):
        for name in given:
            if name not in known:
                raise UsageError(unknown_name(what, name, known))
    for command in commands_for(names, tuple(dict.fromkeys(source)), to):
        if code := run_dagster(command):
            return code
    return 0


def commands_for(
    names: Sequence[str], sources: Sequence[str], stage: str | None
) -> Iterator[Command]:
    """The commands that build `sources` (none: all of `names`) as far as a stage."""
    last = stage or ("sharded" if sources else MIXED)
    upstream = "sharded" if last == MIXED else last
    every = ("--partition-range", f"{names[0]}...{names[-1]}")
    if sources:
        if upstream in SHARED:
            yield materialize(SHARED[upstream], *every)
        for name in sources:
            yield materialize(upstream, "--partition", name)
    elif upstream == "sharded":
        yield ("job", "execute", *MODULE, "-j", "build_corpus")
    else:
        yield materialize(upstream, *every)
    if last == MIXED:
        yield ("job", "execute", *MODULE, "-j", "mix_corpus")


def materialize(stage: str, *partitions: str) -> Command:
    """The command for a stage and all that it is made of."""
    return ("asset", "materialize", *MODULE, "--select", f"*{stage}", *partitions)


def run_dagster(command: Command) -> int:
    """Print a command of Dagster and run it; returns its exit code."""
    home = dagster_home().absolute()
    home.mkdir(parents=True, exist_ok=True)
    sys.stdout.write(f"dagster {shlex.join(command)}\n")
    sys.stdout.flush()
    environment = os.environ | {HOME_VARIABLE: str(home)}
    return subprocess.run([sys.executable, "-m", "dagster", *command], env=environment).returncode
