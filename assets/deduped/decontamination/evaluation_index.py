"""The n-grams of evaluation sets, as a table that documents are looked up in.

Purpose: what of a benchmark may not be in the corpus, small enough to be held by every worker: an
n-gram is 25 bytes that point into the normalised text of its item, not a text of its own.
Words are those of deduplication (`minhash`): lower case, punctuation removed, each Han, Thai, ...
character by itself. Characters are theirs, without blanks: letters, digits, marks, underscores.
Trade-off: an n-gram that more than 100 items share (the instructions of a benchmark, a passage that
many questions are about) belongs to the first 100 of them, so that a document that has it gives 100
hits and not 10,000. An item all of whose n-grams are taken is `repeated`.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.text.buffers import TextBuffers, code_point_entries, text_buffers
from resources.settings.decontamination import MOST_UNITS, Ngram, Unit

if TYPE_CHECKING:
    from assets.deduped.kernels.ngram_search import Table, Units

ITEMS_PER_NGRAM = 100
TOO_SHORT, REPEATED = "too_short", "repeated"
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class EvaluationIndex:
    """Items and n-grams of evaluation sets.

    `items`, one row per item in the order given: set, item String; units String (the normalised
    text); num_ngrams UInt32 (distinct ones that are the item's); reason String, why an item has
    none (too_short, repeated), or null. `ngrams`, sorted by is_whole and key: key UInt64 (hash of
    its bytes); item, start, stop UInt32 (bytes of that item's units); size UInt32 (units); is_whole
    (an item shorter than an n-gram). `filter`: word UInt64 of the n-grams' Bloom filters; is_whole.
    """

    items: pl.DataFrame
    ngrams: pl.DataFrame
    filter: pl.DataFrame
    key_bits: int = 64

    @cached_property
    def tables(self) -> tuple["Table", "Table"]:
        """What the kernel looks n-grams up in, 0.1 s per million n-grams, once.

        Items that are looked for as a whole have a table of their own: the shortest one decides
        how much of a text is asked for (with one item of 8 letters 3 MB/s instead of 55).
        """
        return self._table(False), self._table(True)

    def _table(self, is_whole: bool) -> "Table":
        from assets.deduped.kernels.ngram_search import Table

        data, offsets = text_buffers(self.items["units"])
        ngrams = self.ngrams.filter(is_whole=is_whole)
        columns = {name: np.array(ngrams[name]) for name in ngrams.columns}
        begins = offsets[columns["item"]]
        bits = min(self.key_bits, max(1, ngrams.height.bit_length()))
        shift = self.key_bits - bits
        edges = np.arange(2**bits, dtype=np.uint64) << np.uint64(shift)
        buckets = np.searchsorted(columns["key"], edges)
        lengths = np.unique(columns["size"]).astype(np.int64)
        stride, gram = _gram_of(lengths)
        return Table(
            keys=columns["key"],
            starts=begins + columns["start"],
            stops=begins + columns["stop"],
            data=data,
            buckets=np.append(buckets, ngrams.height),
            shift=shift,
            key_bits=self.key_bits,
            lengths=lengths,
            stride=stride,
            gram=gram,
            filter=np.array(self.filter.filter(is_whole=is_whole)["word"]),
        )


def _gram_of(sizes: Integers) -> tuple[int, int]:
    """Stride and units of a gram, for n-grams of so many units."""
    shortest = int(sizes.min(initial=MOST_UNITS))
    stride = max(1, shortest // 2)
    return stride, shortest - stride + 1


def build_index(
    items: pl.DataFrame, ngram: Ngram, min_item_words: int, *, key_bits: int = 64
) -> EvaluationIndex:
    """Index items (set, item, text String); a null text counts as empty.

    An item shorter than an n-gram is one n-gram if it has `min_item_words` words, else it is
    too_short. `key_bits` below 64 makes hashes collide: for tests.
    """
    from assets.deduped.kernels.ngram_search import fill_filter, hash_windows, mark_distinct

    units, num_words = units_of(text_buffers(items["text"].fill_null("")), ngram.unit)
    rows, firsts, sizes = _windows(units.offsets, num_words, ngram.size, min_item_words)
    keys = hash_windows(units, firsts, sizes, key_bits)
    order = np.argsort(keys, kind="stable")  # of one key, items stay in their order
    keys, rows, firsts, sizes = keys[order], rows[order], firsts[order], sizes[order]
    spans = units.starts[np.stack([firsts, firsts + sizes], axis=1)]
    is_kept = mark_distinct(keys, rows, spans, units.data, ITEMS_PER_NGRAM)
    begins = units.starts[units.offsets]
    start, stop = (spans - begins[rows, None]).astype(np.uint32).T
    columns = {"key": keys, "item": rows.astype(np.uint32), "start": start, "stop": stop}
    is_whole = sizes < ngram.size
    columns |= {"size": sizes.astype(np.uint32), "is_whole": is_whole}
    filters = []
    for part in (False, True):
        of_part = is_kept & (is_whole == part)
        words = fill_filter(units, np.sort(firsts[of_part]), *_gram_of(sizes[of_part]))
        filters.append(pl.DataFrame({"word": words}).with_columns(is_whole=part))
    return EvaluationIndex(
        _describe(items, units, rows, is_kept),
        pl.DataFrame(columns)
        .filter(pl.Series(is_kept, dtype=pl.Boolean))
        .sort("is_whole", maintain_order=True),
        pl.concat(filters),
        key_bits,
    )


def _describe(
    items: pl.DataFrame, units: "Units", rows: Integers, is_kept: NDArray[np.bool_]
) -> pl.DataFrame:
    """The items with their normalised texts and counts of n-grams, which are of items `rows`."""
    begins = units.starts[units.offsets].tolist()
    texts = [units.data[start:stop].tobytes().decode() for start, stop in pairwise(begins)]
    has_ngrams = pl.Series(np.bincount(rows, minlength=items.height) > 0, dtype=pl.Boolean)
    num_ngrams = np.bincount(rows[is_kept], minlength=items.height)
    return items.select("set", "item").with_columns(
        units=pl.Series(texts, dtype=pl.String),
        num_ngrams=pl.Series(num_ngrams, dtype=pl.UInt32),
        reason=pl.when(~has_ngrams)
        .then(pl.lit(TOO_SHORT))
        .when(pl.Series(num_ngrams == 0, dtype=pl.Boolean))
        .then(pl.lit(REPEATED)),
    )


def _windows(
    offsets: Integers, num_words: Integers, size: int, min_item_words: int
) -> tuple[Integers, Integers, Integers]:
    """Item, first unit and size of every n-gram, int64, in the order of the items."""
    num_units = np.diff(offsets)
    is_short = num_units < size
    counts = np.where(is_short, num_words >= max(1, min_item_words), num_units - size + 1)
    rows = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows, offsets[rows] + within, np.where(is_short, num_units, size)[rows]


def units_of(texts: TextBuffers, unit: Unit) -> tuple["Units", Integers]:
    """Words or characters of n texts, and how many words each has, int64 [n]."""
    from assets.deduped.kernels.ngram_search import Units, split_characters
    from assets.text.kernels.words import join_words

    words = join_words(*texts, code_point_entries())
    num_words = np.diff(words[2])
    return Units(*(words if unit == "words" else split_characters(*words))), num_words
