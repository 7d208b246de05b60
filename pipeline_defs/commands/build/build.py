"""`corpus build`: build the corpus, or some sources, or as far as a stage.

Runs commands of Dagster and prints them first. Without options these are the jobs build_corpus and
mix_corpus; published parts are not computed again.

One clustering and one tokenizer serve all sources: before some sources go on to `deduped` or
beyond, all of them are built as far as that takes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from itertools import chain
from multiprocessing import get_context
from typing import Annotated, ParamSpec, TypeVar

from cyclopts import Parameter

from assets.mixed.mixed_records import MIXED
from assets.raw.places.observed_inputs import REHASH
from assets.raw.shrink_files import ACCEPT_SHRINK
from assets.sharded.sharded_records import SHARDED
from assets.stages import BY_NAME, ancestors, used_stages
from assets.tokenized.tokenized_records import TOKENIZER
from assets.tokenized.tokenizer_asset import kept_manifest
from corpus_loader.places.traffic import READ, REQUESTS, SENT, WRITTEN, Traffic
from pipeline_defs.commands.look.summary import show
from pipeline_defs.commands.look.update_report import report_line
from pipeline_defs.commands.terminal import say
from pipeline_defs.corpus_tables import newest_tables
from pipeline_defs.load_corpus import load_corpus
from pipeline_defs.warm_server import warm_server
from resources.corpus import Corpus
from resources.dagster_home import prepare_home
from resources.engine.fork_server import can_be_forked
from resources.errors import UsageError, check_name
from resources.store.scratch import scratch_of

P = ParamSpec("P")
T = TypeVar("T")
Accepted = Annotated[
    tuple[str, ...],
    Parameter(
        help="A source whose new state is taken, however many documents of its last good state it "
        "lacks (`max_shrink`); may be repeated."
    ),
]
Rehashed = Annotated[
    bool,
    Parameter(help="Read every input file, also where size and time say that it is unchanged."),
]


def build(
    *,
    source: Annotated[
        tuple[str, ...], Parameter(help="A source; may be repeated (default: all).")
    ] = (),
    to: Annotated[
        str | None,
        Parameter(help="Last stage to build (default: mixed, or sharded with --source)."),
    ] = None,
    dry_run: Annotated[
        bool, Parameter(help="Print what a run would compute, and why; run nothing.")
    ] = False,
    json: Annotated[bool, Parameter(help="With --dry-run: print JSON, for programs.")] = False,
    rehash: Rehashed = False,
    accept_shrink: Accepted = (),
) -> int:
    """Build the corpus; the exit code is that of the first command that fails.

    A command that fails only since sources failed in it, each alone, does not stop the next ones.
    """
    corpus = load_corpus()
    check_names(corpus, (*source, *accept_shrink), to)
    if json and not dry_run:
        raise UsageError("--json prints what --dry-run finds: give both, or neither.")
    if dry_run:
        from pipeline_defs.commands.build.next_run import print_forecast

        last = to or (SHARDED if source else MIXED).name
        return print_forecast(corpus, source, last, json=json)
    prepare_home(corpus.store.root)
    corpus.store.root.mkdir(parents=True, exist_ok=True)
    if not (source or to or rehash or accept_shrink) and forked(is_nothing_new, corpus):
        return 0
    from pipeline_defs.commands.build.dagster_commands import commands_for, raw_commands

    wanted, accepted = tuple(dict.fromkeys(source)), tuple(dict.fromkeys(accept_shrink))
    first = chain(
        raw_commands(corpus, accepted, ACCEPT_SHRINK) if accepted else (),
        raw_commands(corpus, wanted, REHASH) if rehash else (),
    )
    return run_commands(corpus, to or MIXED.name, chain(first, commands_for(corpus, wanted, to)))


def run_commands(corpus: Corpus, last: str, commands: Iterable[tuple[str, ...]]) -> int:
    """Run commands that build as far as a stage, with all that its stages need at hand.

    What came of it is printed then, and faults are the last lines.
    """
    from pipeline_defs.commands.build import dagster_commands as dagster
    from pipeline_defs.commands.build.first_look import check_named_files
    from pipeline_defs.compile_kernels import compile_kernels

    used, root = used_stages(corpus.settings), corpus.store.root
    built = {last, *ancestors(used[last])}
    stages = [stage for name, stage in used.items() if name in built]
    forked(check_named_files, corpus, built)
    import_module("pipeline_defs.definitions")
    compile_kernels(stages)
    codes, faults, before = list[int](), list[str](), Counter(SENT)
    # A fork: the store is read after it, since clients do not fork.
    with (
        dagster.without_frames(root),
        warm_server([stage.name for stage in stages], as_fork=can_be_forked()),
        corpus.store.session(),
    ):
        if TOKENIZER.name in built:
            kept_manifest(corpus)  # refuses another tokenizer now, not after hours of work
        for command in commands:
            start = time.time()
            codes.append(dagster.run_dagster(command, root, faults))
            if codes[-1] and not dagster.failed_sources_only(root, start):
                break
        tell_what_came(corpus, last)
    tell_traffic(corpus, before)
    dagster.tell_faults(faults)
    return next((code for code in codes if code), 0)


def forked(call: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Call a function in a fork of this process, if this process can be forked.

    Threads of Polars, which it starts, would not survive a fork that follows. In a notebook, a fork
    would wait for those of the notebook for ever.
    """
    if not can_be_forked():
        return call(*given, **named)
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as child:
        return child.submit(call, *given, **named).result()


