"""`corpus topics`: the topics that annotators have found, and finding them again."""

from __future__ import annotations

from typing import Annotated

import polars as pl
from cyclopts import Parameter

from pipeline_defs.commands.answers import nested, print_frame
from pipeline_defs.commands.look.report_facts import topic_table
from pipeline_defs.commands.terminal import Json, print_json, say
from pipeline_defs.corpus_tables import newest_tables
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError


def show_topics(
    *,
    renew: Annotated[
        bool,
        Parameter(help="Find them again, in today's documents; the next build tells all anew."),
    ] = False,
    json: Json = False,
) -> int:
    """Print the documents of each topic and source, or find topics again."""
    corpus = load_corpus()
    if not corpus.settings.topics:
        raise UsageError(
            f"{corpus.config} has no annotator with `kind: topics` (docs/quality.md, section 8)."
        )
    if renew:
        return renew_topics(corpus)
    table: pl.DataFrame = topic_table(newest_tables(corpus)["topics"])
    if json:
        print_json(nested(table))
    elif table.is_empty():
        say("No topics are found yet. Run: corpus build")
    else:
        print_frame("topics", table)
    return int(table.is_empty())


def renew_topics(corpus: Corpus) -> int:
    """Train vectors and topics on today's documents; return the exit code."""
    from assets.annotated.annotated_records import ANNOTATION_MODELS
    from assets.annotated.models_asset import RENEW
    from pipeline_defs.commands.build.dagster_commands import renew
    from resources.dagster_home import prepare_home

    prepare_home(corpus.store.root)
    code = renew(corpus.store.root, ANNOTATION_MODELS, RENEW)
    if not code:
        say("`corpus build` tells the topics of all documents again.")
    return code
