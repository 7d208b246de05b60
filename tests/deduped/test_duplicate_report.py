"""Summaries add up over parts, plots show them, and no text acts in the UI."""

import xml.etree.ElementTree as ElementTree
from base64 import b64decode

from markdown_it import MarkdownIt
from prelude import given, pl, pytest, st

from assets.deduped.clusters.duplicates import CLUSTER_SCHEMA
from assets.deduped.clusters.report import (
    duplicates_markdown,
    largest_clusters,
    summarize_clusters,
)
from assets.report.histograms import add_summaries
from resources.drawn_charts import with_pictures
from resources.materialize.excerpts import as_excerpt

SCHEMA = {"row": pl.UInt32} | {k: v for k, v in CLUSTER_SCHEMA.items() if k != "ref"}
Row = tuple[str, int, str, str, float | None, str | None]
# doc_id, size, survivor, its source, similarity, method
WEB: list[Row] = [
    ("a1", 3, "a1", "web", None, None),
    ("a2", 3, "a1", "web", 1.0, "exact"),
    ("b2", 2, "b1", "books", 0.7, "minhash"),
    ("c1", 9, "c1", "web", None, None),
]
BOOKS: list[Row] = [
    ("a3", 3, "a1", "web", 0.85, "minhash"),
    ("b1", 2, "b1", "books", None, None),
    ("d2", 5, "d1", "web", None, "field:url"),
]


def clusters(rows: list[Row]) -> pl.DataFrame:
    full = [(i, doc_id, doc_id, *rest) for i, (doc_id, *rest) in enumerate(rows)]
    return pl.DataFrame(full, SCHEMA, orient="row")


def markdown() -> dict[str, str | int | float]:
    parts = [
        summarize_clusters(clusters(WEB), "web", 10),
        summarize_clusters(clusters(BOOKS), "books", 4),
    ]
    return duplicates_markdown(add_summaries(parts), [(9, "c1", "some | text"), (3, "a1", "")])


def plot_texts(shown: str | int | float) -> list[str]:
    """The texts of the plot in a Markdown image."""
    content = b64decode(with_pictures(str(shown)).split("base64,")[1].rstrip(")"))
    texts = ElementTree.fromstring(content).iter("{http://www.w3.org/2000/svg}text")
    return [each.text or "" for each in texts]


def test_a_summary_counts_removed_documents_and_clusters() -> None:
    assert summarize_clusters(clusters(WEB), "web", 10) == {
        "documents": {"web": 10},
        "removed": {"web": 2},
        "pairs": {"web > books": 1, "web > web": 1},
        "methods": {"exact": 1, "minhash": 1},
        "sizes": {"3": 1, "8": 1},
        "similarities": {"28": 1, "39": 1},
    }


def test_a_similarity_that_was_not_measured_is_not_drawn() -> None:
    found = summarize_clusters(clusters(BOOKS), "books", 4)

    assert found["removed"] == {"books": 2}
    assert found["similarities"] == {"34": 1}


@given(st.lists(st.sampled_from(WEB + BOOKS)), st.integers(0, 30))
def test_summaries_of_parts_add_up_to_that_of_the_whole(rows: list[Row], cut: int) -> None:
    parts = [summarize_clusters(clusters(part), "web", 50) for part in (rows[:cut], rows[cut:])]

    added = add_summaries(parts)

    whole = summarize_clusters(clusters(rows), "web", 100)
    assert added == whole


@given(st.integers(2, 2**32 - 1))
def test_a_cluster_is_counted_in_the_bin_that_holds_its_size(size: int) -> None:
    found = summarize_clusters(clusters([("a", size, "a", "web", None, None)]), "web", 1)
    (start,) = map(int, found["sizes"])
    assert start <= size < start * 1.5 + (start == 3) and bin(start).count("1") <= 2


def test_largest_clusters_come_first_and_only_from_their_survivors() -> None:
    assert largest_clusters(clusters(WEB)) == [(9, "c1"), (3, "a1")]
    assert largest_clusters(clusters(WEB), n=1) == [(9, "c1")]
    assert largest_clusters(clusters([])) == []


