"""`corpus`: what was built, and whether it is still what was built.

corpus summary [--json]     rows, reasons, tokens, shards per source and stage; the mix per phase
corpus verify [--repair]    compare every published file with its manifest; exit 1 if one differs
corpus config               every key of pipeline.yaml with its meaning and default
corpus presets [NAME]                      the named lists of rules, or one of them as YAML
corpus whatif --all --set KEY=VALUE        what other thresholds would keep, without a run
corpus sample --source S --rule R          documents that a rule rejected, with the passages
corpus duplicates show|list|ledger         clusters of duplicates, and how their texts differ
corpus plan [--phase P] [--plot FILE]      what the phases ask for, and whether it is there
corpus path --source S|--phase P --format F    the folder of a format, for a trainer's config
corpus trace --phase P --sample N | DOC     where a sample's tokens come from; a document's fate
"""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table

from assets.filtered.rules.rules import rules_for
from pipeline_defs.commands.life import verify
from pipeline_defs.commands.look import duplicates, sample, trace, whatif
from pipeline_defs.commands.look.summary import summarize
from pipeline_defs.commands.train import path, plan
from pipeline_defs.load_corpus import load_corpus
from resources.errors import UsageError, unknown_name
from resources.settings.faults import inner_model
from resources.settings.filters import FilterConfig
from resources.settings.pipeline import Settings, SettingsError
from resources.settings.presets import PRESETS
from resources.store.records import to_json
from resources.store.store import StoreError

TOP_REASONS = 3
PIPE_WIDTH = 180  # columns, where the output is no terminal


