"""Contaminated documents: those with enough hits of an evaluation item.

A document hits an item if it contains an n-gram of the item word for word (or character for
character), regardless of case and punctuation; `contamination` finds the hits. Published settings:

* 13-words (the default): GPT-3 (arXiv 2005.14165, appendix C), which used as few as 8 for sets of
  short items; The Pile and the LM evaluation harness.
* 8-words with min_share 0.7: PaLM (arXiv 2204.02311, section 8), 70 % of an item's 8-grams. PaLM
  counts n-grams of the whole corpus, this module those of one document.
* 50-characters: GPT-4 (arXiv 2303.08774, appendix C). GPT-4 samples three substrings of each item,
  or takes a shorter item whole; here all substrings are searched for, and case is folded.
* 12-words: datatrove, which also replaces numbers by 0; this module does not.

Trade-off: rephrased and translated items are not found, and a passage that many documents have (a
famous quotation) is a hit like any other: raise min_hits or min_share where that matters.
"""

import polars as pl

from resources.settings.decontamination import DecontaminationConfig


def is_contaminated(config: DecontaminationConfig) -> pl.Expr:
    """Return the rule that a hit has enough distinct n-grams of its item and enough of the item.

    All n-grams of an item are enough if the item has fewer than `min_hits`.
    """
    enough = (pl.col("num_ngrams") >= config.min_hits) | (pl.col("item_share") >= 1)
    return enough & (pl.col("item_share") >= config.min_share)


def contaminated(hits: pl.DataFrame, config: DecontaminationConfig) -> pl.Series:
    """Return the doc_id of each contaminated document, once, in the order of `hits`."""
    return hits.filter(is_contaminated(config))["doc_id"].unique(maintain_order=True)


def tag_documents(
    documents: pl.DataFrame, hits: pl.DataFrame, config: DecontaminationConfig
) -> pl.DataFrame:
    """Add a column `contamination`, List(String): the sorted sets that contaminate a document.

    The list of a clean document is empty.
    """
    tags = (
        hits.filter(is_contaminated(config))
        .group_by("doc_id")
        .agg(contamination=pl.col("set").unique().sort())
    )
    clean = pl.lit([], dtype=pl.List(pl.String))
    return documents.join(tags, on="doc_id", how="left", maintain_order="left").with_columns(
        pl.col("contamination").fill_null(clean)
    )
