"""Training of a byte-level BPE: the tokenizer.json that `tokenizers` would train, in less time.

`BpeTrainer` of `tokenizers` takes 0.6 s a MB of text, most of it to cut words by a regular
expression. Here words are cut and counted by a kernel, and merged as that trainer does: numbers are
integers and ties are broken by id, so the result is the same bytes for any order of the texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.text.buffers import text_buffers
from assets.tokenized.byte_level import byte_letters
from assets.tokenized.word_classes import character_classes

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def train_byte_pairs(
    texts: pl.Series, special_tokens: Sequence[str], vocab_size: int, min_frequency: int
) -> str:
    """Train on the texts and return the tokenizer.json."""
    from assets.tokenized.kernels.pair_training import learn_merges

    letters = byte_letters()
    entries = list(dict.fromkeys([*special_tokens, *sorted(letters)]))
    merges = learn_merges(
        byte_words(texts, np.array([entries.index(letter) for letter in letters], np.int32)),
        token_bytes(entries),
        vocab_size,
        min_frequency,
    )
    pairs: dict[tuple[int, int], None] = {}
    for left, right, merged in merges.tolist():
        if merged == len(entries):
            entries.append(entries[left] + entries[right])
        pairs.pop((left, right), None)  # of a pair that is merged twice the last counts
        pairs[left, right] = None
    spelled = [(entries[left], entries[right]) for left, right in pairs]
    return byte_level_tokenizer(entries, spelled, special_tokens).to_str()


def byte_words(
    texts: pl.Series, byte_ids: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Return the ids of the bytes of all different words, their edges, and the number of each."""
    from assets.tokenized.kernels.word_counts import are_known, count_words

    classes = character_classes()
    is_known = pl.Series(are_known(*text_buffers(texts), classes), dtype=pl.Boolean)
    rest = [word for text in texts.filter(~is_known) for word in cut_by_reference(text)]
    cut = texts.filter(is_known)
    data, edges = text_buffers(pl.concat([cut, pl.Series(rest, dtype=pl.String)]))
    starts, sizes, numbers = count_words(data, edges, classes, len(cut)).T
    word_edges = np.concatenate([[0], np.cumsum(sizes)])
    places = np.arange(word_edges[-1]) + np.repeat(starts - word_edges[:-1], sizes)
    return byte_ids[data[places]], word_edges, np.ascontiguousarray(numbers)


def cut_by_reference(text: str) -> list[str]:
    """Cut a text into words as `tokenizers` does."""
    from tokenizers import pre_tokenizers

    splitter = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return [text[start:end] for _, (start, end) in splitter.pre_tokenize_str(text)]


def token_bytes(entries: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the bytes that entries spell, and their edges; none if they spell other characters."""
    bytes_of = {letter: byte for byte, letter in enumerate(byte_letters())}
    spelled = [
        bytes(map(bytes_of.__getitem__, entry)) if bytes_of.keys() >= set(entry) else b""
        for entry in entries
    ]
    edges = np.cumsum([0, *map(len, spelled)], dtype=np.int64)
    return np.frombuffer(bytearray(b"".join(spelled)), np.uint8), edges


def byte_level_tokenizer(
    entries: Sequence[str], merges: Sequence[tuple[str, str]], special_tokens: Sequence[str]
) -> Tokenizer:
    """Make a byte-level BPE (GPT-2's split) of its entries by id and its merges by rank."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    vocabulary = {entry: token_id for token_id, entry in enumerate(entries)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=list(merges)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(special_tokens))
    return tokenizer
