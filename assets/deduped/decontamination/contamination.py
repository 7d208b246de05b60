"""Contamination: stretches of documents that have the words of items of evaluation sets.

A document hits an item if a stretch of its form (`text_form`), at most twice as long as the item,
has n-grams of the item, word for word (or character for character), regardless of case and
punctuation. The share of the item's words that these cover, as in Llama 3 (arXiv 2407.21783,
section 5.1.4) and Tulu 3 (arXiv 2411.15124), tells a contaminated document from one that is partly
like an item. Settings:

* 5-words with min_share 0.4 (the default): chosen by benchmarks/contamination_recall.py, by what it
  finds of cut and changed items. Llama 3 and Tulu 3 have 8-words.
* 13-words with min_share 0: GPT-3 (arXiv 2005.14165, appendix C), which used as few as 8 for sets
  of short items; The Pile and the LM evaluation harness.
* 8-words with min_share 0.7: near PaLM (arXiv 2204.02311, section 8), 70 % of an item's 8-grams.
* 50-characters with min_share 0: GPT-4 (arXiv 2303.08774, appendix C). GPT-4 samples three
  substrings of each item, or takes a shorter item whole; here all substrings are searched for, and
  case is folded.
* 12-words with min_share 0: datatrove, which also replaces numbers by 0; this module does not.

Every hit is verified on the words themselves. Trade-off: translated items are not found, nor those
with every fifth word changed, and a text that quotes what an item quotes is a hit like any other.
Price: short items slow the search, because the shortest item decides how often a text is sampled.
"""

import numpy as np
import polars as pl

from assets.deduped.decontamination.evaluation_index import EvaluationIndex, units_of
from assets.text.buffers import TextBuffers, blocks, code_point_entries, text_buffers
from assets.text.text_form import text_form, traced_form_of
from resources.materialize.excerpts import DocumentText, as_excerpt
from resources.settings.decontamination import DecontaminationConfig, Unit


def is_contaminated(config: DecontaminationConfig) -> pl.Expr:
    """Return the rule that a hit has enough distinct n-grams of its item and enough of the item.

    All n-grams of an item are enough if it has fewer than `min_hits`.
    """
    enough = (pl.col("num_ngrams") >= config.min_hits) | (pl.col("item_share") >= 1)
    return enough & (pl.col("item_share") >= config.min_share)


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


PASSAGE_CHARACTERS = 300
PASSAGE_BYTES = 4 * PASSAGE_CHARACTERS  # UTF-8 needs no more
HITS = {
    "doc_id": pl.String(),
    "set": pl.String(),
    "item": pl.String(),
    "num_ngrams": pl.UInt32(),
    "num_units": pl.UInt32(),
    "item_share": pl.Float64(),
    "start": pl.Int64(),
    "stop": pl.Int64(),
    "passage": pl.String(),
}


def find_contamination(
    documents: pl.DataFrame, index: EvaluationIndex, config: DecontaminationConfig
) -> pl.DataFrame:
    """Return the hits of documents (doc_id, text String): a row per document and item, in order.

    Columns: doc_id, set, item String, of the stretch with most of the item; num_ngrams UInt32, its
    distinct n-grams of the item; num_units UInt32, words or characters of the item that they cover;
    item_share Float64, their share of those in n-grams of the item; start, stop Int64, byte span
    from the first of them to the last; passage String, its first 300 characters. A hit has at least
    `min_item_words` units of the item. A null text has no hits.
    """
    texts = documents["text"].fill_null("")
    unit, forms = config.ngram.unit, text_form(texts)
    compared = text_buffers(forms)
    hits = _stretches(_matches(compared, index, unit), index)
    hits = hits.filter(pl.col("num_units") >= config.min_item_words)
    if hits.is_empty():
        return pl.DataFrame(schema=HITS)
    is_other = (forms != texts).gather(hits["text"])
    spans = _in_texts(texts, hits["text"], is_other, _locate(compared, hits, unit))
    return (
        hits.with_columns(spans)
        .with_columns(
            documents["doc_id"].gather(hits["text"]),
            index.items["set"].gather(hits["item"]),
            index.items["item"].gather(hits["item"]),
            item_share=hits["num_units"] / index.items["num_covered"].gather(hits["item"]),
            passage=_passages(text_buffers(texts), hits["text"], spans),
        )
        .select(pl.col(name).cast(dtype) for name, dtype in HITS.items())
    )


def _matches(texts: TextBuffers, index: EvaluationIndex, unit: Unit) -> pl.DataFrame:
    """Return every n-gram found: text (document row), unit (within the text), ngram (index row)."""
    from assets.deduped.kernels.ngram_search import find_ngrams

    matches = [np.empty((0, 3), np.int64)]
    data, offsets = texts
    for rows, block in blocks(offsets) if index.ngrams.height else ():
        units, _ = units_of((data, block), unit)
        first_row = 0
        for table in index.tables:
            of_table = find_ngrams(units, table)
            matches.append(of_table + np.array([rows.start, 0, first_row]))
            first_row += len(table.keys)
    return pl.DataFrame(np.concatenate(matches), schema=["text", "unit", "ngram"])


