"""Documents rearranged so that a model learns to fill in their middle.

Bavarian et al. 2022 (arXiv 2207.14255): a text is cut at two of its characters, before it is
encoded, into prefix, middle and suffix. The sections are stored with the middle last:

    PSM  <prefix> prefix <suffix> suffix <middle> middle
    SPM  <prefix> <suffix> suffix <middle> prefix middle    (variant 2 of appendix D; StarCoder's)

In both, the text is what follows <prefix>, then <middle>, then <suffix>.
Each section is encoded by itself, as at inference. What is rearranged, in which order, and where it
is cut depend on the document alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from corpus_loader.permutation import derive_key, mix64, round_keys

NO_ID = -1  # in place of a mark
NUM_TOKENS = 3  # special tokens of a rearranged document

Int64s = NDArray[np.int64]


@dataclass(frozen=True)
class FillForm:
    """Share of the documents that are rearranged, and the ids of the special tokens in them."""

    rate: float
    spm_rate: float
    seed: int
    prefix_id: int
    middle_id: int
    suffix_id: int

    @property
    def ids(self) -> tuple[int, int, int]:
        """Ids of prefix, middle, suffix."""
        return self.prefix_id, self.middle_id, self.suffix_id


class Draws(NamedTuple):
    """Of every document: whether it is rearranged, whether as SPM, two numbers for its cuts."""

    is_rearranged: NDArray[np.bool_]
    is_spm: NDArray[np.bool_]
    numbers: NDArray[np.uint64]  # [documents, 2]

    def of(self, rows: slice) -> Draws:
        """Return the draws of some documents."""
        return Draws(self.is_rearranged[rows], self.is_spm[rows], self.numbers[rows])


class Sections(NamedTuple):
    """Texts in the order in which they are stored, of one document after another.

    documents   row of the document of each, int64 [n]
    marks       ids around each, int64 [n, 4], NO_ID for none: three before it, one after it
    """

    texts: pl.Series
    documents: Int64s
    marks: Int64s


def draw(heads: NDArray[np.uint64], form: FillForm) -> Draws:
    """Draw what becomes of documents; `heads` are the first 16 hex digits of their ids."""
    keys = round_keys(derive_key(form.seed, "fill in the middle"), 4)
    chosen, mode, *numbers = (mix64(heads ^ key) for key in keys)
    return Draws(
        fraction(chosen) < form.rate, fraction(mode) < form.spm_rate, np.stack(numbers, axis=1)
    )


def count_modes(heads: NDArray[np.uint64], form: FillForm) -> dict[str, int]:
    """Count the documents that are rearranged as PSM and as SPM, and their special tokens."""
    is_rearranged, is_spm, _ = draw(heads, form)
    number, spm = int(is_rearranged.sum()), int((is_rearranged & is_spm).sum())
    return {"psm": number - spm, "spm": spm, "special_tokens": NUM_TOKENS * number}


def fraction(numbers: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Map numbers to [0, 1), by their upper 53 bits, which a float holds exactly."""
    return (numbers >> np.uint64(11)).astype(np.float64) * 2.0**-53


def whole(texts: pl.Series, begin_id: int, end_id: int) -> Sections:
    """Return every text as one section."""
    rows = np.arange(len(texts))
    marks = np.tile(np.array([begin_id, NO_ID, NO_ID, end_id], np.int64), (len(texts), 1))
    return Sections(texts, rows, marks)


def rearrange(sections: Sections, draws: Draws, form: FillForm) -> Sections:
    """Cut and rearrange the documents that are drawn; `sections` are whole documents.

    A cut is before or after any character: sections may be empty.
    """
    rows = np.flatnonzero(draws.is_rearranged & (sections.texts.str.len_bytes() > 0).to_numpy())
    texts, is_spm = sections.texts.gather(rows), draws.is_spm[rows]
    prefix, middle, suffix = cut(texts, draws.numbers[rows])
    nothing = np.full(rows.size, NO_ID)
    begin, _, _, end = sections.marks[rows].T
    is_first_suffix = pl.Series(is_spm, dtype=pl.Boolean)
    first = Sections(
        suffix.zip_with(is_first_suffix, prefix),
        rows,
        columns(begin, form.prefix_id, np.where(is_spm, form.suffix_id, NO_ID), nothing),
    )
    second = Sections(
        prefix.zip_with(is_first_suffix, suffix),
        rows,
        columns(nothing, np.where(is_spm, form.middle_id, form.suffix_id), nothing, nothing),
    )
    third = Sections(
        middle,
        rows,
        columns(nothing, np.where(is_spm, NO_ID, form.middle_id), nothing, end),
    )
    kept = np.delete(np.arange(len(sections.texts)), rows)
    rest = Sections(sections.texts.gather(kept), *(values[kept] for values in sections[1:]))
    return joined(rest, first, second, third)


