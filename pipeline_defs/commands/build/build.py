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
from typing import Annotated, Any

from cyclopts import Parameter

from assets.mixed.asset import MIXED
from assets.sharded.asset import SHARDED
from assets.stages import BY_NAME, used_stages
from pipeline_defs.commands.build.compile_kernels import compile_kernels
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
    """Build the corpus; the exit code is that of the first command that fails."""
    corpus = load_corpus()
    names = corpus.settings.source_names()
    used = used_stages(corpus.settings)
    for what, given, known in (
        ("source", source, names),
        ("stage", [to] if to else [], list(BY_NAME)),
    ):
        for name in given:
            if name not in known:
                raise UsageError(unknown_name(what, name, known))
    if to and to not in used:
        raise UsageError(
            f"{corpus.config} does not use the stage {to!r}. Add the key that asks for it: "
            "`corpus config` lists them all."
        )
    last = used[to or MIXED.name]
    compile_kernels([last, *ancestors(last)])
    for command in commands_for(corpus, tuple(dict.fromkeys(source)), to):
        if code := run_dagster(command):
            return code
    return 0


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
        yield ("job", "execute", *MODULE, "-j", "build_corpus")
    else:
        yield materialize(upstream, *every)
    if last == MIXED.name:
        yield ("job", "execute", *MODULE, "-j", "mix_corpus")


def shared_stage(stage: Stage[Any, Any], corpus: Corpus) -> Stage[Any, Any] | None:
    """Return the last stage that reads every source before a stage, None if there is none."""
    upstream = {earlier.name for earlier in ancestors(stage)}
    shared = [
        earlier
        for earlier in used_stages(corpus.settings).values()
        if earlier.name in upstream
        and earlier.partitions == "none"
        and any(source.partitions == "source" for source in ancestors(earlier))
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
