"""Learn the merges of byte-pair encoding from words and their numbers.

Purpose: the merges that `BpeTrainer` of `tokenizers` learns, in their order, in less time. Each
pair comes with the words in which it was met, and only those are changed when it is merged.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, types, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_INLINED, ARRAY_KERNEL
from assets.tokenized.kernels.pair_queue import (
    HALF,
    NO_PAIR,
    Changes,
    Places,
    Table,
    add_to,
    queue_pairs,
    take_first,
    with_slots,
)
from assets.tokenized.kernels.prefetch import prefetch
from assets.tokenized.kernels.token_spellings import known_tokens, spell_token

Bytes = NDArray[np.uint8]
Edges = NDArray[np.int64]
Ids = NDArray[np.int32]
Words = tuple[Ids, Edges, Edges]  # the ids of all words, their edges, and the number of each word

ID_BITS = uint64(0xFFFFFFFF)
AHEAD = 8  # words
FIRST_SLOTS = 1 << 18  # twice the pairs of bytes, and more


@njit(**ARRAY_INLINED)
def pair_of(left: int, right: int) -> int:
    """Return two ids as one number, uint64."""
    return uint64(left) << HALF | uint64(right)


@njit(**ARRAY_INLINED)
def merge_in_word(
    ids: Ids,
    span: tuple[int, int],
    merge: tuple[int, int, int],
    counted: tuple[Table, int],
    changes: Changes,
    num_changes: int,
) -> tuple[int, int, int]:
    """Merge a pair in a word, from left to right, and correct the numbers of the pairs beside it.

    `span` is the word's place in the ids, and its size; `merge` the left, right and new id;
    `counted` the table, and the number of the word. The new pairs are written to the changes from
    `num_changes` on. Returns the new size, the number of changes, and how many the table lacked.
    """
    start, size = span
    left, right, new = merge
    table, number = counted
    at, end, stop = start, start, start + size
    first, num_added = num_changes, 0
    while at < stop:
        if at + 1 == stop or ids[at] != left or ids[at + 1] != right:
            ids[end] = ids[at]
            at, end = at + 1, end + 1
            continue
        if end > start:
            add_to(table, pair_of(ids[end - 1], left), -number)
            changes[num_changes, 0] = pair_of(ids[end - 1], new)
            num_changes += 1
        if at + 2 < stop:
            add_to(table, pair_of(right, ids[at + 2]), -number)
            changes[num_changes, 0] = pair_of(new, ids[at + 2])
            num_changes += 1
        ids[end] = new
        at, end = at + 2, end + 1
    for i in range(first, num_changes):
        changes[i, 0], is_new = add_to(table, uint64(changes[i, 0]), number)
        num_added += is_new
    return end - start, num_changes, num_added


@njit(**ARRAY_KERNEL)
def first_pairs(words: Words) -> tuple[Table, int, Changes]:
    """Count the pairs of bytes; return the table, its slots used, and all pairs with their word."""
    ids, edges, numbers = words
    table, used = np.full((FIRST_SLOTS, 3), NO_PAIR, np.uint64), 0
    changes, num_changes = np.empty((len(ids) + 1, 2), np.int64), 0
    for word in range(len(numbers)):
        for at in range(edges[word], edges[word + 1] - 1):
            slot, is_new = add_to(table, pair_of(ids[at], ids[at + 1]), numbers[word])
            changes[num_changes, 0], changes[num_changes, 1] = slot, word
            num_changes, used = num_changes + 1, used + is_new
    return table, used, changes[:num_changes]


@njit(**ARRAY_KERNEL)
def merge_in_words(
    words: Words,
    sizes: Edges,
    places: Places,
    merge: tuple[int, int, int],
    table: Table,
) -> tuple[Changes, int]:
    """Merge a pair in these words; return the new pairs, and how many of them the table lacked."""
    ids, edges, numbers = words
    changes, num_changes, num_lacked = np.empty((4 * len(places) + 64, 2), np.int64), 0, 0
    for place in range(len(places)):
        if place + AHEAD < len(places):
            prefetch(ids, edges[places[place + AHEAD]])
        word = np.int64(places[place])
        while num_changes + 2 * sizes[word] > len(changes):
            changes = np.concatenate((changes, np.empty_like(changes)))
        first, span = num_changes, (edges[word], sizes[word])
        sizes[word], num_changes, lacked = merge_in_word(
            ids, span, merge, (table, numbers[word]), changes, first
        )
        changes[first:num_changes, 1] = word
        num_lacked += lacked
    return changes[:num_changes], num_lacked


@njit(
    types.int64[:, ::1](
        types.Tuple((types.int32[::1], types.int64[::1], types.int64[::1])),
        types.Tuple((types.uint8[::1], types.int64[::1])),
        types.int64,
        types.int64,
    ),
    **ARRAY_KERNEL,
)
def learn_merges(
    words: Words, tokens: tuple[Bytes, Edges], vocab_size: int, min_frequency: int
) -> Edges:
    """Learn merges until there are `vocab_size` tokens or no pair is frequent enough.

    The ids of the words are changed. `tokens` are the bytes that the first tokens are spelled with,
    and their edges. Returns the left, right and new id of each merge, int64 [merges, 3].
    """
    num_tokens, num_merges = len(tokens[1]) - 1, 0
    spelled, token_edges, known = known_tokens(tokens, vocab_size)
    merges = np.empty((1024, 3), np.int64)
    table, used, changes = first_pairs(words)
    queue, size = np.empty((1024, 4), np.int64), 0
    places, num_places = np.empty(1024, np.int32), 0
    sizes = np.diff(words[1])
    while num_tokens < vocab_size:
        queue, size, places, num_places = queue_pairs(
            changes, table, (queue, size), (places, num_places)
        )
        size, number, pair, start, stop = take_first(queue, size, table)
        if number < max(1, min_frequency):
            break
        left, right = np.int64(pair >> HALF), np.int64(pair & ID_BITS)
        spelled, new = spell_token((left, right), num_tokens, spelled, token_edges, known)
        num_tokens += new == num_tokens
        if num_merges == len(merges):
            merges = np.concatenate((merges, np.empty_like(merges)))
        merges[num_merges, 0], merges[num_merges, 1], merges[num_merges, 2] = left, right, new
        num_merges += 1
        table = with_slots(table, used + 2 * num_tokens + 2)
        changes, lacked = merge_in_words(
            words, sizes, places[start:stop], (left, right, new), table
        )
        used += lacked
    return merges[:num_merges].copy()
