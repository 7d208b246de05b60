"""`corpus whatif`: count what other thresholds would keep, from the decisions of the last run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

from pipeline_defs.commands.look.decisions import pick_sources, write_text
from pipeline_defs.commands.look.whatif_replay import what_if
from pipeline_defs.commands.look.whatif_show import show, to_svg
from pipeline_defs.commands.terminal.options import Json, check_one_given
from pipeline_defs.commands.terminal.output import print_json
from pipeline_defs.load_corpus import load_corpus

WHICH = Group("Sources", validator=check_one_given)


def whatif(
    *,
    source: Annotated[
        tuple[str, ...], Parameter(group=WHICH, help="A source; may be repeated.")
    ] = (),
    all_: Annotated[
        bool, Parameter(name="--all", group=WHICH, help="Every source that has decisions.")
    ] = False,
    set_: Annotated[
        tuple[str, ...],
        Parameter(
            name="--set",
            metavar="KEY=VALUE",
            help="A rule (length.too_short) or its key (length.min_chars), and its threshold; "
            "off switches the rule off; lists: a,b,c. May be repeated.",
        ),
    ] = (),
    json: Json = False,
    plot: Annotated[Path | None, Parameter(help="Draw now and then in this file (SVG).")] = None,
) -> int:
    """Count what other thresholds would keep."""
    corpus = load_corpus()
    result = what_if(corpus, pick_sources(corpus, None if all_ else source), set_)
    if plot:
        write_text(plot, to_svg(result))
    if json:
        print_json(result)
    else:
        show(result)
    return 0
