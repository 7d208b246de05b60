"""An annotator: how many letters the words of a document have on average."""

import polars as pl

WORD = r"\p{L}+"


def word_length(documents: pl.DataFrame) -> pl.DataFrame:
    """Return `letters` of each document; null without words."""
    words = pl.col("text").str.extract_all(WORD).list.eval(pl.element().str.len_chars())
    return documents.select(letters=words.list.mean())
