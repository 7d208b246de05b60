"""Personal data in conversations: each message is searched by itself.

A pattern such as "password:" and the word after it would reach over the border between a question
and its answer, and its placeholder would take the role of the answer with it.
"""

import polars as pl

from assets.filtered.pii.find_pii import find_pii
from assets.text.chat_messages import change_messages
from resources.settings.filtering.filter_steps import PiiConfig


def find_pii_in_chats(texts: pl.Series, config: PiiConfig) -> tuple[pl.Series, pl.DataFrame]:
    """Return what `find_pii` returns, for texts (String, no nulls) of conversations."""
    clean, counts, places = change_messages(texts, lambda contents: find_pii(contents, config))
    numbers = [name for name in counts.columns if name != "pii_spans"]
    span = pl.col("pii_spans").struct
    found = counts.hstack(places)
    moved = (
        found.select("row", "first", "pii_spans")
        .explode("pii_spans", empty_as_null=False)
        .select(
            "row",
            pii_spans=pl.struct(
                kind=span.field("kind"),
                start=span.field("start") + pl.col("first"),
                end=span.field("end") + pl.col("first"),
            ),
        )
    )
    spans = moved.group_by("row", maintain_order=True).agg("pii_spans")
    totals = found.group_by("row", maintain_order=True).agg(pl.col(numbers).sum())
    empty = pl.lit([], counts.schema["pii_spans"])
    joined = totals.join(spans, on="row", how="left", maintain_order="left")
    return clean, joined.select(pl.col("pii_spans").fill_null(empty), *numbers)
