"""Find the tokens of a text that may be profanity in disguise, and count those that are.

A vectorised pass over the bytes flags the few places where a disguise may begin ("sh1t", "f**k",
"fuuuck", "f.u.c.k": 0.01 % of the tokens of English novels, 0.6 % of code); only there a token is
read letter by letter. Finding them costs more than reading them: 20 to 30 % of counting the words.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, return-value"

from typing import Any

import numpy as np
from numba import njit, uint8, uint64
from numpy.typing import NDArray

from assets.filtered.kernels.disguised_words import (
    Points,
    is_letter,
    is_profane,
    is_special,
    is_symbol,
)
from assets.filtered.kernels.term_table import PRIME, Bytes, Entries, Tables, find, is_plain_word
from assets.text.kernels.utf8 import decode, last_start
from assets.text.kernels.words import BLANK, entry_of

CHUNK_BYTES = 4096
MARGIN = 8
BLOCK = 32  # bytes that one flag stands for
MAX_TOKEN = 40  # characters
MAX_TOKEN_BYTES = 4 * MAX_TOKEN

Flags = NDArray[np.bool_]

_options = {"cache": True, "nogil": True}
_inlined = {**_options, "forceinline": True}


@njit(**_options)
def _flag_blocks(text: Bytes, letters: Flags, specials: Flags, hits: Flags, flags: Flags) -> None:
    """Flag the places where a disguise may begin, and their blocks.

    Comparisons of bytes and no branches, so that LLVM works on 32 or 64 bytes at once.
    """
    for i in range(len(text)):
        byte = text[i]
        low = byte | uint8(0x20)
        letters[i] = ((low >= uint8(97)) & (low <= uint8(122))) | (byte >= uint8(0x80))
        is_digit = (byte >= uint8(0x30)) & (byte <= uint8(0x38))
        is_mark = (byte == uint8(0x21)) | (byte == uint8(0x23)) | (byte == uint8(0x24))
        is_sign = (byte == uint8(0x2A)) | (byte == uint8(0x2B)) | (byte == uint8(0x40))
        specials[i] = is_digit | is_mark | is_sign
    for j in range(CHUNK_BYTES):
        i = j + MARGIN
        a, b, c, d, e, f = text[i], text[i + 1], text[i + 2], text[i + 3], text[i + 4], text[i + 5]
        after = letters[i + 1] | (
            specials[i + 1] & (letters[i + 2] | (specials[i + 2] & letters[i + 3]))
        )
        inside = letters[i - 1] & specials[i] & after
        low = a | uint8(0x20)
        stretched = letters[i] & (low == b | uint8(0x20)) & (low == c | uint8(0x20))
        wide = (a >= uint8(0xC2)) & (a == c) & (a == e) & (b == d) & (b == f)
        spaced = letters[i] & letters[i + 2] & letters[i + 4] & (b == d) & (d == f)
        hits[j] = inside | stretched | wide | (spaced & (letters[i + 1] ^ True))
    eights = hits.view(np.uint64)
    for block in range(len(flags)):
        first = block * (BLOCK // 8)
        flags[block] = (
            eights[first] | eights[first + 1] | eights[first + 2] | eights[first + 3]
        ) != 0


@njit(**_options)
def _copy_chunk(text: Bytes, start: int, target: Bytes) -> None:
    """Copy a chunk and its margins; zeros stand for what lies outside the text."""
    first, last = max(start - MARGIN, 0), min(start + CHUNK_BYTES + MARGIN, len(text))
    begin = first - (start - MARGIN)
    end = begin + last - first
    target[:begin] = 0
    # Unsigned, and not a slice assignment, which looks for overlaps: 0.8 ns a byte.
    for i in range(uint64(last - first)):
        target[uint64(begin) + i] = text[uint64(first) + i]
    target[end:] = 0


@njit(**_options)
def count_disguised(
    data: Bytes, span: tuple[int, int], entries: Entries, tables: Tables,
    languages: np.uint64, scratch: tuple[Any, ...],
) -> int:  # fmt: skip
    padded, letters, specials, hits, flags, token = scratch
    begin, stop = np.int64(span[0]), np.int64(span[1])
    text = data[begin:stop]
    found, size, token_end, spaced_end = 0, len(text), 0, 0
    for start in range(0, size, CHUNK_BYTES):
        length = min(CHUNK_BYTES, size - start)
        _copy_chunk(text, start, padded)
        _flag_blocks(padded, letters, specials, hits, flags)
        for block in range((length + BLOCK - 1) // BLOCK):
            if not flags[block]:
                continue
            first = start + block * BLOCK
            for at in range(first, min(first + BLOCK, size)):
                if not hits[at - start]:
                    continue
                local = at - start + MARGIN
                if at >= spaced_end and _starts_spaced(padded, local):
                    spaced_end, key = _read_spaced(text, at)
                    slot = find(key, tables)
                    found += slot >= 0 and (tables.profane[slot] & languages) != 0
                if at >= token_end and _starts_disguise(padded, local):
                    token_end, count = _read_token(text, at, token_end, entries, token)
                    found += is_profane(token[:count], entries, tables, languages)
    return found


@njit(**_inlined)
def _starts_disguise(text: Bytes, i: int) -> bool:
    byte = text[i]
    if is_special(byte) and is_letter(text[i - 1]):
        end = i + 1
        while end < i + 3 and is_special(text[end]):
            end += 1
        return is_letter(text[end])
    if byte < 0x80:
        low = byte | 0x20
        return is_letter(byte) and low == text[i + 1] | 0x20 and low == text[i + 2] | 0x20
    return (
        byte >= 0xC2
        and byte == text[i + 2]
        and byte == text[i + 4]
        and text[i + 1] == text[i + 3]
        and text[i + 1] == text[i + 5]
    )


@njit(**_inlined)
def _is_ascii_letter(byte: int) -> bool:
    return byte < 0x80 and is_letter(byte)


@njit(**_inlined)
def _is_wordish(byte: int) -> bool:
    return is_letter(byte) or (byte >= 0x30 and byte <= 0x39)


@njit(**_inlined)
def _starts_spaced(text: Bytes, i: int) -> bool:
    """Four single letters, the same one separator ( .-_*) between them."""
    gap = text[i + 1]
    is_gap = gap == 0x20 or gap == 0x2E or gap == 0x2D or gap == 0x5F or gap == 0x2A
    return (
        is_gap
        and gap == text[i + 3]
        and gap == text[i + 5]
        and _is_ascii_letter(text[i])
        and _is_ascii_letter(text[i + 2])
        and _is_ascii_letter(text[i + 4])
        and _is_ascii_letter(text[i + 6])
        and not _is_wordish(text[i - 1])
        and not _is_wordish(text[i + 7])
    )


@njit(**_options)
def _read_spaced(text: Bytes, at: int) -> tuple[int, int]:
    """End of a run of single letters, and the hash of the word they spell."""
    gap, key, size = text[at + 1], uint64(BLANK), len(text)
    while True:
        key = key * PRIME + uint64(text[at] | 0x20)
        is_next = at + 2 < size and text[at + 1] == gap and _is_ascii_letter(text[at + 2])
        if not is_next or (at + 3 < size and _is_wordish(text[at + 3])):
            return at + 1, key
        at += 2


@njit(**_inlined)
def _in_token(code_point: int, entries: Entries) -> bool:
    if code_point < 0x80 and is_symbol(code_point):
        return True
    return is_plain_word(entry_of(code_point, entries)) != 0


@njit(**_options)
def _read_token(text: Bytes, at: int, low: int, entries: Entries, token: Points) -> tuple[int, int]:
    """End of the token around a position, and its length; 0 if it has more than MAX_TOKEN."""
    begin = at
    while begin > low and at - begin <= MAX_TOKEN_BYTES:
        before = last_start(text, begin)
        if not _in_token(decode(text, uint64(before))[0], entries):
            break
        begin = before
    count, end = 0, uint64(begin)
    while end < uint64(len(text)):
        code_point, width = decode(text, end)
        if not _in_token(code_point, entries):
            break
        if count < MAX_TOKEN:
            token[count] = code_point
        count += 1
        end += width
    # A position may lie beside a token: go on after it in any case.
    return max(np.int64(end), at + 1), count if count <= MAX_TOKEN else 0