@dataclass(frozen=True)
class Command:
    """A subcommand: what it is for, what it does (returning the exit code), and its options."""

    about: str
    run: Callable[[Namespace], int]
    add_arguments: Callable[[ArgumentParser], None] = lambda parser: None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0 if all is well, 1 if not, 2 for wrong usage."""
    parser = ArgumentParser(prog="corpus", description="look at a Tokenmill corpus")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, command in COMMANDS.items():
        command.add_arguments(commands.add_parser(name, help=command.about))
    options = parser.parse_args(arguments)
    try:
        return COMMANDS[options.command].run(options)
    except (SettingsError, UsageError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except StoreError as error:
        sys.stderr.write(f"{error}\n")
        return 1


def add_summary_arguments(parser: ArgumentParser) -> None:
    """The options of `corpus summary`."""
    parser.add_argument("--json", action="store_true", help="for programs")


def run_summary(options: Namespace) -> int:
    """Print the corpus in numbers."""
    found = summarize(load_corpus())
    if options.json:
        sys.stdout.write(to_json(found).decode())
    else:
        show(found)
    return 0


def run_config(_: Namespace) -> int:
    """Print every key of pipeline.yaml."""
    for line in key_lines(Settings, ""):
        sys.stdout.write(f"{line}\n")
    return 0


def add_presets_arguments(parser: ArgumentParser) -> None:
    """The options of `corpus presets`."""
    parser.add_argument("name", nargs="?", help="a preset: print it as pipeline.yaml has it")


def run_presets(options: Namespace) -> int:
    """Print the names of the presets and how many rules each sets, or one as YAML."""
    if options.name is None:
        for name in PRESETS:
            rules = rules_for(FilterConfig.model_validate({"presets": [name]}).rules)
            sys.stdout.write(f"{name}: {len(rules)} rules\n")
        return 0
    if options.name not in PRESETS:
        raise UsageError(unknown_name("preset", options.name, PRESETS))
    sys.stdout.write(yaml.safe_dump(PRESETS[options.name], sort_keys=False))
    return 0


def show(found: dict[str, Any]) -> None:
    """Print a summary for people."""
    console = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH)
    stages = Table(title="sources", title_justify="left")
    for name in ("source", "stage"):
        stages.add_column(name)
    for name in (
        "rows in",
        "kept",
        "rejected",
        "duplicates",
        "quarantined",
        "tokens",
        "shards",
        "parts",
    ):
        stages.add_column(name, justify="right")
    stages.add_column("top reasons")
    for source, by_stage in found["sources"].items():
        for stage, numbers in by_stage.items():
            stages.add_row(*stage_row(source, stage, numbers))
        stages.add_section()
    console.print(stages)
    mixes = Table(title="phases", title_justify="left")
    for name in ("phase", "source"):
        mixes.add_column(name)
    for name in ("weight", "planned tokens", "realised tokens", "realised share", "epochs"):
        mixes.add_column(name, justify="right")
    for phase, sources in found["phases"].items():
        total = sum(numbers["realised_tokens"] for numbers in sources.values())
        for source, numbers in sources.items():
            mixes.add_row(*mix_row(phase, source, numbers, total))
        mixes.add_section()
    console.print(mixes)
    console.print(f"The corpus is in {found['store']}", markup=False, highlight=False)
    console.print("See it in the web UI: make ui   (http://127.0.0.1:3000)")


def key_lines(model: type[BaseModel], prefix: str) -> Iterator[str]:
    """One line per key below a config model: path, default, meaning."""
    for name, field in model.model_fields.items():
        inner = inner_model(field.annotation)
        is_list = "tuple" in str(field.annotation) and inner is not None
        path = f"{prefix}{name}{'[]' if is_list else ''}"
        has_default = inner is None and not field.is_required()
        default = (
            f" (default: {field.get_default(call_default_factory=True)!r})" if has_default else ""
        )
        yield f"{path}: {field.description}{default}"
        if inner is not None:
            yield from key_lines(inner, f"{path}.")


def stage_row(source: str, stage: str, numbers: dict[str, Any]) -> list[str]:
    """Cells of one stage of one source."""
    reasons = sorted(numbers["rejected"].items(), key=lambda item: (-item[1], item[0]))
    rejected = sum(numbers["rejected"].values())
    return [
        source,
        stage,
        f"{numbers['rows_in']:,}",
        f"{numbers['rows_kept']:,}",
        f"{rejected:,}",
        f"{numbers['duplicates']:,}",
        f"{numbers['quarantined']:,}",
        f"{numbers['tokens']:,}" if numbers["tokens"] else "",
        f"{numbers['shards']:,}" if "shards" in numbers else "",
        f"{numbers['parts_computed']} new, {numbers['parts_reused']} kept",
        ", ".join(f"{reason} {count:,}" for reason, count in reasons[:TOP_REASONS]),
    ]


def mix_row(phase: str, source: str, numbers: dict[str, Any], total: int) -> list[str]:
    """Cells of one source of one phase."""
    return [
        phase,
        source,
        f"{numbers['weight']:.1%}",
        f"{numbers['planned_tokens']:,}",
        f"{numbers['realised_tokens']:,}",
        f"{numbers['realised_tokens'] / max(1, total):.1%}",
        f"{numbers['epochs']:.2f}",
    ]


COMMANDS = {
    "trace": Command(
        "from a training sample to its documents, and from a document to its fate",
        trace.run,
        trace.add_arguments,
    ),
    "summary": Command(
        "rows, reasons, tokens and mixes of the corpus", run_summary, add_summary_arguments
    ),
    "verify": Command(
        "compare every published file with its manifest, and rebuild what differs",
        verify.run,
        verify.add_arguments,
    ),
    "config": Command("every key of pipeline.yaml with its meaning and default", run_config),
    "presets": Command("named lists of rules", run_presets, add_presets_arguments),
    "whatif": Command(
        "what other thresholds would keep, without a run", whatif.run, whatif.add_arguments
    ),
    "sample": Command(
        "documents that a rule rejected or only just kept", sample.run, sample.add_arguments
    ),
    "path": Command("folders of a format, for a trainer's config", path.run, path.add_arguments),
    "plan": Command(
        "what the phases ask for, and whether it is there", plan.run, plan.add_arguments
    ),
    "duplicates": Command(
        "clusters of duplicates, and how their texts differ",
        duplicates.run,
        duplicates.add_arguments,
    ),
}


if __name__ == "__main__":
    sys.exit(main())
