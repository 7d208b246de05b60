"""Cut lines and paragraphs that many documents of a source share: navigation, licence headers.

Purpose: text that a site or a project puts on every page teaches a model nothing after its first
few copies. A line is compared by its *normalised* text (white space folded, if so configured),
counts once for each document that has it, and is cut from all of them once enough have it.
Out of core, in two rounds over parts: 64-bit hashes of all lines are counted first; of the few that
reach the threshold the texts are counted then, so that no collision ever cuts a line.
Trade-off: no document keeps a copy, as which one does would change with every new file. A line
that is common for good reason (`import os`, a refrain) goes as well: `min_chars` and `min_share`
protect short ones and large sources, and paragraphs are the safer unit.
Price, one core (code to web pages): counting 240 to 340 MB/s, cutting 200 to 300.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.report.excerpts import as_excerpt
from assets.text.buffers import blocks, text_buffers
from assets.text.table_rows import replace_rows
from resources.settings.repeats import RepeatedLinesConfig

Unit = Literal["lines", "paragraphs"]

MOST_SHOWN, SHOWN_CHARS = 20, 100
HASH_SCHEMA = {"hash": pl.UInt64, "count": pl.UInt32}
TEXT_SCHEMA = {"hash": pl.UInt64, "text": pl.String, "count": pl.UInt32}
CHANGE_SCHEMA = pl.Schema(
    {
        "doc_id": pl.String,
        "num_cut": pl.UInt32,
        "cut_chars": pl.UInt32,
        "kept_share": pl.Float64,
        "is_rejected": pl.Boolean,
    }
)


def count_lines(texts: pl.Series, config: RepeatedLinesConfig, unit: Unit) -> pl.DataFrame:
    """Hash of every line or paragraph, and how many of `texts` (String) have it.

    Returns hash UInt64, count UInt32, sorted by hash. A null text counts as empty.
    """
    found = [pl.DataFrame(schema=HASH_SCHEMA).drop("count")]
    for block in _units(texts, config, unit):
        pairs = pl.DataFrame({"row": block.rows, "hash": block.hashes})
        found.append(pairs.filter(pl.col("hash") != 0).unique().drop("row"))
    return _count(pl.concat(found))


def collect_lines(
    texts: pl.Series, hashes: pl.Series, config: RepeatedLinesConfig, unit: Unit
) -> pl.DataFrame:
    """The lines or paragraphs whose hash is among `hashes` (UInt64), counted by their full text.

    Returns hash UInt64, text String (normalised), count UInt32, sorted by hash and text.
    """
    wanted = hashes.unique().sort().to_numpy()
    found = [pl.DataFrame(schema=TEXT_SCHEMA).drop("count")]
    for block in _units(texts, config, unit):
        at = block.find(wanted)
        pairs = pl.DataFrame(
            {"row": block.rows[at], "hash": block.hashes[at], "text": block.texts_at(at)}
        )
        found.append(pairs.unique().drop("row"))
    return _count(pl.concat(found))


def add_counts(tables: Iterable[pl.DataFrame], held_bytes: int) -> pl.DataFrame:
    """Sum `count` over tables of `count_lines` or of `collect_lines`, in their order.

    Tables are added up as soon as those not added take `held_bytes`.
    """
    held: list[pl.DataFrame] = []
    for table in tables:
        held.append(table)
        if len(held) > 1 and sum(each.estimated_size() for each in held[1:]) > held_bytes:
            held = [_sum(held)]
    return _sum(held)


def in_order(table: pl.DataFrame) -> pl.DataFrame:
    """The table with its texts laid out one after the other: equal tables are equal Arrow files.

    Polars leaves strings where a group_by or a filter found them, in the order of its threads.
    """
    laid = pl.from_arrow(table.to_arrow(compat_level=pl.CompatLevel.oldest()))
    assert isinstance(laid, pl.DataFrame)
    return laid


def cut_repeated(
    documents: pl.DataFrame, repeated: pl.DataFrame, config: RepeatedLinesConfig, unit: Unit
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Cut from documents (doc_id String, text String, ...) what `repeated` (unit, text) lists.

    Returns the documents, all of them and in order, of which only `text` changed; and of each
    changed one doc_id, num_cut UInt32 (lines or paragraphs), cut_chars UInt32, kept_share Float64
    and is_rejected Boolean. Full normalised texts are compared. What is left are the other lines,
    joined by "\\n" as they were; with a paragraph go the blank lines that follow it.
    """
    texts = documents["text"].fill_null("")
    wanted = repeated.filter(pl.col("unit") == unit)["text"]
    hashes = _hashes_of(wanted, config, unit)
    rows, num_cut = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    cut = [pl.Series(dtype=pl.String)]
    for block in _units(texts, config, unit) if len(hashes) else ():
        at = block.find(hashes)
        at = at[block.texts_at(at).is_in(wanted.implode()).to_numpy()]
        changed, counts = np.unique(block.rows[at], return_counts=True)
        rows.append(changed)
        num_cut.append(counts)
        cut.append(_without(texts.gather(changed), block, at, unit))
    table = pl.DataFrame(
        {"row": np.concatenate(rows), "num_cut": np.concatenate(num_cut), "text": pl.concat(cut)}
    )
    changes = _describe_changes(documents, table, config)
    return documents.with_columns(
        replace_rows(documents["text"], table["row"], table["text"])
    ), changes


