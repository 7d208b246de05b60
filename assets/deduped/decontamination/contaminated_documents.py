"""Decontamination: which evaluation sets the corpus must not hold, and what makes it hold them.

A document hits an item if an n-gram of the item stands in it word for word (or character for
character), whatever the case and punctuation (`contamination` finds hits). Which config is which
paper's:

* 13-words (the default): GPT-3 (arXiv 2005.14165, appendix C), which let sets of short items use as
  few as 8; The Pile and the LM evaluation harness.
* 8-words with min_share 0.7: PaLM (arXiv 2204.02311, section 8), 70 % of an item's 8-grams. PaLM
  counts those of the whole corpus, this module those of one document.
* 50-characters: GPT-4 (arXiv 2303.08774, appendix C). It draws three substrings of each item, or
  takes a shorter item whole; here all substrings are looked for, and case is folded.
* 12-words is datatrove's; it sets numbers to 0 besides, which is not done here.

Trade-off: rephrased and translated items are not found, and what many documents have (a famous
quotation) is a hit like any other: raise min_hits or min_share where that matters.
"""

import polars as pl

from resources.settings.decontamination import DecontaminationConfig


def is_contaminated(config: DecontaminationConfig) -> pl.Expr:
    """Whether a hit suffices: enough different n-grams of one item, and enough of the item."""
    enough = (pl.col("num_ngrams") >= config.min_hits) | (pl.col("item_share") >= 1)
    return enough & (pl.col("item_share") >= config.min_share)


def contaminated(hits: pl.DataFrame, config: DecontaminationConfig) -> pl.Series:
    """doc_id of the contaminated documents, each once, in the order of `hits`."""
    return hits.filter(is_contaminated(config))["doc_id"].unique(maintain_order=True)


def tag_documents(
    documents: pl.DataFrame, hits: pl.DataFrame, config: DecontaminationConfig
) -> pl.DataFrame:
    """Documents with a column `contamination`, List(String): the sets that make them contaminated,
    sorted; an empty list for clean ones."""
    tags = (
        hits.filter(is_contaminated(config))
        .group_by("doc_id")
        .agg(contamination=pl.col("set").unique().sort())
    )
    clean = pl.lit([], dtype=pl.List(pl.String))
    return documents.join(tags, on="doc_id", how="left", maintain_order="left").with_columns(
        pl.col("contamination").fill_null(clean)
    )