def is_nothing_new(corpus: Corpus) -> bool:
    """Return whether a build would leave the corpus as it is; if so, note and tell it."""
    from pipeline_defs.forecast.nothing_new import note_if_nothing_new

    before = Counter(SENT)
    with corpus.store.session():
        note = note_if_nothing_new(corpus)
        if note is not None:
            say(f"Nothing is new since run {note.run_id[:8]}: no run is needed.")
            tell_what_came(corpus, MIXED.name)
            tell_traffic(corpus, before)
    return note is not None


def tell_what_came(corpus: Corpus, last: str) -> None:
    """Print the summary of a build, and where its report is."""
    if (tables := newest_tables(corpus)).manifests:
        show(tables)
        if last == MIXED.name:
            say(report_line(corpus))


def tell_traffic(corpus: Corpus, before: Traffic) -> None:
    """Print the requests since `before`, if the store is on an object store."""
    if scratch := scratch_of(corpus.store.root):
        say(traffic_line(before, scratch.remote.url))


def traffic_line(before: Traffic, store: str) -> str:
    """Return a line on the requests since `before`: to a store, and for inputs."""
    sent = SENT - before
    of_store = Counter({kind: number for (url, kind), number in sent.items() if url == store})
    inputs = Counter[str]()
    for (url, kind), number in sent.items():
        inputs[kind] += number if url != store else 0
    line = f"Object store: {told(of_store)}"
    return f"{line}; inputs: {told(inputs)}" if inputs[REQUESTS] else line


def told(sent: Counter[str]) -> str:
    """Return requests and megabytes."""
    read, written = sent[READ] / 1e6, sent[WRITTEN] / 1e6
    return f"{sent[REQUESTS]:,} requests, {read:,.1f} MB read, {written:,.1f} MB written"


def check_names(corpus: Corpus, sources: Sequence[str], stage: str | None) -> None:
    """Raise UsageError for a source or stage that the corpus does not have."""
    for name in sources:
        check_name("source", name, corpus.settings.source_names())
    if stage:
        check_name("stage", stage, BY_NAME)
        if stage not in used_stages(corpus.settings):
            raise UsageError(
                f"{corpus.config} does not use the stage {stage!r}. Add the key that asks for it: "
                "`corpus config` lists them all."
            )
