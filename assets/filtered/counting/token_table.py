"""Tokens of spaCy's tokenizers for the chunks of a text column, each different chunk cut once.

spaCy cuts every run between white space by itself, so the tokens of a text are those of its chunks;
exceptions that have white space inside (Spanish "EE. UU.", Russian "и т. д.") are the difference.
The table of a language is kept for the next texts of the process, and emptied when it is large:
what is counted does not depend on it.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from assets.filtered.counting.kernels.chunks import Tokens

MAX_TOKENS = 2_000_000  # of a table, some 150 MB with spaCy's own strings
FIRST_SLOTS = 1 << 16
TokenFacts = tuple[int, int, int]  # bytes, characters, flags


class TokenTable:
    """The chunks of one language that were cut so far; use it with its lock held."""

    def __init__(self, language: str) -> None:
        """Make an empty table: the exceptions of letters alone are its first chunks."""
        self.lock = threading.Lock()
        self._language = language
        self._reset()

    def add(
        self, data: NDArray[np.uint8], starts: NDArray[np.int64], kinds: NDArray[np.uint8]
    ) -> None:
        """Cut the chunks of some texts, with `starts` in `data`, that the table lacks."""
        from assets.filtered.counting.kernels.chunks import find_unknown

        if len(self._sizes) > MAX_TOKENS:
            self._reset()
        room = int(starts[-1] - starts[0] + len(starts)) // 2 + 1
        found = np.empty(room, np.uint64), np.empty((room, 2), np.int64)
        count = find_unknown(data, starts, kinds, self.tokens, found)
        hashes, places = np.unique(found[0][:count], return_index=True)
        bounds = found[1][places].tolist()
        self._enter(hashes, [data[first:last].tobytes().decode() for first, last in bounds])

    def _reset(self) -> None:
        import spacy

        from assets.filtered.counting.kernels.chunks import FREE, Tokens, hash_texts

        self._cut: Any = spacy.blank(self._language).tokenizer
        self._facts: dict[str, TokenFacts] = {}
        self._sizes: list[int] = []
        self._characters: list[int] = []
        self._flags: list[int] = []
        self._num_chunks = 0
        empty = np.empty(0, np.int64)
        self.tokens: Tokens = Tokens(
            np.zeros(FIRST_SLOTS, np.uint64),
            np.full(FIRST_SLOTS, FREE),
            np.zeros(FIRST_SLOTS, np.int64),
            *(empty, empty, np.empty(0, np.uint8)),
        )
        exceptions = sorted(filter(str.isalpha, self._cut.rules))
        encoded = [text.encode() for text in exceptions]
        starts = np.cumsum([0, *map(len, encoded)])
        hashes = hash_texts(np.frombuffer(b"".join(encoded), np.uint8), starts)
        self._enter(hashes, exceptions)

    def _enter(self, hashes: NDArray[np.uint64], chunks: list[str]) -> None:
        from assets.filtered.counting.kernels.chunks import enter

        firsts = np.empty(len(chunks), np.int64)
        for number, chunk in enumerate(chunks):
            firsts[number] = len(self._sizes)
            for token in self._cut(chunk):
                size, characters, flags = self._facts_of(token.text)
                self._sizes.append(size)
                self._characters.append(characters)
                self._flags.append(flags)
        lengths = np.diff(firsts, append=len(self._sizes))
        self._make_room(len(chunks))
        enter(self.tokens, hashes, firsts, lengths)
        self.tokens = self.tokens._replace(
            sizes=np.array(self._sizes, np.int64),
            characters=np.array(self._characters, np.int64),
            flags=np.array(self._flags, np.uint8),
        )

    def _make_room(self, num_chunks: int) -> None:
        from assets.filtered.counting.kernels.chunks import FREE, enter

        self._num_chunks += num_chunks
        old, slots = self.tokens, len(self.tokens.keys)
        while slots < 2 * self._num_chunks:
            slots *= 4
        if slots > len(old.keys):
            is_used = old.firsts != FREE
            self.tokens = old._replace(
                keys=np.zeros(slots, np.uint64),
                firsts=np.full(slots, FREE),
                lengths=np.zeros(slots, np.int64),
            )
            enter(self.tokens, old.keys[is_used], old.firsts[is_used], old.lengths[is_used])

    def _facts_of(self, token: str) -> TokenFacts:
        facts = self._facts.get(token)
        if facts is None:
            facts = self._facts[token] = _facts(token)
        return facts


@cache
def token_table(language: str) -> TokenTable:
    """Return the table of a language, one for a process."""
    return TokenTable(language)


@cache
def punctuation() -> frozenset[str]:
    """Return datatrove's marks: a word of these alone is no word for Gopher's counts."""
    from assets.text.kernels.character_classes import TERMINAL_MARKS

    marks = (
        "!/—”:％１〈&(、━\\【#%「」，】；+^]~“《„';’{|∶´[=-`*．（–？！：$～«〉,><》)?）。…@_.\"}►»"
    )
    controls = [*range(9), 11, 12, *range(13, 32), *range(127, 160)]
    return frozenset([*marks, *map(chr, controls), *TERMINAL_MARKS])


@cache
def _sentence_ends() -> frozenset[str]:
    from spacy.pipeline import Sentencizer

    return frozenset(Sentencizer.default_punct_chars)


def _facts(token: str) -> TokenFacts:
    from spacy.lang.lex_attrs import is_punct

    from assets.filtered.counting.kernels.datatrove_words import (
        ALPHABETIC,
        ENDS_SENTENCE,
        IS_PUNCTUATION,
        PUNCTUATION_ONLY,
    )

    flags = PUNCTUATION_ONLY * punctuation().issuperset(token)
    flags |= ALPHABETIC * any(map(str.isalpha, token))
    flags |= ENDS_SENTENCE * (token in _sentence_ends())
    flags |= IS_PUNCTUATION * is_punct(token)
    return len(token.encode()), len(token), flags
