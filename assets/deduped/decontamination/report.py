"""Report on the contamination of a source: hits per evaluation set, and the largest hits."""

import polars as pl

from resources.materialize.excerpts import DocumentText, as_excerpt

SHOWN = 20  # hits in the report


def contamination_markdown(hits: pl.DataFrame) -> dict[str, str]:
    """Return Markdown of the hits: counts per set, then the largest hits.

    `hits` are those of `find_contamination` with a column is_contaminated, Boolean.
    """
    if hits.is_empty():
        return {"contamination": "No document has an n-gram of an evaluation item."}
    by_set = (
        hits.group_by("set")
        .agg(
            pl.n_unique("item"),
            pl.n_unique("doc_id"),
            enough=pl.col("doc_id").filter("is_contaminated").n_unique(),
        )
        .sort("set")
    )
    counts = "".join(
        f"| {name} | {items:,} | {documents:,} | {enough:,} |\n"
        for name, items, documents, enough in by_set.rows()
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
        "contamination": "| set | items hit | documents hit | of which enough |\n"
        f"|---|---|---|---|\n{counts}",
        "contaminated_documents": DocumentText(f"{head}{rows}"),
    }
