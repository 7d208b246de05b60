"""Byte-pair merges of distinct words, with the counts, ties and order of `tokenizers`.

Each step takes the pair with the highest count (of equal ones the lowest ids), names its string,
merges it in the words where it was formed, and counts the pairs that this breaks and forms. As in
`tokenizers` (models/bpe/trainer.rs) a merged pair keeps its count, and a string that is a token
already, a special one or of another pair, keeps its id.
100 MB of many languages have 0.6 million distinct words: 32,000 entries take 2.5 s of CPU, and what
they need of memory is known before (a merge takes one id from a word and forms two pairs).
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, return-value"

from typing import Any, NamedTuple

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels import byte_strings
from assets.text.kernels.byte_strings import Bytes, Records, find_string
from assets.tokenized.kernels.bpe_words import (
    AMOUNT,
    LAST,
    WORDS,
    Integers,
    Side,
    Words,
    meet,
    merge_word,
)
from assets.tokenized.kernels.pair_queue import (
    COUNT,
    PAIR,
    START,
    STOP,
    Pairs,
    Queue,
    add_to_pair,
    pair_of,
    pop,
    push,
    slot_of,
)

# Of `state`: ids and merges so far, pairs, entries in the queue, places, longest token.
TOKENS, MERGES, PAIRS, QUEUED, PLACES, LONGEST = range(6)
LEFT, RIGHT, BOTH = range(3)

_options = {"cache": True, "nogil": True}
_inlined = {**_options, "forceinline": True}


class Tokens(NamedTuple):
    """The strings of the tokens."""

    records: Records  # VALUE: id + 1
    data: Bytes
    bounds: Integers  # [ids + 1], token i: data[bounds[i] : bounds[i + 1]]


class Training(NamedTuple):
    """All that the merging works on."""

    words: Words
    left: Side
    right: Side
    places: NDArray[np.uint32]  # of words; a queue's entry has a range of them
    pairs: Pairs
    queue: Queue
    tokens: Tokens
    merges: Integers  # pairs in the order of merging
    state: Integers  # [6]


@njit(**_inlined)
def _pair_beside(number: int, token: int, where: int) -> int:
    """Return the pair of a token and a neighbour, or the one that stands for two of the bytes."""
    if where == LEFT:
        return pair_of(number, token)
    if where == RIGHT:
        return pair_of(token, number)
    return pair_of(number // token, number % token)


@njit(**_options)
def _count_side(training: Any, side: Side, where: int, token: int, sign: int) -> None:
    """Add the amounts of the pairs of a token and its neighbours to the table."""
    for i in range(side.sizes[0]):
        number = side.ids[i]
        pair = _pair_beside(number, token, where)
        amount = sign * side.sums[number, AMOUNT]
        training.state[PAIRS] += add_to_pair(training.pairs, pair, amount)


@njit(**_options)
def _queue_side(training: Any, side: Side, where: int, token: int) -> None:
    """Queue the pairs of a token and its neighbours, each with its words; clear the side."""
    state, places, sums = training.state, training.places, side.sums
    end = state[PLACES]
    for i in range(side.sizes[0]):
        number = side.ids[i]
        sums[number, LAST] = end
        end += sums[number, WORDS]
    for i in range(side.sizes[1]):
        number = side.found[i, 0]
        places[sums[number, LAST]] = side.found[i, 1]
        sums[number, LAST] += 1
    for i in range(side.sizes[0]):
        number = side.ids[i]
        pair = _pair_beside(number, token, where)
        count = training.pairs[slot_of(pair, training.pairs), 1]
        stop = sums[number, LAST]
        if count > 0:
            start = stop - sums[number, WORDS]
            push(training.queue, state[QUEUED], (count, pair, start, stop))
            state[QUEUED] += 1
        sums[number, AMOUNT], sums[number, WORDS] = 0, 0
    state[PLACES] = end
    side.sizes[:] = 0


@njit(**_options)
def enter_tokens(tokens: Tokens, number: int) -> None:
    """Enter the strings of the first tokens; an empty one is found by no merge."""
    for token in range(number):
        start, stop = tokens.bounds[token], tokens.bounds[token + 1]
        if stop > start:
            slot = find_string(
                tokens.records, tokens.data, tokens.data, uint64(start), uint64(stop)
            )
            tokens.records[slot, byte_strings.START] = start
            tokens.records[slot, byte_strings.VALUE] = token + 1


@njit(**_options)
def name_token(tokens: Tokens, first: int, second: int, state: Integers) -> int:
    """Id of the string that two tokens give, which may be there."""
    start = end = tokens.bounds[state[TOKENS]]
    for number in (first, second):
        for at in range(tokens.bounds[number], tokens.bounds[number + 1]):
            tokens.data[end] = tokens.data[at]
            end += 1
    slot = find_string(tokens.records, tokens.data, tokens.data, uint64(start), uint64(end))
    if tokens.records[slot, byte_strings.VALUE] != 0:
        return np.int64(tokens.records[slot, byte_strings.VALUE]) - 1
    new = state[TOKENS]
    tokens.records[slot, byte_strings.START] = start
    tokens.records[slot, byte_strings.VALUE] = new + 1
    tokens.bounds[new + 1] = end
    state[TOKENS] = new + 1
    state[LONGEST] = max(state[LONGEST], end - start)
    return new


@njit(**_options)
def count_pairs(training: Training, num_ids: int) -> None:
    """Count and queue all pairs of the words before any merge; the ids are below `num_ids`."""
    words = training.words
    ids = num_ids * num_ids
    found, sizes = training.left.found, training.left.sizes
    side = Side(np.zeros((ids, 3), np.int64), np.empty(ids, np.int64), found, sizes)
    word = 0
    while word < len(words):
        end = word + 2 + words[word]
        for at in range(word + 2, end - 1):
            meet(side, words[at] * num_ids + words[at + 1], words[word + 1], word)
        word = end
    _count_side(training, side, BOTH, num_ids, 1)
    _queue_side(training, side, BOTH, num_ids)


@njit(**_options)
def merge_pairs(training: Training, vocab_size: int, min_frequency: int) -> bool:
    """Merge until the vocabulary is full or no pair is frequent enough; False where room is short.

    Then the caller gives more of it, and calls again.
    """
    words, left, right, places, pairs, queue, tokens, merges, state = training
    while state[TOKENS] < vocab_size:
        most_new = 2 * state[TOKENS]  # pairs of a step
        if (
            2 * (state[PAIRS] + most_new) > len(pairs)
            or state[QUEUED] + most_new > len(queue)
            or state[MERGES] == len(merges)
            or tokens.bounds[state[TOKENS]] + 2 * state[LONGEST] > len(tokens.data)
        ):
            return False
        state[QUEUED], entry = pop(queue, state[QUEUED], pairs)
        if entry[COUNT] < min_frequency:
            break
        first, second = entry[PAIR] >> 32, entry[PAIR] & 0xFFFFFFFF
        new = name_token(tokens, first, second, state)
        merges[state[MERGES]] = entry[PAIR]
        state[MERGES] += 1
        for i in range(entry[START], entry[STOP]):
            merge_word(words, places[i], (first, second, new), (left, right))
        for side, where, old in ((left, LEFT, first), (right, RIGHT, second)):
            _count_side(training, side, where, old, -1)
            _count_side(training, side, where, new, 1)
        _queue_side(training, left, LEFT, new)
        _queue_side(training, right, RIGHT, new)
    return True
