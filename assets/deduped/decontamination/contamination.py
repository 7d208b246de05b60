"""Contamination: passages of documents that stand in items of evaluation sets.

Purpose: which document hits which item, how much of the item it has, and where. Every hit is
verified on the words themselves.
Price, MB of text per second and core (2.5 GHz Xeon) with 10,000 items of 60 words and 5,000 short
ones (480,000 n-grams): 13 words 220, 8 words 235, 50 characters 100 (2.5 million n-grams). Short
items cost: without them 356, 379 and 115. Of 12 million n-grams of characters 70.
"""

import numpy as np
import polars as pl

from assets.deduped.decontamination.evaluation_index import EvaluationIndex, units_of
from assets.text.buffers import TextBuffers, blocks, code_point_entries, text_buffers
from resources.settings.decontamination import DecontaminationConfig, Unit

PASSAGE_CHARACTERS = 300
PASSAGE_BYTES = 4 * PASSAGE_CHARACTERS  # UTF-8 needs no more
HITS = {
    "doc_id": pl.String(),
    "set": pl.String(),
    "item": pl.String(),
    "num_ngrams": pl.UInt32(),
    "item_share": pl.Float64(),
    "start": pl.Int64(),
    "stop": pl.Int64(),
    "passage": pl.String(),
}


def find_contamination(
    documents: pl.DataFrame, index: EvaluationIndex, config: DecontaminationConfig
) -> pl.DataFrame:
    """Hits of documents (doc_id, text String), one row per document and item, in their order.

    Columns: doc_id, set, item String; num_ngrams UInt32, different n-grams of the item in the
    document; item_share Float64, of all that the item has; start, stop Int64, bytes of the first
    passage made of such n-grams; passage String, the first 300 characters of it. A null text has
    none.
    """
    texts = text_buffers(documents["text"].fill_null(""))
    unit = config.ngram.unit
    hits = _first_passages(_matches(texts, index, unit), index)
    if hits.is_empty():
        return pl.DataFrame(schema=HITS)
    spans = _locate(texts, hits, unit)
    return (
        hits.with_columns(spans)
        .with_columns(
            documents["doc_id"].gather(hits["text"]),
            index.items["set"].gather(hits["item"]),
            index.items["item"].gather(hits["item"]),
            item_share=hits["num_ngrams"] / index.items["num_ngrams"].gather(hits["item"]),
            passage=_passages(texts, hits["text"], spans),
        )
        .select(pl.col(name).cast(dtype) for name, dtype in HITS.items())
    )


def _matches(texts: TextBuffers, index: EvaluationIndex, unit: Unit) -> pl.DataFrame:
    """Every n-gram found: text (row of the document), unit (from its begin), ngram (row)."""
    from assets.deduped.kernels.ngram_search import find_ngrams

    found = []
    data, offsets = texts
    for rows, block in blocks(offsets) if index.ngrams.height else ():
        units, _ = units_of((data, block), unit)
        first_row = 0
        for table in index.tables:
            matches = find_ngrams(units, table)
            found.append(matches + np.array([rows.start, 0, first_row]))
            first_row += len(table.keys)
    places = np.concatenate([np.empty((0, 3), np.int64), *found])
    return pl.DataFrame(places, schema=["text", "unit", "ngram"])


def _first_passages(matches: pl.DataFrame, index: EvaluationIndex) -> pl.DataFrame:
    """Of each document and item the number of n-grams, and first and last unit of the first run.

    N-grams that overlap or follow each other are one run.
    """
    ngrams = index.ngrams.select("item", "size").cast(pl.Int64)[matches["ngram"]]
    by_item = ("text", "item")
    reach = pl.col("end").cum_max().shift().over(by_item)
    return (
        matches.hstack(ngrams)
        .sort("text", "item", "unit", "size")
        .with_columns(end=pl.col("unit") + pl.col("size"))
        .with_columns(is_new=(pl.col("unit") > reach).fill_null(False))
        .with_columns(is_first=pl.col("is_new").cum_sum().over(by_item) == 0)
        .group_by(by_item, maintain_order=True)
        .agg(
            num_ngrams=pl.col("ngram").n_unique(),
            first=pl.col("unit").first(),
            last=pl.col("end").filter("is_first").max() - 1,
        )
    )


def _locate(texts: TextBuffers, hits: pl.DataFrame, unit: Unit) -> pl.DataFrame:
    """Columns start and stop: bytes of the units first to last of each hit, in its text."""
    from assets.deduped.kernels.unit_positions import locate_units

    ends = (hits.select("text", unit=name) for name in ("first", "last"))
    wanted = pl.concat(ends).unique().sort("text", "unit")
    spans = locate_units(
        *texts, code_point_entries(), np.ascontiguousarray(wanted), unit == "words"
    )
    located = wanted.with_columns(start=pl.Series(spans[:, 0]), stop=pl.Series(spans[:, 1]))
    first = located.select("text", "start", first="unit")
    last = located.select("text", "stop", last="unit")
    return (
        hits.join(first, on=["text", "first"], how="left", maintain_order="left")
        .join(last, on=["text", "last"], how="left", maintain_order="left")
        .select("start", "stop")
    )


def _passages(texts: TextBuffers, rows: pl.Series, spans: pl.DataFrame) -> pl.Series:
    """The text between start and stop, 300 characters at most.

    A Python loop: a microsecond per hit, and hits are few.
    """
    data, offsets = texts
    begins = offsets[rows.to_numpy()].tolist()
    cut = [
        data[begin + start : begin + min(stop, start + PASSAGE_BYTES)].tobytes()
        for begin, start, stop in zip(begins, spans["start"], spans["stop"], strict=True)
    ]
    passages = [passage.decode("utf-8", "ignore") for passage in cut]
    return pl.Series(passages, dtype=pl.String).str.head(PASSAGE_CHARACTERS)
