"""Byte-pair merges of texts: distinct words are counted, then merged in their tables.

Memory grows with the distinct words, not with the texts: 0.6 million in 100 MB of many languages.
The loops are in the kernels `gpt2_split` and `bpe_merges`; here is what they work on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.text.buffers import text_buffers
from assets.tokenized.byte_level import byte_letters

if TYPE_CHECKING:
    from assets.tokenized.kernels.bpe_merges import Training

NUM_CODES = 0x110000
SURROGATES = slice(0xD800, 0xE000)  # no characters
FIRST_SLOTS = 1 << 12


@cache
def letter_classes() -> NDArray[np.uint8]:
    r"""Class of each code point, uint8 [0x110000]: \p{L}, \p{N}, \s or other.

    From Polars' regular expressions: equal to those of `tokenizers` for all code points, 0.1 s.
    """
    from assets.tokenized.kernels.gpt2_split import LETTER, NUMBER, SPACE

    codes = np.arange(NUM_CODES, dtype="<u4")
    codes[SURROGATES] = 0
    characters = pl.Series(list(codes.tobytes().decode("utf-32-le")))
    classes = np.zeros(NUM_CODES, np.uint8)
    for pattern, number in ((r"\p{L}", LETTER), (r"\p{N}", NUMBER), (r"\s", SPACE)):
        classes[characters.str.contains(pattern).to_numpy()] = number
    return classes


class WordCounts:
    """How often each distinct word of two bytes or more occurs; texts come in batches."""

    def __init__(self) -> None:
        self.records = np.zeros((FIRST_SLOTS, 4), np.uint64)
        self.data = np.empty(FIRST_SLOTS << 3, np.uint8)
        self.state = np.zeros(4, np.int64)

    def add(self, texts: pl.Series) -> None:
        """Count the words of texts without nulls."""
        from assets.text.kernels.byte_strings import larger_table
        from assets.tokenized.kernels.gpt2_split import count_words

        text, offsets = text_buffers(texts)
        self.state[:2] = 0
        while not count_words(text, offsets, letter_classes(), self.records, self.data, self.state):
            self.records = larger_table(self.records)
            self.data = np.concatenate([self.data, np.empty_like(self.data)])

    def as_dict(self) -> dict[bytes, int]:
        """Count of each word."""
        held = self.data.tobytes()
        used = self.records[self.records[:, 3] > 0, 1:].tolist()
        return {held[start : start + size]: count for start, size, count in used}

    def words(self, byte_ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """Size, count and ids of each distinct word, end to end."""
        from assets.tokenized.kernels.gpt2_split import NUM_BYTES, NUM_WORDS, words_of

        size = int(self.state[NUM_BYTES] + 2 * self.state[NUM_WORDS])
        words = np.empty(size, np.int32)
        words_of(self.records, self.data, byte_ids, words)
        return words


def learn_merges(
    counts: WordCounts, special_tokens: Sequence[str], vocab_size: int, min_frequency: int
) -> tuple[list[str], list[tuple[str, str]]]:
    """(tokens by id, merges in order), as `tokenizers` learns them from texts with these words."""
    tokens = list(dict.fromkeys([*special_tokens, *sorted(byte_letters())]))
    byte_ids = np.array([tokens.index(letter) for letter in byte_letters()], np.int32)
    merges = merged_pairs(counts.words(byte_ids), tokens, vocab_size, min_frequency)
    known = set(tokens)
    named = []
    for first, second in merges:
        name = tokens[first] + tokens[second]
        if name not in known:
            known.add(name)
            tokens.append(name)
        named.append((tokens[first], tokens[second]))
    # A pair that was merged twice, for a string that two pairs give, has the later place.
    return tokens, list(dict.fromkeys(reversed(named)))[::-1]


def merged_pairs(
    words: NDArray[np.int32], tokens: list[str], vocab_size: int, min_frequency: int
) -> NDArray[np.int64]:
    """Ids of the pairs merged, int64 [merges, 2]; `tokens` are those before the first merge."""
    from assets.tokenized.kernels.bpe_merges import MERGES, count_pairs, merge_pairs

    training = new_training(words, tokens, vocab_size)
    count_pairs(training, len(tokens))
    while not merge_pairs(training, vocab_size, min_frequency):
        training = with_more_room(training)
    merges = training.merges[: training.state[MERGES]]
    return np.stack([merges >> 32, merges & 0xFFFFFFFF], axis=1)


def new_training(words: NDArray[np.int32], tokens: list[str], vocab_size: int) -> Training:
    """What the kernel works on; of large arrays only what is written to takes memory."""
    from assets.tokenized.kernels.bpe_merges import Tokens, Training, enter_tokens
    from assets.tokenized.kernels.bpe_words import Side

    most_ids, size = max(vocab_size, len(tokens)), len(words)
    spelled = [spelling(token) for token in tokens]
    bounds = np.zeros(most_ids + 1, np.int64)
    bounds[1 : len(tokens) + 1] = np.cumsum([len(token) for token in spelled])
    longest = max(len(token) for token in spelled)
    data = np.zeros(int(bounds[len(tokens)]) + 16 * (most_ids + longest), np.uint8)
    data[: bounds[len(tokens)]] = np.frombuffer(b"".join(spelled), np.uint8)
    first_pairs = min(len(tokens) ** 2, size)
    slots = 1 << (4 * most_ids + 2 * first_pairs).bit_length()
    sides = [
        Side(
            np.zeros((most_ids, 3), np.int64),
            np.empty(most_ids, np.int64),
            np.empty((size, 2), np.uint32),
            np.zeros(2, np.int64),
        )
        for _ in range(2)
    ]
    training = Training(
        words=words,
        left=sides[0],
        right=sides[1],
        places=np.empty(3 * size, np.uint32),  # a merge takes one symbol away and forms two pairs
        pairs=np.zeros((slots, 2), np.int64),
        queue=np.empty((slots, 4), np.int64),
        tokens=Tokens(np.zeros((slots, 4), np.uint64), data, bounds),
        merges=np.empty(most_ids, np.int64),
        state=np.array([len(tokens), 0, 0, 0, 0, longest]),
    )
    enter_tokens(training.tokens, len(tokens))
    return training


def with_more_room(training: Training) -> Training:
    """The same with twice the room in what can be full."""
    from assets.tokenized.kernels.pair_queue import larger_pairs

    tokens = training.tokens
    return training._replace(
        pairs=larger_pairs(training.pairs),
        queue=np.concatenate([training.queue, np.empty_like(training.queue)]),
        tokens=tokens._replace(data=np.concatenate([tokens.data, np.empty_like(tokens.data)])),
        merges=np.concatenate([training.merges, np.empty_like(training.merges)]),
    )


def spelling(token: str) -> bytes:
    """The bytes that a token stands for; none, if it has characters that stand for no byte."""
    bytes_of = {letter: byte for byte, letter in enumerate(byte_letters())}
    return bytes(bytes_of[c] for c in token) if set(token) <= bytes_of.keys() else b""
