"""Count a block of texts as datatrove 0.10 does: words, lines, n-grams."""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.filtered.counting.kernels.chunks import Tokens
from assets.filtered.counting.kernels.datatrove_lines import LineKind, count_raw_lines
from assets.filtered.counting.kernels.datatrove_ngrams import count_token_ngrams
from assets.filtered.counting.kernels.datatrove_words import (
    TokenCount,
    TokenList,
    count_tokens,
    cut_text,
    room_for_tokens,
)
from assets.filtered.kernels.text_lines import count_ellipses
from assets.text.kernels.compiling import ARRAY_KERNEL

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]

FIRST_LINE = len(TokenCount)
ELLIPSES = FIRST_LINE + len(LineKind)


class Tables(NamedTuple):
    """Tables to count a text with: character classes, tokens, sorted hashes of stop words."""

    kinds: Bytes
    tokens: Tokens
    stop_words: Hashes
    has_ngrams: bool


def count_texts(data: Bytes, starts: Integers, tables: Tables, counts: Integers) -> None:
    """Fill `counts`, int64 [n, columns], for n texts whose chunks are in the table.

    Columns: TokenCount, LineKind, ellipses, and `ngrams.NGRAM_COUNTS`.
    """
    room = room_for_tokens(int(np.diff(starts).max(initial=0)))
    _count_texts(data, starts, tables, room, counts)


@njit(**ARRAY_KERNEL)
def _count_texts(
    data: Bytes, starts: Integers, tables: Tables, room: TokenList, counts: Integers
) -> None:
    for row in range(len(counts)):
        span, own = (uint64(starts[row]), uint64(starts[row + 1])), counts[row]
        total = cut_text(data, span, tables.kinds, tables.tokens, room)
        count_tokens(room, total, tables.stop_words, own)
        count_raw_lines(data, span, tables.kinds, own[FIRST_LINE:])
        text = data[starts[row] : starts[row + 1]]
        own[ELLIPSES] = count_ellipses(text, len(text) > own[FIRST_LINE])
        if tables.has_ngrams:
            count_token_ngrams(room, total, own[ELLIPSES + 1 :])
