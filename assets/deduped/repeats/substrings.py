"""Cut long runs of words that occur elsewhere too out of documents, and find the longest.

`substring_runs.py` finds them. A span is cut from the start of its first word to the end of its
last word; punctuation around it stays.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
import polars as pl

from assets.deduped.repeats.repeated_lines import CHANGE_SCHEMA, replace_texts
from resources.settings.repeats import SubstringsConfig

NUM_LONGEST = 10
EXCERPT_CHARS = 200
FINDING = {"min_words", "within", "keep_first"}  # what spans depend on; the rest is for cutting


class LongestSpan(msgspec.Struct, frozen=True):
    """A span, with its number of words, and the number of spans of that length in its part."""

    doc_id: str
    excerpt: str
    times: int
    words: int


def cut_spans(
    documents: pl.DataFrame, spans: pl.DataFrame, config: SubstringsConfig
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Cut spans out of documents; return the same rows in the same order, and the changes.

    `spans`: doc_id, start and stop, byte offsets into the text at character boundaries, disjoint
    and ascending within a document; spans of other documents are ignored. The changes have a row
    for each document with a span: doc_id; num_cut and cut_chars UInt32; kept_share Float64, of
    characters; is_rejected Boolean.
    """
    if spans.is_empty():
        return documents, pl.DataFrame(schema=CHANGE_SCHEMA)
    by_document = spans.group_by("doc_id").agg("start", "stop", num_cut=pl.len().cast(pl.UInt32))
    ids = documents.select("doc_id").with_row_index("row")
    with_spans = ids.join(by_document, on="doc_id", maintain_order="left")
    texts = documents["text"].gather(with_spans["row"])
    to_cut = zip(texts, with_spans["start"], with_spans["stop"], strict=True)
    shortened = [cut_text(text, starts, stops) for text, starts, stops in to_cut]
    table = with_spans.select("row", "num_cut", text=pl.Series(shortened, dtype=pl.String))
    return replace_texts(documents, table, config.min_kept_share)


def cut_text(text: str, starts: Iterable[int], stops: Iterable[int]) -> str:
    """Return a text without some spans of its UTF-8 bytes, with a separator in place of each."""
    data = text.encode()
    edges = zip([0, *stops], [*starts, len(data)], strict=True)
    first, *others = (data[start:stop].decode() for start, stop in edges)
    kept = [first]
    for following in others:
        left, right = kept[-1].rstrip(), following.lstrip()
        before, after = kept[-1][len(left) :], following[: len(following) - len(right)]
        kept[-1:] = [left, _separator(left, before, after, right), right]
    return "".join(kept)


def _separator(left: str, before: str, after: str, right: str) -> str:
    """Return what separates two texts after a cut: the white space around the cut, once."""
    if not left or not right:
        return ""
    if lines := max(before.count("\n"), after.count("\n")):
        return "\n" * lines
    return " " if (before and after) or (left[-1].isalnum() and right[0].isalnum()) else ""


def longest_spans(documents: pl.DataFrame, spans: pl.DataFrame) -> list[LongestSpan]:
    """Return a span of each of the NUM_LONGEST greatest lengths in words, the longest first.

    One of each length, since the longest are mostly copies of one another.
    """
    if spans.is_empty():
        return []
    lengths = spans.group_by("num_words").agg(pl.first("doc_id", "start", "stop"), times=pl.len())
    longest = lengths.sort("num_words", descending=True).head(NUM_LONGEST)
    texts = documents.select("doc_id", "text")
    with_text = longest.join(texts, on="doc_id", maintain_order="left")
    columns = with_text.select("doc_id", "text", "start", "stop", "times", "num_words")
    return [
        LongestSpan(doc_id, text.encode()[start:stop].decode()[:EXCERPT_CHARS], times, num_words)
        for doc_id, text, start, stop, times, num_words in columns.iter_rows()
    ]


def finding(config: SubstringsConfig | None) -> dict[str, Any]:
    """Return the config of a manifest: all that spans depend on; {} if not configured."""
    return {} if config is None else config.model_dump(mode="json", include=FINDING)
