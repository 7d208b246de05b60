"""Command `corpus`: its verbs by group, and the exit codes of their errors.

A verb's module is imported when the verb runs: `corpus --help` and a mistyped verb import none.
"""

from __future__ import annotations

import difflib
import os
import select
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import version
from typing import Annotated, Any, Literal, NamedTuple

from cyclopts import App, CycloptsError, Group, Parameter, UnknownCommandError

HERE = "pipeline_defs.commands"


Help = str  # of the function and module of the verb's name, in the folder of its noun or group
Verb = Help | tuple[str, Help]  # else: module and function


class Noun(NamedTuple):
    """A word with verbs of its own."""

    help: Help
    verbs: Mapping[str, Verb]


VERBS: Mapping[str, Mapping[str, Verb | Noun]] = {  # by group
    "build": {
        "init": "Write a commented pipeline.yaml for files of your own.",
        "try": (
            "build.try_files:try_files",
            "Look at a sample of files without a config: what a build would keep, and why.",
        ),
        "build": "Build the corpus, or some sources, or as far as a stage.",
        "doctor": "Check this machine, the store and remote places for what stops builds.",
        "slurm": "Write the batch script of a Slurm job that builds on many nodes.",
        "estimate": "Estimate documents, tokens, seconds and disk from a small sample.",
        "explain": (
            "build.next_run:explain",
            "Explain what a part was made of, and why it would be computed again.",
        ),
        "config": "List every key of pipeline.yaml with its meaning and default.",
        "tokenizer": Noun(
            "Train the tokenizer, compare it with others, or take its file.",
            {
                "retrain": (
                    "build.tokenizer_verbs:retrain",
                    "Train the next one; the next build encodes everything again.",
                ),
                "compare": (
                    "build.compare_tokenizers:compare",
                    "Compare it with other patterns and files: tokens by language.",
                ),
                "path": (
                    "build.tokenizer_verbs:path",
                    "Print the path of its file, to load it elsewhere.",
                ),
            },
        ),
        "rules": Noun(
            "Look at the rules of filters, and choose their thresholds.",
            {
                "presets": (
                    "build.config:presets",
                    "List the presets of rules, or print one as YAML.",
                ),
                "sample": "Show documents that a rule rejected or only just kept.",
                "whatif": "Count what other thresholds would keep, without a run.",
                "calibrate": "Propose limits that keep a share of your own clean text.",
                "renew": "Rank by today's documents; the next build filters these sources again.",
            },
        ),
    },
    "look": {
        "summary": "Show what became of each source; with --stages, at every stage.",
        "report": "Write the corpus as one page: what was removed and why, the mix, what changed.",
        "status": "Show running and last runs, and the state of every stage by source.",
        "trace": "Trace a training sample to its documents, and a document to its fate.",
        "find": "Find the documents, kept or removed, that contain a string.",
        "ui": "Serve Dagster's web UI on this machine, guarded against other web pages.",
        "duplicates": Noun(
            "Show clusters of duplicates, and how their texts differ.",
            {
                "show": (
                    "look.duplicates:show_cluster",
                    "Show a document's cluster, and how its copies differ.",
                ),
                "list": ("look.duplicates:list_clusters", "List the clusters, the largest first."),
                "ledger": (
                    "states.ledgers:ledger_of_build",
                    "Print the ingest order as JSON, for another `dedup.ledger`.",
                ),
            },
        ),
        "annotations": (
            "look.annotations:show_annotations",
            "Show what annotators say of documents, and what a condition would drop.",
        ),
        "topics": (
            "look.topics:show_topics",
            "Show the documents of each topic and source, or find topics again.",
        ),
        "contamination": Noun(
            "Look at the items of evaluation sets in documents.",
            {
                "review": (
                    "look.contamination:review",
                    "Show passages of documents next to the items that they are from.",
                ),
                "sets": (
                    "look.contamination:list_sets",
                    "List the evaluation sets that a name is enough for.",
                ),
            },
        ),
    },
    "life": {
        "verify": "Compare every published file with its manifest; rebuild what differs.",
        "quarantine": Noun(
            "See and replay records that could not be read.",
            {
                "list": (
                    "life.quarantine:list_quarantine",
                    "Count them by source, file and error, with next steps.",
                ),
                "show": ("life.quarantine:show_records", "Show where each is, why, and its bytes."),
                "replay": (
                    "life.quarantine:replay",
                    "Read them again after a fix, or with patched records.",
                ),
            },
        ),
        "states": Noun(
            "Compare the kept states of the corpus, name them, go back, clean up.",
            {
                "history": "List the kept states of a source, and what changed in each.",
                "diff": "Compare two states: documents in and out, numbers, thresholds.",
                "rollback": "Go back to an earlier state of a source, and hold it there.",
                "tag": "Name the state of the corpus: it stays, and can be trained on.",
                "gc": "List what nothing names any more; remove it with --delete.",
                "manifest": "Print a manifest, or list the newest of every partition.",
            },
        ),
        "takedown": (
            "takedown.request:takedown",
            "Remove documents for good, everywhere; `takedown prove` proves it.",
        ),
    },
    "train": {
        "plan": "Compare what the phases ask for with what is there.",
        "mix": Noun(
            "Find the weights of a phase by small proxy runs.",
            {
                "swarm": "Write phases with mixtures around the natural one, to train on.",
                "fit": "Fit the weights of a phase to what was measured of these runs.",
            },
        ),
        "shards": Noun(
            "Find the shards, and keep their order.",
            {
                "path": (
                    "train.path:path",
                    "Print the folder of a format, for a trainer's config.",
                ),
                "ledger": (
                    "states.ledgers:ledger_of_shards",
                    "Write the generations of all sources to a folder, for another build.",
                ),
            },
        ),
        "loader": Noun(
            "Try the loader with the trainers that are installed.",
            {
                "prove": (
                    "train.prove:prove",
                    "Kill trainings, restart them with other ranks, count each sample.",
                ),
            },
        ),
    },
    "share": {
        "disclose": "Fill in a form about the training content: a card, a summary for a law.",
        "push": "Send the corpus to a dataset of a hub, or make Iceberg tables of it.",
    },
}
MOVED = {  # verbs as they were before they had a noun; they still work
    **{old: ("states", old) for old in ("history", "diff", "rollback", "tag", "gc", "manifest")},
    **{old: ("rules", old) for old in ("presets", "sample", "whatif", "calibrate")},
    "path": ("shards", "path"),
    "thresholds": ("rules",),
    "percentiles": ("rules",),
}
WITHDRAWN = {  # verbs of earlier versions, and the next best way
    "engines": "`engine.kind: auto` takes processes from 128 MiB of work on (docs/operating.md)",
    **dict.fromkeys(
        ("shards simulate", "loader simulate"),
        "`corpus plan` has shares and samples of a job, `loader.stats()` its waits for data",
    ),
    "rules propose": "join losses with the decisions of `filtered` (docs/performance.md), and "
    "count a threshold with `corpus rules whatif`",
    "duplicates check": "docs/dedup.md, section 4, measures what is found and missed next to "
    "datasketch, and `benchmarks/dedup_quality.py` repeats it",
    "language": "langdetect, to which it compared our labels, is the weaker detector: "
    "docs/quality.md, section 4, measures both on labelled texts",
}
LOOKS = {"init", "try", "summary", "report", "status", "trace", "find"}  # they start no run
CONFIG = "--config"
GROUPS = {name: Group(name.capitalize(), sort_key=n) for n, name in enumerate(VERBS)}
OPTIONS = Group("Options", sort_key=len(GROUPS))

