"""Index of the n-grams of evaluation sets.

Purpose: all n-grams of the benchmarks, small enough for the memory of every worker: an n-gram is 29
bytes that point into the normalised text of its item.
Words are those of deduplication (`minhash`): lower case, punctuation removed, each Han, Thai, ...
character by itself. Characters are those of the words, without blanks. Both are those of the form
of a text (`text_form`), so that entities, hidden characters and cut words hide no item.
Trade-off: an n-gram that more than 100 items share (the instructions of a benchmark, a passage of
many questions) belongs to the first 100 of them, so that a document with it has 100 hits and not
10,000. N-grams of signs, such as `1 1 0 1 1` of a matrix, belong to no item: with them 31 of 30,628
documents were contaminated by such items, without them one is. An item that these rules leave too
few words in n-grams is `repeated`.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.text.buffers import TextBuffers, code_point_entries, text_buffers
from assets.text.text_form import text_form
from resources.numbers_between import numbers_between
from resources.settings.decontamination import MOST_UNITS, Ngram, Unit

if TYPE_CHECKING:
    from assets.deduped.kernels.ngram_search import Table, Units

ITEMS_PER_NGRAM = 100
LEAST_BYTES = 2.4  # per word of an n-gram, with the blank behind it
TOO_SHORT, REPEATED = "too_short", "repeated"
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class EvaluationIndex:
    """Items and n-grams of evaluation sets.

    `items`, one row per item in the given order: set, item String; units String (the normalised
    text); num_units UInt32 (its words or characters); num_ngrams UInt32 (distinct n-grams that
    belong to the item); num_covered UInt32 (units in one of them); reason String (too_short or
    repeated for an item that is not looked for, and has no n-grams, else null).
    `ngrams`, sorted by is_whole and key: key UInt64 (hash of its bytes); item, start, stop UInt32
    (byte span in that item's units); first, size UInt32 (units); is_whole Boolean (the n-gram is a
    whole item shorter than `ngram`).
    `filter`: word UInt64 of the n-grams' Bloom filters; is_whole Boolean.
    """

    items: pl.DataFrame
    ngrams: pl.DataFrame
    filter: pl.DataFrame
    key_bits: int = 64

    @cached_property
    def tables(self) -> tuple["Table", "Table"]:
        """Hash tables for the search: of n-grams, and of whole items.

        Whole items have a table of their own, because the shortest n-gram of a table decides how
        many grams of a text are hashed.
        """
        return self._table(False), self._table(True)

    def _table(self, is_whole: bool) -> "Table":
        """Build the hash table of one half of the n-grams."""
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
    """Return the stride and the units of a gram for n-grams of these sizes in units, int64."""
    shortest = int(sizes.min(initial=MOST_UNITS))
    stride = max(1, shortest // 2)
    return stride, shortest - stride + 1


def build_index(
    items: pl.DataFrame, ngram: Ngram, min_item_words: int, *, key_bits: int = 64
) -> EvaluationIndex:
    """Index items (set, item, text String); a null text counts as empty.

    An item shorter than an n-gram is one n-gram. An item of fewer than `min_item_words` words is
    too_short; one with fewer units in n-grams is repeated. With `key_bits` below 64 hashes collide,
    which tests use.
    """
    from assets.deduped.kernels.ngram_search import fill_filter, hash_windows, mark_distinct

    units, num_words = units_of(text_buffers(text_form(items["text"].fill_null(""))), ngram.unit)
    rows, firsts, sizes = _windows(units.offsets, num_words, ngram.size, min_item_words)
    keys = hash_windows(units, firsts, sizes, key_bits)
    order = np.argsort(keys, kind="stable")  # items of one key stay in order
    keys, rows, firsts, sizes = keys[order], rows[order], firsts[order], sizes[order]
    spans = units.starts[np.stack([firsts, firsts + sizes], axis=1)]
    is_kept = mark_distinct(keys, rows, spans, units.data, ITEMS_PER_NGRAM)
    least_bytes = LEAST_BYTES * sizes if ngram.unit == "words" else 0
    is_kept &= spans[:, 1] - spans[:, 0] >= least_bytes
    covered = _covered(rows[is_kept], firsts[is_kept], sizes[is_kept], items.height)
    is_kept &= (covered >= min_item_words)[rows]
    begins = units.starts[units.offsets]
    start, stop = (spans - begins[rows, None]).astype(np.uint32).T
    columns = {"key": keys, "item": rows.astype(np.uint32), "start": start, "stop": stop}
    is_whole = sizes < ngram.size
    columns["first"] = (firsts - units.offsets[rows]).astype(np.uint32)
    columns |= {"size": sizes.astype(np.uint32), "is_whole": is_whole}
    filters = []
    for part in (False, True):
        of_part = is_kept & (is_whole == part)
        words = fill_filter(units, np.sort(firsts[of_part]), *_gram_of(sizes[of_part]))
        filters.append(pl.DataFrame({"word": words}).with_columns(is_whole=part))
    return EvaluationIndex(
        _describe(items, units, rows, is_kept).with_columns(num_covered=covered.astype(np.uint32)),
        pl.DataFrame(columns)
        .filter(pl.Series(is_kept, dtype=pl.Boolean))
        .sort("is_whole", maintain_order=True),
        pl.concat(filters),
        key_bits,
    )


def _covered(rows: Integers, firsts: Integers, sizes: Integers, num_items: int) -> Integers:
    """Count the units of each item, int64, that are in its n-grams."""
    order = np.argsort(firsts, kind="stable")
    firsts, ends = firsts[order], (firsts + sizes)[order]
    ends[:-1] = np.minimum(ends[:-1], firsts[1:])
    return np.bincount(rows[order], ends - firsts, num_items).astype(np.int64)


def _describe(
    items: pl.DataFrame, units: "Units", rows: Integers, is_kept: NDArray[np.bool_]
) -> pl.DataFrame:
    """Return the items with their normalised texts, counts of n-grams and reasons.

    N-gram i is of item rows[i], and counts if is_kept[i].
    """
    begins = units.starts[units.offsets].tolist()
    texts = [units.data[start:stop].tobytes().decode() for start, stop in pairwise(begins)]
    has_ngrams = pl.Series(np.bincount(rows, minlength=items.height) > 0, dtype=pl.Boolean)
    num_ngrams = np.bincount(rows[is_kept], minlength=items.height)
    return items.select("set", "item").with_columns(
        units=pl.Series(texts, dtype=pl.String),
        num_units=pl.Series(np.diff(units.offsets), dtype=pl.UInt32),
        num_ngrams=pl.Series(num_ngrams, dtype=pl.UInt32),
        reason=pl.when(~has_ngrams)
        .then(pl.lit(TOO_SHORT))
        .when(pl.Series(num_ngrams == 0, dtype=pl.Boolean))
        .then(pl.lit(REPEATED)),
    )


def _windows(
    offsets: Integers, num_words: Integers, size: int, min_item_words: int
) -> tuple[Integers, Integers, Integers]:
    """Return the item, first unit and size of every n-gram, int64, in the order of the items."""
    num_units = np.diff(offsets)
    is_short = num_units < size
    counts = np.where(is_short, 1, num_units - size + 1) * (num_words >= max(1, min_item_words))
    rows = np.repeat(np.arange(len(counts)), counts)
    firsts = numbers_between(offsets[:-1], offsets[:-1] + counts)
    return rows, firsts, np.where(is_short, num_units, size)[rows]


def units_of(texts: TextBuffers, unit: Unit) -> tuple["Units", Integers]:
    """Split n texts into words or characters; return them and each text's words, int64 [n]."""
    from assets.deduped.kernels.ngram_search import Units, split_characters
    from assets.text.kernels.words import join_words

    words = join_words(*texts, code_point_entries())
    num_words = np.diff(words[2])
    return Units(*(words if unit == "words" else split_characters(*words))), num_words
