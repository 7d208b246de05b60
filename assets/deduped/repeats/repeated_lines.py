"""Cut lines and paragraphs that many documents of a source share: navigation, licence headers.

Text that a site or a project puts on every page teaches a model nothing after its first few copies.
A line is compared by its *normalised* text (white space folded, if so configured). It counts once
for each document that has it, and is cut from all of them if enough have it.
Counting takes two rounds over parts, out of core: the 64-bit hashes of all lines first, then the
texts behind the few hashes that reach the threshold, so that no collision ever cuts a line.
Trade-off: no document keeps a copy, since the choice of one would change with every new file. A
line that is common for a good reason (`import os`, a refrain) is cut as well: `min_chars` and
`min_share` protect short lines and large sources, and paragraphs are the safer unit.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.text.buffers import blocks, text_buffers, texts_in
from assets.text.table_rows import replace_rows
from resources.materialize.excerpts import as_excerpt
from resources.settings.dedup import DedupConfig
from resources.settings.repeats import RepeatedLinesConfig

Unit = Literal["lines", "paragraphs"]

MOST_SHOWN, SHOWN_CHARS = 20, 100
LIST_SCHEMA = {"unit": pl.String, "text": pl.String}  # what is cut in a part
HASH_SCHEMA = {"hash": pl.UInt64}
TEXT_SCHEMA = {"hash": pl.UInt64, "text": pl.String}
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
    """Hash every line or paragraph, and count the `texts` (String) that have it.

    Returns hash UInt64, count UInt32, sorted by hash. A null text counts as empty.
    """
    hashes = [pl.DataFrame(schema=HASH_SCHEMA)]
    for block in _units(texts, config, unit):
        pairs = pl.LazyFrame({"row": block.rows, "hash": block.hashes})
        hashes.append(pairs.filter(pl.col("hash") != 0).unique().select("hash").collect())
    return _count(pl.concat(hashes))


def collect_lines(
    texts: pl.Series, hashes: pl.Series, config: RepeatedLinesConfig, unit: Unit
) -> pl.DataFrame:
    """Count the lines or paragraphs with any of `hashes` (UInt64) by their full text.

    Returns hash UInt64, text String (normalised), count UInt32, sorted by hash and text.
    """
    wanted = np.unique(hashes.to_numpy())
    collected = [pl.DataFrame(schema=TEXT_SCHEMA)]
    for block in _units(texts, config, unit) if len(wanted) else ():
        at = block.find(wanted)
        pairs = pl.DataFrame(
            {"row": block.rows[at], "hash": block.hashes[at], "text": block.texts_at(at)}
        )
        collected.append(pairs.unique().drop("row"))
    return _count(pl.concat(collected))


def add_counts(tables: Iterable[pl.DataFrame], held_bytes: int) -> pl.DataFrame:
    """Sum `count` over tables of `count_lines` or of `collect_lines`, in their order.

    Tables are added up as soon as those not added take `held_bytes`.
    """
    held: list[pl.DataFrame] = []
    not_added: float = 0  # bytes of all but the first
    for table in tables:
        not_added += table.estimated_size() if held else 0
        held.append(table)
        if not_added > held_bytes:
            held, not_added = [_sum(held)], 0
    return _sum(held)


def in_order(table: pl.DataFrame) -> pl.DataFrame:
    """Lay out the texts of a table one after the other: equal tables are equal Arrow files.

    Polars keeps the strings of a group_by or a filter in the order of its threads.
    """
    copied = pl.from_arrow(table.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest()))
    assert isinstance(copied, pl.DataFrame)
    return copied


def cut_repeated(
    documents: pl.DataFrame, repeated: pl.DataFrame, config: RepeatedLinesConfig, unit: Unit
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Cut from documents (doc_id String, text String, ...) what `repeated` (unit, text) lists.

    Returns all documents in order, with only `text` changed; and for each changed document doc_id,
    num_cut UInt32 (lines or paragraphs), cut_chars UInt32, kept_share Float64 and is_rejected
    Boolean. Full normalised texts are compared. The other lines stay as they were, joined by
    "\\n"; the blank lines after a paragraph are cut with it.
    """
    listed = repeated if repeated.is_empty() else repeated.filter(pl.col("unit") == unit)
    wanted = listed["text"]
    if wanted.is_empty():
        return documents, pl.DataFrame(schema=CHANGE_SCHEMA)
    texts = documents["text"].fill_null("")
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
    return replace_texts(documents, table, config.min_kept_share)