app = App(
    name="corpus",
    help="Build a Tokenmill corpus, look at it, keep it whole and feed it to training.",
    help_epilogue=f"{CONFIG} PATH, before or after any verb, names another pipeline.yaml than that "
    "of this folder, or of TOKENMILL_CONFIG.",
    version=lambda: version("tokenmill"),
    default_parameter=Parameter(negative=()),
    group_parameters=OPTIONS,
)
app["--help"].group = app["--version"].group = OPTIONS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; the exit code is 0 if all is well, 1 if not, 2 for wrong usage."""
    try:
        tokens = new_form(without_config(sys.argv[1:] if arguments is None else arguments))
        for verb, instead in WITHDRAWN.items():
            if f"{' '.join(tokens[:2])} ".startswith(f"{verb} "):
                sys.stderr.write(f"`corpus {verb}` is withdrawn: {instead}.\n")
                return 2
        if is_verb_missing(tokens):
            app.help_print(tokens)
            return 2
        with patience_of(tokens):
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
    except UnknownCommandError as error:
        sys.stderr.write(f"{misspelt_verb(error)}\n")
        return 2
    except CycloptsError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except Exception as error:
        from pipeline_defs.commands.unexpected_errors import records_fault, system_fault

        failed = exit_code_of(error)
        reason = records_fault(error) or (None if failed else system_fault(error))
        if failed is None and reason is None:
            raise
        sys.stderr.write(f"{reason or error}\n")
        return failed or 1


def patience_of(tokens: Sequence[str]) -> AbstractContextManager[None]:
    """Return the time limits of a verb's requests: a build is patient, a look is not."""
    if not tokens or tokens[0] not in LOOKS:
        return nullcontext()
    from pipeline_defs.commands.build.checks import brief_retries

    return brief_retries()


