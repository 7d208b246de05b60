"""Command `corpus`: its verbs by group, and the exit codes of their errors.

A verb's module is imported when the verb runs: `corpus --help` and a mistyped verb import none.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Group, Parameter

from pipeline_defs.lasting_imports import lasting_imports

HERE = "pipeline_defs.commands"
VERBS = {  # group: {verb: help}
    "build": {
        "init": "Write a commented pipeline.yaml for files of your own.",
        "build": "Build the corpus, or some sources, or as far as a stage.",
        "estimate": "Estimate documents, tokens, seconds and disk from a small sample.",
        "explain": "Explain what a part was made of, and why it would be computed again.",
        "config": "List every key of pipeline.yaml with its meaning and default.",
        "presets": "List the presets of rules, or print one as YAML.",
    },
    "look": {
        "summary": "Show rows, reasons, tokens and mixes of the corpus.",
        "status": "Show running and last runs, and the state of every stage by source.",
        "sample": "Show documents that a rule rejected or only just kept.",
        "whatif": "Count what other thresholds would keep, without a run.",
        "calibrate": "Propose limits that keep a share of your own clean text.",
        "ui": "Serve Dagster's web UI on this machine, guarded against other web pages.",
        "manifest": "Print a manifest, or list the newest of every partition.",
        "trace": "Trace a training sample to its documents, and a document to its fate.",
        "engines": "Measure when threads, processes or Ray pay on this machine.",
    },
    "life": {
        "verify": "Compare every published file with its manifest; rebuild what differs.",
        "takedown": "Remove documents for good, everywhere; `takedown prove` proves it.",
        "find": "Find the documents, kept or removed, that contain a string.",
        "history": "List the kept states of a source, and what changed in each.",
        "diff": "Compare two states: documents in and out, numbers, thresholds.",
        "rollback": "Go back to an earlier state of a source, and hold it there.",
        "tag": "Name the state of the corpus: it stays, and can be trained on.",
        "gc": "List what nothing names any more; remove it with --delete.",
    },
    "train": {
        "plan": "Compare what the phases ask for with what is there.",
        "path": "Print the folder of a format, for a trainer's config.",
    },
}
NESTED = {  # (group, name of the verb, help): {verb of it: (module and function, help)}
    ("look", "duplicates", "Show clusters of duplicates, and how their texts differ."): {
        "show": (
            "duplicates:show_cluster",
            "Show a document's cluster, and how its copies differ.",
        ),
        "list": ("duplicates:list_clusters", "List the clusters, the largest first."),
        "ledger": (
            "duplicates:ledger_of_build",
            "Print the ingest order as JSON, for another `dedup.ledger`.",
        ),
        "check": (
            "duplicates_check:check_sample",
            "Compare the removals of a sample with datasketch's.",
        ),
    },
    ("build", "tokenizer", "Train the tokenizer, or take its file."): {
        "retrain": (
            "tokenizer_verbs:retrain",
            "Train the next one; the next build encodes everything again.",
        ),
        "path": ("tokenizer_verbs:path", "Print the path of its file, to load it elsewhere."),
    },
    ("build", "percentiles", "Renew what percentiles of quality refer to."): {
        "renew": (
            "percentile_verbs:renew",
            "Rank by today's documents; the next build filters these sources again.",
        ),
    },
    ("life", "shards", "Keep the order of shards."): {
        "ledger": (
            "shard_ledger:ledger_of_shards",
            "Write the generations of all sources to a folder, for another `shards.ledger`.",
        ),
    },
    ("train", "loader", "Simulate the reads of training jobs."): {
        "simulate": (
            "loader_verbs:simulate",
            "Compute order, shares, bytes and cache hits of a job, without reading a token.",
        ),
    },
    ("life", "quarantine", "See and replay records that could not be read."): {
        "list": (
            "quarantine_list:list_quarantine",
            "Count them by source, file and error, with next steps.",
        ),
        "show": ("quarantine_show:show_records", "Show where each is, why, and its bytes."),
        "replay": (
            "quarantine_replay:replay",
            "Read them again after a fix, or with patched records.",
        ),
    },
    ("train", "thresholds", "Thresholds that training speaks for."): {
        "propose": (
            "thresholds:propose",
            "Propose thresholds and weights from losses; print the edit, and change nothing.",
        ),
    },
    ("look", "language", "Check the languages of documents."): {
        "check": (
            "language:check",
            "Compare our labels with langdetect's on a sample, and name the differences.",
        ),
    },
}
GROUPS = {name: Group(name.capitalize(), sort_key=n) for n, name in enumerate(VERBS)}
OPTIONS = Group("Options", sort_key=len(GROUPS))

app = App(
    name="corpus",
    help="Build a Tokenmill corpus, look at it, keep it whole and feed it to training.",
    version=lambda: version("tokenmill"),
    default_parameter=Parameter(negative=()),
    group_parameters=OPTIONS,
)
app["--help"].group = app["--version"].group = OPTIONS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; the exit code is 0 if all is well, 1 if not, 2 for wrong usage."""
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with lasting_imports():  # the verb is imported here
            is_missing = is_verb_missing(tokens)
        if is_missing:
            app.help_print(tokens)
            return 2
        code = app(
            tokens,
            exit_on_error=False,
            print_error=False,
            help_on_error=False,
            result_action="return_value",
        )
        sys.stdout.flush()
        return int(code or 0)
    except BrokenPipeError:
        if not is_output_closed():
            raise
        return leave_output()
    except Exception as error:
        from pipeline_defs.commands.terminal.records_faults import records_fault
        from pipeline_defs.commands.terminal.system_faults import system_fault

        failed = exit_code_of(error)
        reason = records_fault(error) or (None if failed else system_fault(error))
        if failed is None and reason is None:
            raise
        sys.stderr.write(f"{reason or error}\n")
        return failed or 1


