"""`corpus build`: build the corpus, or some sources, or as far as a stage.

Runs commands of Dagster and prints them first. Without options these are the jobs build_corpus and
mix_corpus; published parts are not computed again.

One clustering and one tokenizer serve all sources: before some sources go on to `deduped` or
beyond, all of them are built as far as that takes.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from cyclopts import Parameter

from assets.mixed.asset import MIXED
from assets.sharded.asset import SHARDED
from assets.stages import BY_NAME, STAGES
from pipeline_defs.commands.build.compile_kernels import compile_kernels
from pipeline_defs.commands.build.failed_sources import failed_sources_since
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError, unknown_name
from resources.run_reports import HOME_VARIABLE, dagster_home
from resources.stage import Stage

MODULE = ("-m", "pipeline_defs.definitions")
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
    """Build the corpus; the exit code is that of the first command that fails.

    A command that fails only since sources failed in it, each alone, does not stop the next ones.
    """
    corpus = load_corpus()
    names = corpus.settings.source_names()
    stages = list(BY_NAME)
    for what, given, known in (("source", source, names), ("stage", [to] if to else [], stages)):
        for name in given:
            if name not in known:
                raise UsageError(unknown_name(what, name, known))
    last = BY_NAME[to] if to else MIXED
    compile_kernels([last, *ancestors(last)])
    codes = []
    for command in commands_for(corpus, tuple(dict.fromkeys(source)), to):
        start = datetime.now(UTC)
        codes.append(run_dagster(command))
        if codes[-1] and not failed_sources_since(start, dagster_home()):
            break
    return next((code for code in codes if code), 0)


def commands_for(corpus: Corpus, sources: Sequence[str], to: str | None) -> Iterator[Command]:
    """Yield the commands that build `sources` (none: all of them) as far as a stage."""
    names = corpus.settings.source_names()
    last = to or (SHARDED if sources else MIXED).name
    upstream = SHARDED if last == MIXED.name else BY_NAME[last]
    every = ("--partition-range", f"{names[0]}...{names[-1]}")
    if sources and upstream.partitions == "source":
        if shared := shared_stage(upstream, corpus):
            yield materialize(shared, *every)
        for name in sources:
            yield materialize(upstream, "--partition", name)
    elif upstream is SHARDED:
        yield ("job", "execute", *MODULE, "-j", "build_corpus")
    else:
        yield materialize(upstream, *every)
    if last == MIXED.name:
        yield ("job", "execute", *MODULE, "-j", "mix_corpus")


def shared_stage(stage: Stage[Any, Any], corpus: Corpus) -> Stage[Any, Any] | None:
    """Return the last stage that reads every source before a stage, None if there is none."""
    upstream = ancestors(stage)
    shared = [
        earlier
        for earlier in STAGES
        if earlier in upstream
        and earlier.partitions == "none"
        and any(source.partitions == "source" for source in ancestors(earlier))
        and (earlier.name != "classifier" or corpus.settings.classifier is not None)
    ]
    return shared[-1] if shared else None


def ancestors(stage: Stage[Any, Any]) -> list[Stage[Any, Any]]:
    """Return all stages that a stage reads, directly or through others."""
    return [a for earlier in stage.after for a in (earlier, *ancestors(earlier))]


def materialize(stage: Stage[Any, Any], *partitions: str) -> Command:
    """Return the command for a stage and all stages that it reads."""
    return ("asset", "materialize", *MODULE, "--select", f"*{stage.name}", *partitions)


def run_dagster(command: Command) -> int:
    """Print a command of Dagster and run it; return its exit code."""
    home = dagster_home().absolute()
    home.mkdir(parents=True, exist_ok=True)
    sys.stdout.write(f"dagster {shlex.join(command)}\n")
    sys.stdout.flush()
    environment = os.environ | {HOME_VARIABLE: str(home)}
    return subprocess.run([sys.executable, "-m", "dagster", *command], env=environment).returncode
