"""`corpus disclose`: forms about the training content, filled with what the manifests tell."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter

from pipeline_defs.commands.share.facts import Facts, explained
from pipeline_defs.commands.share.forms.markdown import filled
from pipeline_defs.commands.share.gathered_facts import gather
from pipeline_defs.commands.share.published_state import State, state_to_publish
from pipeline_defs.commands.terminal import say, write_text
from pipeline_defs.corpus_tables import TABLES
from pipeline_defs.load_corpus import load_corpus
from resources.errors import UsageError
from resources.store.records import to_json

Form = Literal["eu", "gpai", "ab2013", "hf", "croissant", "spdx", "json"]
TEMPLATES = ("gpai", "ab2013")  # forms that are a template alone


def disclose(
    *,
    form: Annotated[Form, Parameter(help="Form to fill in; json: the facts behind all forms.")],
    out: Annotated[
        Path | None, Parameter(help="Write it to this file (default: print it).")
    ] = None,
    since: Annotated[
        Path | None, Parameter(help="List what differs from an earlier --form json.")
    ] = None,
    sme: Annotated[
        bool, Parameter(help="Name as many domains as small and medium-sized enterprises must.")
    ] = False,
    state: State = None,
    explain: Annotated[
        bool, Parameter(help="Print each fact with its manifests and its query instead.")
    ] = False,
) -> int:
    """Fill in a form about the newest complete state of the corpus, or that of a tag."""
    corpus = load_corpus()
    facts = gather(corpus, state_to_publish(corpus, state), sme=sme)
    if since is not None:
        facts = facts.since(read_facts(since).facts)
    if out is not None:
        write_text(out, render(form, facts))
    if explain:
        tables = (
            f"{name}: {', '.join(columns)}: {' '.join(str(rows.__doc__).split())}"
            for name, (columns, rows) in TABLES.items()
        )
        say(*tables, *explained(facts))
    elif out is not None:
        unknown = sum(fact.value is None for fact in facts.facts)
        say(f"{out}: {unknown:,} facts are UNKNOWN" if unknown else str(out))
    else:
        sys.stdout.write(render(form, facts))
    return 0


def render(form: str, facts: Facts) -> str:
    """Return a form filled with facts."""
    if form == "json":
        return to_json(msgspec.to_builtins(facts)).decode()
    if form in TEMPLATES:
        return filled(form, facts)
    rendered: str = import_module(f"pipeline_defs.commands.share.forms.{form}").render(facts)
    return rendered


def read_facts(path: Path) -> Facts:
    """Read the facts of an earlier disclosure; UsageError if the file has none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Facts)
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(
            f"{path}: no facts of an earlier disclosure ({error}). Give a file that "
            "`corpus disclose --form json --out FILE` wrote."
        ) from None
