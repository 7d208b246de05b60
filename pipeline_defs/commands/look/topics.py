"""`corpus topics`: the topics that annotators have found, and finding them again."""

from __future__ import annotations

from typing import Annotated

import polars as pl
from cyclopts import Parameter

from pipeline_defs.commands.answers import nested, print_frame
from pipeline_defs.commands.look.annotations import renew_models
from pipeline_defs.commands.look.report_facts import topic_table
from pipeline_defs.commands.terminal import Json, print_json, say
from pipeline_defs.corpus_tables import newest_tables
from pipeline_defs.load_corpus import load_corpus
from resources.errors import UsageError


def show_topics(
    *,
    renew: Annotated[
        bool,
        Parameter(help="Find them again, as `corpus annotations --renew` does."),
    ] = False,
    json: Json = False,
) -> int:
    """Print the documents of each topic and source, or find topics again."""
    corpus = load_corpus()
    if not corpus.settings.topics:
        raise UsageError(
            f"{corpus.config} has no annotator with `kind: topics` (docs/annotations.md)."
        )
    if renew:
        return renew_models(corpus)
    table: pl.DataFrame = topic_table(newest_tables(corpus)["topics"])
    if json:
        print_json(nested(table))
    elif table.is_empty():
        say("No topics are found yet. Run: corpus build")
    else:
        print_frame("topics", table)
    return int(table.is_empty())
