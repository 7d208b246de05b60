"""Stage `substrings`: cut out of documents the long runs of words that stand elsewhere too.

`substring_runs.py` finds them. The bytes of a span's words go, from the first word's start to the
last word's end; punctuation around it stays. Price: in Python 2 us a span, and 5 us a cut document
of 5 kB (2.5 GHz Xeon).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from assets.report.excerpts import as_excerpt
from assets.text.table_rows import replace_rows
from resources.settings.repeats import SubstringsConfig

NUM_LONGEST = 10
EXCERPT_CHARS = 200


def cut_spans(
    documents: pl.DataFrame, spans: pl.DataFrame, config: SubstringsConfig
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(documents with their spans cut out, what changed): the same rows in the same order.

    `spans`: doc_id, start and stop, byte offsets into the text at character boundaries, disjoint
    and ascending within a document; spans of other documents are ignored. Changes, of each document
    with a span: doc_id; num_cut and cut_chars UInt32; kept_share Float64, of characters;
    is_rejected Boolean.
    """
    by_document = spans.group_by("doc_id").agg("start", "stop", num_cut=pl.len().cast(pl.UInt32))
    ids = documents.select("doc_id").with_row_index("row")
    found = ids.join(by_document, on="doc_id", maintain_order="left")
    texts = documents["text"].gather(found["row"])
    to_cut = zip(texts, found["start"], found["stop"], strict=True)
    shortened = [cut_text(text, starts, stops) for text, starts, stops in to_cut]
    cut = pl.Series(shortened, dtype=pl.String)
    before, after = texts.str.len_chars(), cut.str.len_chars()
    changes = found.select(
        "doc_id", "num_cut", cut_chars=before - after, kept_share=after / before.clip(1)
    )
    is_rejected = (changes["kept_share"] < config.min_kept_share) | (after == 0)
    whole = documents.with_columns(replace_rows(documents["text"], found["row"], cut))
    return whole, changes.with_columns(is_rejected=is_rejected)


def cut_text(text: str, starts: Iterable[int], stops: Iterable[int]) -> str:
    """A text without some spans of its UTF-8 bytes, and what separates what is left."""
    data = text.encode()
    edges = zip([0, *stops], [*starts, len(data)], strict=True)
    first, *others = (data[start:stop].decode() for start, stop in edges)
    kept = [first]
    for piece in others:
        left, right = kept[-1].rstrip(), piece.lstrip()
        before, after = kept[-1][len(left) :], piece[: len(piece) - len(right)]
        kept[-1:] = [left, _separator(left, before, after, right), right]
    return "".join(kept)


def _separator(left: str, before: str, after: str, right: str) -> str:
    """Between two texts that a cut brings together: the white space that stood around it, once."""
    if not left or not right:
        return ""
    if lines := max(before.count("\n"), after.count("\n")):
        return "\n" * lines
    return " " if (before and after) or (left[-1].isalnum() and right[0].isalnum()) else ""


def longest_spans(documents: pl.DataFrame, spans: pl.DataFrame) -> list[dict[str, Any]]:
    """words, times, doc_id and excerpt of a span of each of the ten greatest lengths in words.

    One of each length, since the longest are mostly copies of one another.
    """
    lengths = spans.group_by("num_words").agg(pl.first("doc_id", "start", "stop"), times=pl.len())
    longest = lengths.sort("num_words", descending=True).head(NUM_LONGEST)
    texts = documents.select("doc_id", "text")
    found = longest.join(texts, on="doc_id", maintain_order="left")
    return [
        {
            "words": row["num_words"],
            "times": row["times"],
            "doc_id": row["doc_id"],
            "excerpt": _excerpt(row["text"], row["start"], row["stop"]),
        }
        for row in found.iter_rows(named=True)
    ]


def _excerpt(text: str, start: int, stop: int) -> str:
    """The beginning of a span of a text's bytes."""
    return text.encode()[start:stop].decode()[:EXCERPT_CHARS]


def substrings_markdown(
    counts: Mapping[str, int], text_bytes: int, longest: Sequence[Mapping[str, Any]]
) -> str:
    """What was found in so much text, and the longest of all parts' `longest_spans`, as Markdown.

    `counts`: spans, span_words, span_bytes and cut_documents; what is not there is 0.
    """
    spans, words, num_bytes, documents = (
        counts.get(name, 0) for name in ("spans", "span_words", "span_bytes", "cut_documents")
    )
    lines = [
        f"**{spans:,} repeated spans** of {words:,} words in {documents:,} documents: "
        f"{num_bytes:,} bytes, {num_bytes / max(1, text_bytes):.2%} of the text.",
        "",
        "| words | spans of that length | document | begins |",
        "| ---: | ---: | --- | --- |",
    ]
    by_length: dict[int, dict[str, Any]] = {}
    for span in longest:
        shown = by_length.setdefault(span["words"], {**span, "times": 0})
        shown["times"] += span["times"]
    for length in sorted(by_length, reverse=True)[:NUM_LONGEST]:
        span = by_length[length]
        begins = as_excerpt(span["excerpt"])
        lines.append(f"| {length:,} | {span['times']:,} | {span['doc_id']} | {begins} |")
    return "\n".join(lines)