def test_the_numbers_are_shares_of_documents() -> None:
    shown = markdown()

    numbers = {name: value for name, value in shown.items() if not isinstance(value, str)}
    assert numbers == {
        "duplicate_rate": 4 / 14,
        "duplicate_rate/web": 0.2,
        "duplicate_rate/books": 0.5,
        "clusters": 3,
        "largest_cluster": 9,
        "removed/exact": 1,
        "removed/minhash": 2,
        "removed/field:url": 1,
    }


def test_the_plots_show_the_shares_the_sizes_and_the_similarities() -> None:
    shown = markdown()

    between = plot_texts(shown["duplicates_between_sources"])
    assert between[:-1] == [
        *("books > web", "2 documents, 50.0%"),
        *("web > books", "1 documents, 10.0%", "web > web", "1 documents, 10.0%"),
    ]
    sizes = plot_texts(shown["cluster_sizes"])
    assert sizes[:-1] == [
        *("2", "1 clusters", "3", "1 clusters", "4 to 5", "0 clusters"),
        *("6 to 7", "0 clusters", "8 to 11", "1 clusters"),
    ]
    assert "20.0%: 2 documents" in plot_texts(shown["duplicates_per_source"])
    assert plot_texts(shown["similarity_of_removed"])[-2] == "0.8"


def test_the_largest_clusters_are_a_table() -> None:
    html = MarkdownIt().enable("table").render(str(markdown()["largest_clusters"]))
    assert html.count("<tr>") == 3
    assert "<td>some | text</td>" in html and "<code>c1</code>" in html


def test_nothing_to_show_is_no_error() -> None:
    assert duplicates_markdown({}, []) == {}
    empty = duplicates_markdown(summarize_clusters(clusters([]), "web", 5), [])
    assert empty["duplicate_rate"] == 0 and empty["largest_cluster"] == 0
    assert "No two documents" in str(empty["largest_clusters"])


def test_of_many_pairs_of_sources_those_that_share_most_are_drawn() -> None:
    names = [f"source-{i:02d}" for i in range(30)]
    parts = [
        summarize_clusters(clusters([("x", 2, "y", name, 1.0, "exact")] * i), name, 100)
        for i, name in enumerate(names)
    ]
    texts = plot_texts(duplicates_markdown(add_summaries(parts), [])["duplicates_between_sources"])
    assert "(20 of 29 pairs)" in texts[-1]
    assert "source-29 > source-29" in texts and "source-09 > source-09" not in texts


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script> <b>x</b>",
        "**a** _b_ `c` ~~d~~ # e",
        "![i](http://x/y.png) [l](javascript:alert(1)) <http://a.b>",
        "a | b \\| c \\",
        "&lt;b&gt; &amp; &#60;",
        "1. one\n\n- two\n\n    code\n***",
        "see http://evil.example and www.evil.example or me@evil.example",
    ],
)
def test_an_excerpt_is_nothing_but_text(text: str) -> None:
    html = MarkdownIt("gfm-like", {"linkify": False}).render(
        f"| x |\n|---|\n| {as_excerpt(text)} |"
    )

    cell = ElementTree.fromstring(html).find("tbody/tr/td")
    assert cell is not None and len(cell) == 0
    assert (cell.text or "").replace("\u2060", "") == " ".join(text.split())


def test_bare_addresses_are_broken_for_linking_renderers() -> None:
    from html import unescape

    shown = unescape(as_excerpt("http://a.b WWW.a.b me@a.b"))
    assert shown == "http:\u2060//a.b WWW\u2060.a.b me@\u2060a.b"


def test_an_excerpt_is_one_short_line_without_hidden_characters() -> None:
    assert as_excerpt("a\n\n b\u202e\x1b\x00") == "a b\ufffd\ufffd\ufffd"
    assert as_excerpt("x" * 10_000_000) == "x" * 200 + "…"
    assert as_excerpt("\u200cनमस्ते\u200d 漢字") == "\u200cनमस्ते\u200d 漢字"
    assert as_excerpt("") == ""