def without_config(tokens: Sequence[str]) -> list[str]:
    """Take `--config PATH` from a command line: the pipeline.yaml of this process and its own."""
    end = tokens.index("--") if "--" in tokens else len(tokens)
    for n, token in enumerate(tokens[:end]):
        option, equals, path = token.partition("=")
        if option == CONFIG:
            rest = tokens[n + 1 :] if equals else tokens[n + 2 :]
            if not (path := path or "".join(tokens[n + 1 : n + 2])):
                raise CycloptsError(msg=f"{CONFIG} needs the path of a pipeline.yaml.")
            os.environ["TOKENMILL_CONFIG"] = os.path.abspath(path)
            return [*tokens[:n], *rest]
    return list(tokens)


def new_form(tokens: list[str]) -> list[str]:
    """Return a command line as it is written today; an earlier form of a verb is told."""
    if not tokens or tokens[0] not in MOVED:
        return tokens
    now = [*MOVED[tokens[0]], *tokens[1:]]
    sys.stderr.write(f"`corpus {tokens[0]}` is now: corpus {shlex.join(now[:2])}\n")
    return now


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


def misspelt_verb(error: UnknownCommandError) -> str:
    """Return an unknown verb and the nearest one: cyclopts would import every verb to tell."""
    [word, *_], near = error.unused_tokens or [""], error.app or app
    verbs = [name for name in near if not name.startswith("-")]
    close = difflib.get_close_matches(word, verbs, n=1)
    hint = f'Did you mean "{close[0]}"?' if close else f"The commands are {', '.join(verbs)}."
    return f'Unknown command "{word}". {hint}'


def exit_code_of(error: Exception) -> int | None:
    """Return 2 for wrong usage or config, 1 for a fault of the store, None for a bug."""
    # After the verb ran these cost nothing; before it, `corpus --help` would wait for them.
    from corpus_loader.places.errors import CorpusError
    from resources.errors import InputError, UsageError
    from resources.settings.pipeline import SettingsError
    from resources.settings.plug_ins import PlugInError
    from resources.store.store import StoreError

    if isinstance(error, SettingsError | UsageError | InputError | PlugInError):
        return 2
    return 1 if isinstance(error, StoreError | CorpusError) else None


def add_verbs() -> None:
    """Register every verb with its group, by the name of its module and function."""
    for group, verbs in VERBS.items():
        for name, verb in verbs.items():
            if isinstance(verb, Noun):
                noun = App(name=name, help=verb.help, group=GROUPS[group])
                for own, of_noun in verb.verbs.items():
                    add_verb(noun, name, own, of_noun)
                app.command(noun)
            else:
                add_verb(app, group, name, verb, group=GROUPS[group])


def add_verb(parent: App, folder: str, name: str, verb: Verb, **options: Any) -> None:
    """Register a verb of the command or of a noun; its module is imported when it runs."""
    function, text = (f"{folder}.{name}:{name}", verb) if isinstance(verb, str) else verb
    parent.command(f"{HERE}.{function}", name=name, help=text, **options)


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