def is_output_closed() -> bool:
    """Return whether no one reads what is written any more: `corpus config | head`."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), select.POLLOUT)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))


def leave_output() -> int:
    """Write nothing more; return the exit code of a program that SIGPIPE ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes it at exit
    return 128 + signal.SIGPIPE


def is_verb_missing(tokens: Sequence[str]) -> bool:
    """Return whether the command line ends where a verb, or a verb's verb, should follow."""
    _, apps, rest = app.parse_commands(tokens)
    return apps[-1].default_command is None and not rest


def exit_code_of(error: Exception) -> int | None:
    """Return 2 for wrong usage or config, 1 for a fault of the store, None for a bug."""
    if isinstance(error, CycloptsError):
        return 2
    # After the verb ran these cost nothing; before it, `corpus --help` would wait for them.
    from resources.errors import InputError, UsageError
    from resources.settings.pipeline import SettingsError
    from resources.store.store import StoreError

    if isinstance(error, SettingsError | UsageError | InputError):
        return 2
    return 1 if isinstance(error, StoreError) else None


def add_verbs() -> None:
    """Register every verb with its group, by the name of its module and function."""
    for group, verbs in VERBS.items():
        for verb, text in verbs.items():
            path = f"{HERE}.{group}.{verb}:{verb}"
            app.command(path, name=verb, help=text, group=GROUPS[group])
    for (group, name, text), verbs_of_verb in NESTED.items():
        nested = App(name=name, help=text, group=GROUPS[group])
        for verb, (function, help_text) in verbs_of_verb.items():
            nested.command(f"{HERE}.{group}.{function}", name=verb, help=help_text)
        app.command(nested)


@app.command(group=OPTIONS)
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="Shell to write it for.")], /
) -> int:
    """Print a completion script, to be sourced by the shell."""
    sys.stdout.write(app.generate_completion(shell=shell))
    return 0


add_verbs()

if __name__ == "__main__":
    sys.exit(main())
