"""Reports on duplicates: counts that add up over parts, their plots, and jumps of the rate.

A part's summary is a kilobyte; the stage adds the summaries of all parts when it reports, so that
no report reads a cluster again. A cluster is counted once: in the part of its survivor.
"""

from collections.abc import Mapping, Sequence
from itertools import takewhile

import numpy as np
import polars as pl

from assets.report.histograms import Summary, counted
from resources.charts import Bars, as_markdown, histogram
from resources.materialize.excerpts import DocumentText, as_excerpt

ARROW = " > "  # between two names of sources, which hold no blank
STEPS = 40
# 2, 3, 4, 6, 8, 12, ...: powers of two and the numbers halfway between, up to 2**40.
SIZES = np.array([size << k for k in range(40) for size in (2, 3)])
TOP_CLUSTERS = 10
TOP_PAIRS = 20  # of sources


def summarize_clusters(clusters: pl.DataFrame, source: str, num_documents: int) -> Summary:
    """Count the duplicates of one part, from its table `clusters` and its number of documents.

    `documents`, `removed` and `pairs` ("source > source of the survivor") by source, `methods`,
    `similarities` of removed documents by step of 1/40 (without similarity: not counted), and
    `sizes` of the clusters whose survivor is here, by the smallest size of the bin.
    """
    removed = clusters.filter(pl.col("method").is_not_null())
    sizes = clusters.filter(pl.col("method").is_null())["cluster_size"].to_numpy()
    bins = SIZES[np.searchsorted(SIZES, sizes, side="right") - 1]
    # A Float32 share may be a little less than its step: 0.7 is 0.69999999.
    steps = (removed["similarity"].cast(pl.Float64) * STEPS + 1e-5).floor().clip(0, STEPS - 1)
    pairs = counted(removed["kept_source"])
    return {
        "documents": {source: num_documents},
        "removed": {source: removed.height},
        "pairs": {f"{source}{ARROW}{kept}": count for kept, count in pairs.items()},
        "methods": counted(removed["method"]),
        "sizes": counted(pl.Series(bins, dtype=pl.Int64)),
        "similarities": counted(steps.cast(pl.Int64)),
    }


def largest_clusters(clusters: pl.DataFrame, n: int = TOP_CLUSTERS) -> list[tuple[int, str]]:
    """Return size and survivor's doc_id of the `n` largest clusters with a survivor in this part.

    The largest of many parts are the first of all their lists sorted by (-size, doc_id).
    """
    survivors = clusters.filter(pl.col("method").is_null())
    order = survivors.sort("cluster_size", "kept_doc_id", descending=[True, False]).head(n)
    return list(order.select("cluster_size", "kept_doc_id").iter_rows())


def duplicates_markdown(
    summary: Summary, largest: Sequence[tuple[int, str, str]]
) -> dict[str, str | int | float]:
    """Return plots as Markdown by title, and plain numbers, which Dagster plots over time.

    `largest` holds size, doc_id of the survivor, and the beginning of its text. Empty without
    documents.
    """
    documents = summary.get("documents", {})
    if not sum(documents.values()):
        return {}
    removed = summary["removed"]
    rates = {source: removed[source] / max(1, count) for source, count in documents.items()}
    return {
        "duplicates_per_source": _per_source(summary, rates),
        "duplicates_between_sources": _between_sources(summary),
        "cluster_sizes": _cluster_sizes(summary["sizes"]),
        "largest_clusters": DocumentText(_largest(largest)),
        "similarity_of_removed": _similarities(summary["similarities"]),
        "duplicate_rate": sum(removed.values()) / sum(documents.values()),
        "clusters": sum(summary["sizes"].values()),
        "largest_cluster": max((size for size, _, _ in largest), default=0),
        **{f"duplicate_rate/{source}": rate for source, rate in rates.items()},
        **{f"removed/{method}": count for method, count in summary["methods"].items()},
    }


def _per_source(summary: Summary, rates: Mapping[str, float]) -> str:
    """Chart the share of removed documents of each source."""
    bars = (
        (source, rate, f"{rate:.1%}: {summary['removed'][source]:,} documents")
        for source, rate in sorted(rates.items(), key=lambda item: (-item[1], item[0]))
    )
    return as_markdown(Bars("share of documents removed", tuple(bars)), "removed per source")


def _between_sources(summary: Summary) -> str:
    """Chart the removed documents of each source by the source of their survivors."""
    pairs = {pair: n for pair, n in summary["pairs"].items() if n}
    ranked = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))[:TOP_PAIRS]
    bars = []
    for pair, count in ranked:
        share = count / max(1, summary["documents"][pair.split(ARROW)[0]])
        bars.append((pair, float(count), f"{count:,} documents, {share:.1%}"))
    more = f" ({len(ranked)} of {len(pairs)} pairs)" if len(pairs) > len(ranked) else ""
    title = f"documents of a source removed for one of another{more}"
    return as_markdown(Bars(title, tuple(bars)), "removed between sources")


def _cluster_sizes(sizes: Mapping[str, int]) -> str:
    """Chart the number of clusters by size."""
    counts = {int(size): count for size, count in sizes.items()}
    last = max(counts, default=2)
    starts = list(takewhile(lambda size: size <= last, SIZES.tolist()))
    ends = [start - 1 for start in SIZES.tolist()[1 : len(starts) + 1]]
    bars = (
        (
            f"{start:,}" if start == end else f"{start:,} to {end:,}",
            counts.get(start, 0),
            f"{counts.get(start, 0):,} clusters",
        )
        for start, end in zip(starts, ends, strict=True)
    )
    return as_markdown(Bars("clusters by their number of documents", tuple(bars)), "cluster sizes")


def _similarities(similarities: Mapping[str, int]) -> str:
    """Chart the similarities of removed documents to their survivors."""
    counts = {int(step): count for step, count in similarities.items()}
    bins = [(f"{step / STEPS:g}", counts.get(step, 0)) for step in range(STEPS)]
    title = "removed documents by similarity to the one that stayed"
    return as_markdown(histogram(title, bins, "similarity from ... on"), "similarity")


def _largest(largest: Sequence[tuple[int, str, str]]) -> str:
    """Return a Markdown table of the largest clusters."""
    rows = [f"| {size:,} | `{doc_id}` | {as_excerpt(text)} |" for size, doc_id, text in largest]
    head = ["| documents | survivor | its text begins |", "|---:|---|---|"]
    return "\n".join([*head, *rows]) if rows else "No two documents are duplicates."