def replace_texts(
    documents: pl.DataFrame, table: pl.DataFrame, min_kept_share: float
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Replace texts by those of a table (row, num_cut, text) of the documents that were cut.

    Returns the documents, and the columns CHANGE_SCHEMA of each that was cut.
    """
    before = documents["text"].gather(table["row"]).str.len_chars()
    after = table["text"].str.len_chars()
    is_blank = table["text"].str.strip_chars().str.len_bytes() == 0
    changes = pl.DataFrame(
        {
            "doc_id": documents["doc_id"].gather(table["row"]),
            "num_cut": table["num_cut"],
            "cut_chars": before - after,
            "kept_share": after / before,
        }
    ).with_columns(is_rejected=(pl.col("kept_share") < min_kept_share) | is_blank)
    texts = replace_rows(documents["text"], table["row"], table["text"])
    return documents.with_columns(texts), changes.cast(CHANGE_SCHEMA)


def most_frequent(repeated: pl.DataFrame) -> pl.DataFrame:
    """Return the MOST_SHOWN lines (text, count) that most documents have."""
    return repeated.sort(["count", "text"], descending=[True, False]).head(MOST_SHOWN)


def repeated_markdown(repeated: pl.DataFrame) -> str:
    """Return a Markdown table of lines (text, count); their text is escaped."""
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
        """Return the places of the hashes that are among `wanted`, sorted."""
        places = np.searchsorted(wanted, self.hashes)
        places[places == len(wanted)] = 0
        return np.flatnonzero(wanted[places] == self.hashes) if len(wanted) else places[:0]

    def texts_at(self, places: NDArray[np.int64]) -> pl.Series:
        """Return the normalised texts at some places."""
        return texts_in(*self.texts).gather(places)


def _units(texts: pl.Series, config: RepeatedLinesConfig, unit: Unit) -> Iterator[_Block]:
    """Yield all lines or paragraphs of the texts, a few hundred texts at a time."""
    from assets.deduped.kernels.line_units import find_units

    if texts.has_nulls():
        texts = texts.fill_null("")
    data, offsets = text_buffers(texts.str.to_lowercase() if config.lowercase else texts)
    options = unit == "paragraphs", config.fold_whitespace, config.min_chars
    for rows, block in blocks(offsets):
        hashes, row_of, normalised, ends = find_units(data, block, *options)
        yield _Block(hashes, row_of + rows.start, (normalised, ends))


def _hashes_of(texts: pl.Series, config: RepeatedLinesConfig, unit: Unit) -> NDArray[np.uint64]:
    """Return the sorted hashes of normalised texts: normalising them again changes nothing."""
    of_blocks = [np.empty(0, np.uint64), *(block.hashes for block in _units(texts, config, unit))]
    hashes: NDArray[np.uint64] = np.setdiff1d(np.concatenate(of_blocks), np.zeros(1, np.uint64))
    return hashes


def _without(texts: pl.Series, block: _Block, places: NDArray[np.int64], unit: Unit) -> pl.Series:
    """Cut the units at `places` from the block's texts that have any of them."""
    from assets.deduped.kernels.line_units import drop_units

    is_cut = np.zeros(len(block.rows), np.bool_)
    is_cut[places] = True
    is_inside = np.isin(block.rows, block.rows[places])
    return texts_in(*drop_units(*text_buffers(texts), unit == "paragraphs", is_cut[is_inside]))


def _count(rows: pl.DataFrame) -> pl.DataFrame:
    """Count equal rows; return each once, sorted."""
    if rows.is_empty():
        return rows.hstack([pl.Series("count", dtype=pl.UInt32)])
    return rows.lazy().group_by(rows.columns).len("count").sort(rows.columns).collect()


def _sum(tables: list[pl.DataFrame]) -> pl.DataFrame:
    """Add up tables with the same columns."""
    table = pl.concat(tables)
    keys = [name for name in table.columns if name != "count"]
    return table.group_by(keys).agg(pl.col("count").sum().cast(pl.UInt32)).sort(keys)


def configs_of(dedup: DedupConfig) -> dict[str, Any]:
    """Return the config of a manifest: all that the lists depend on; {} if not configured."""
    return {
        unit: config.model_dump(mode="json", exclude={"min_kept_share"})  # that is for cutting
        for unit, config in units_of(dedup).items()
    }


def units_of(dedup: DedupConfig) -> dict[Unit, RepeatedLinesConfig]:
    """Return the config of each unit that is cut."""
    both: dict[Unit, RepeatedLinesConfig | None] = {
        "lines": dedup.lines,
        "paragraphs": dedup.paragraphs,
    }
    return {unit: config for unit, config in both.items() if config is not None}