def columns(*values: Int64s | int) -> Int64s:
    """Put values side by side, int64 [n, number of values]."""
    return np.stack(np.broadcast_arrays(*values), axis=1)


def cut(texts: pl.Series, numbers: NDArray[np.uint64]) -> tuple[pl.Series, pl.Series, pl.Series]:
    """Cut each text at two characters that its two numbers stand for, all equally likely."""
    places = np.sort(numbers % (texts.str.len_chars().to_numpy().astype(np.uint64) + 1)[:, None])
    cuts = pl.DataFrame({"text": texts, "first": places[:, 0], "second": places[:, 1]})
    text, first, second = pl.col("text"), pl.col("first"), pl.col("second")
    sections = cuts.select(
        prefix=text.str.slice(0, first),
        middle=text.str.slice(first, second - first),
        suffix=text.str.slice(second),
    )
    return sections["prefix"], sections["middle"], sections["suffix"]


def joined(*runs: Sections) -> Sections:
    """Put sections in the order of their documents; of a document, in the order of the runs."""
    documents = np.concatenate([run.documents for run in runs])
    order = np.argsort(documents, kind="stable")
    texts = pl.concat([run.texts for run in runs]).gather(order)
    marks = np.concatenate([run.marks for run in runs])
    return Sections(texts, documents[order], marks[order])


def text_runs(
    ids: NDArray[np.unsignedinteger[Any]], firsts: Int64s, ends: Int64s, form: FillForm
) -> tuple[Int64s, Int64s]:
    """Find the three runs of ids that make the text of each document, in its order.

    ids[firsts[i]:ends[i]] are those of a document without the marks around it. Out: first places
    of the runs and those behind them, both int64 [documents, 3]; of a document that is not
    rearranged, the second and third are empty.
    """
    starts = np.stack([firsts, ends, ends], axis=1)
    stops = np.stack([ends, ends, ends], axis=1)
    prefix, middle, suffix = (np.flatnonzero(ids == token_id) for token_id in form.ids)
    rows = np.searchsorted(ends, prefix, side="right")
    starts[rows] = np.stack([prefix, middle, suffix], axis=1) + 1
    stops[rows] = np.stack([suffix, ends[rows], middle], axis=1)
    return starts, stops


def in_text_order(
    ids: NDArray[np.unsignedinteger[Any]], fill_ids: tuple[int, int, int], marks: Int64s
) -> NDArray[np.unsignedinteger[Any]]:
    """Put the sections of rearranged documents back in the order of their texts.

    `ids` may be of any documents, whole or not: a document of which a mark is missing stays as it
    is. `marks` are the ids around documents. The special tokens of suffix and middle go to the end.
    """
    prefix, middle, suffix = (np.flatnonzero(ids == token_id) for token_id in fill_ids)
    ends = next_after(np.flatnonzero(np.isin(ids, marks)), prefix, ids.size)
    suffixes = next_after(suffix, prefix, ids.size)
    middles = next_after(middle, suffixes, ids.size)
    ordered, is_whole = ids.copy(), (suffixes < middles) & (middles < ends)
    places = zip(
        *(each[is_whole].tolist() for each in (prefix, suffixes, middles, ends)), strict=True
    )
    for first, to_suffix, to_middle, end in places:
        sections = ids[first:to_suffix], ids[to_middle + 1 : end], ids[to_suffix + 1 : to_middle]
        ordered[first:end] = np.concatenate([*sections, ids[[to_suffix, to_middle]]])
    return ordered


def next_after(places: Int64s, starts: Int64s, size: int) -> Int64s:
    """Return the first of ascending places behind each start; `size` if there is none."""
    return np.append(places, size)[np.searchsorted(places, starts, side="right")]