def _stretches(matches: pl.DataFrame, index: EvaluationIndex) -> pl.DataFrame:
    """Return the stretch with most of the item per document and item, the first of several.

    Columns: text, item, num_ngrams, num_units, first and last unit. Stretches are twice as long as
    the item and begin at multiples of its length, so that one of them has any copy whole.
    """
    ngrams = index.ngrams.select("item", "size", at="first").cast(pl.Int64)[matches["ngram"]]
    length = index.items["num_units"].cast(pl.Int64).gather(ngrams["item"])
    matches = matches.hstack(ngrams).with_columns(stretch=pl.col("unit") // length)
    stretch = ["text", "item", "stretch"]
    reach = pl.col("at").shift(-1).over(stretch) - pl.col("at")
    return (
        pl.concat([matches, matches.with_columns(pl.col("stretch") - 1)])
        .group_by(*stretch, "at", "size")
        .agg(pl.min("unit"))
        .sort(*stretch, "at")
        .with_columns(new=pl.min_horizontal("size", reach.fill_null(pl.col("size"))))
        .group_by(stretch, maintain_order=True)
        .agg(
            num_ngrams=pl.len(),
            num_units=pl.sum("new"),
            first=pl.min("unit"),
            last=(pl.col("unit") + pl.col("size")).max() - 1,
        )
        .sort("text", "item", "num_units", descending=[False, False, True], maintain_order=True)
        .unique(["text", "item"], keep="first", maintain_order=True)
    )


def _locate(texts: TextBuffers, hits: pl.DataFrame, unit: Unit) -> pl.DataFrame:
    """Return the columns start and stop: the byte span of each hit's first to last unit."""
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


def _in_texts(
    texts: pl.Series, rows: pl.Series, is_other: pl.Series, spans: pl.DataFrame
) -> pl.DataFrame:
    """Return byte spans of forms as those of the texts, where a text differs from its form."""
    found = []
    for text, differs, *span in zip(texts.gather(rows), is_other, *spans, strict=True):
        if differs:  # a Python loop, because hits are few
            form, places = traced_form_of(text)
            data = form.encode()
            first, last = (len(data[:end].decode()) for end in span)
            ends = int(places[first, 0]), int(places[last - 1, 1])
            span = [len(text[:end].encode()) for end in ends]
        found.append(span)
    return pl.DataFrame(found, schema=spans.schema, orient="row")


def _passages(texts: TextBuffers, rows: pl.Series, spans: pl.DataFrame) -> pl.Series:
    """Return the text between start and stop, at most its first 300 characters."""
    data, offsets = texts
    begins = offsets[rows.to_numpy()].tolist()
    # A Python loop, because hits are few.
    clipped = [
        data[begin + start : begin + min(stop, start + PASSAGE_BYTES)].tobytes()
        for begin, start, stop in zip(begins, spans["start"], spans["stop"], strict=True)
    ]
    passages = [passage.decode("utf-8", "ignore") for passage in clipped]
    return pl.Series(passages, dtype=pl.String).str.head(PASSAGE_CHARACTERS)


def count_by_set(hits: pl.DataFrame) -> pl.DataFrame:
    """Count documents: set; contaminated; partly, like its items, but not contaminated by it.

    `hits` are those of `find_contamination` with a column is_contaminated, Boolean.
    """
    contaminated = pl.col("doc_id").filter("is_contaminated").n_unique()
    partly = pl.n_unique("doc_id") - contaminated
    return hits.group_by("set").agg(contaminated=contaminated, partly=partly).sort("set")


SHOWN = 20  # hits in the report


def contamination_markdown(hits: pl.DataFrame) -> dict[str, str]:
    """Return Markdown of the hits, as of `count_by_set`: its counts, then the largest hits."""
    if hits.is_empty():
        return {"contamination": "No document is like an evaluation item."}
    counts = "".join(
        f"| {name} | {contaminated:,} | {partly:,} |\n"
        for name, contaminated, partly in count_by_set(hits).rows()
    )
    largest = hits.sort(
        ["item_share", "num_ngrams", "doc_id", "set", "item"],
        descending=[True, True, False, False, False],
    ).head(SHOWN)
    rows = "".join(
        f"| {hit['doc_id']} | {hit['set']} | {as_excerpt(hit['item'])} | {hit['item_share']:.0%} "
        f"| {as_excerpt(hit['passage'])} |\n"
        for hit in largest.iter_rows(named=True)
    )
    head = "| document | set | item | share of the item | passage |\n|---|---|---|---|---|\n"
    return {
        "contamination": "| set | contaminated documents | partly like an item |\n"
        f"|---|---|---|\n{counts}",
        "contaminated_documents": DocumentText(f"{head}{rows}"),
    }