def most_frequent(repeated: pl.DataFrame) -> pl.DataFrame:
    """The lines (text, count) that most documents have: MOST_SHOWN of them."""
    return repeated.sort(["count", "text"], descending=[True, False]).head(MOST_SHOWN)


def repeated_markdown(repeated: pl.DataFrame) -> str:
    """A Markdown table of lines (text, count); the text, from documents, is shown as plain text."""
    text = pl.col("text")
    is_long = text.str.len_chars() > SHOWN_CHARS
    shown = pl.when(is_long).then(text.str.head(SHOWN_CHARS) + "…").otherwise(text)
    rows = [
        f"| {count:,} | {as_excerpt(text)} |"
        for text, count in repeated.select(shown, "count").iter_rows()
    ]
    return "\n".join(["| documents | text |", "|---:|---|", *rows])


class _Block(NamedTuple):
    """The lines or paragraphs of a run of texts: hash, row of the text, normalised text."""

    hashes: NDArray[np.uint64]
    rows: NDArray[np.int64]
    texts: tuple[NDArray[np.uint8], NDArray[np.int64]]

    def find(self, wanted: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Where the hashes are that `wanted`, sorted, has."""
        places = np.searchsorted(wanted, self.hashes)
        places[places == len(wanted)] = 0
        return np.flatnonzero(wanted[places] == self.hashes) if len(wanted) else places[:0]

    def texts_at(self, places: NDArray[np.int64]) -> pl.Series:
        """Normalised texts of some."""
        return _strings(*self.texts).gather(places)


def _units(texts: pl.Series, config: RepeatedLinesConfig, unit: Unit) -> Iterator[_Block]:
    """All lines or paragraphs of the texts, a few hundred texts at a time."""
    from assets.deduped.kernels.line_units import find_units

    texts = texts.fill_null("")
    data, offsets = text_buffers(texts.str.to_lowercase() if config.lowercase else texts)
    how = unit == "paragraphs", config.fold_whitespace, config.min_chars
    for rows, block in blocks(offsets):
        hashes, row_of, held, ends = find_units(data, block, *how)
        yield _Block(hashes, row_of + rows.start, (held, ends))


def _strings(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> pl.Series:
    import pyarrow

    buffers = [pyarrow.py_buffer(offsets), pyarrow.py_buffer(data)]
    array = pyarrow.LargeStringArray.from_buffers(len(offsets) - 1, *buffers)
    return pl.Series(array, dtype=pl.String)


def _hashes_of(texts: pl.Series, config: RepeatedLinesConfig, unit: Unit) -> NDArray[np.uint64]:
    """Sorted hashes of normalised texts: what normalising would make of them again is the same."""
    found = [np.empty(0, np.uint64), *(block.hashes for block in _units(texts, config, unit))]
    hashes: NDArray[np.uint64] = np.setdiff1d(np.concatenate(found), np.zeros(1, np.uint64))
    return hashes


def _without(texts: pl.Series, block: _Block, places: NDArray[np.int64], unit: Unit) -> pl.Series:
    """Those of the block's texts that have any of `places`, without these."""
    from assets.deduped.kernels.line_units import drop_units

    is_cut = np.zeros(len(block.rows), np.bool_)
    is_cut[places] = True
    is_inside = np.isin(block.rows, block.rows[places])
    return _strings(*drop_units(*text_buffers(texts), unit == "paragraphs", is_cut[is_inside]))


def _describe_changes(
    documents: pl.DataFrame, table: pl.DataFrame, config: RepeatedLinesConfig
) -> pl.DataFrame:
    before = documents["text"].gather(table["row"]).str.len_chars()
    after = table["text"].str.len_chars()
    kept_share = pl.col("kept_share")
    is_blank = table["text"].str.strip_chars().str.len_bytes() == 0
    return (
        pl.DataFrame(
            {
                "doc_id": documents["doc_id"].gather(table["row"]),
                "num_cut": table["num_cut"],
                "cut_chars": before - after,
                "kept_share": after / before,
            }
        )
        .with_columns(is_rejected=(kept_share < config.min_kept_share) | is_blank)
        .cast(CHANGE_SCHEMA)
    )


def _count(found: pl.DataFrame) -> pl.DataFrame:
    """How often each row comes, sorted."""
    return found.group_by(found.columns).len("count").sort(found.columns)


def _sum(tables: list[pl.DataFrame]) -> pl.DataFrame:
    """One table of many with the same columns."""
    table = pl.concat(tables)
    keys = [name for name in table.columns if name != "count"]
    return table.group_by(keys).agg(pl.col("count").sum().cast(pl.UInt32)).sort(keys)
