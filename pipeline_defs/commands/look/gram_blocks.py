"""Byte n-grams of blocks of documents, by which a search reads few of the texts.

The texts of a part are cut into 256 blocks of about as many bytes. Every window of eight bytes has
three 6-grams; the one of the least hash marks a row of bits, with a bit for each block that has it.
All windows of a string mark rows of a text that holds it, so blocks without one of these bits are
ruled out. The rows take a sixth of the bytes of the texts, whatever their number.

A page of 4 KiB holds 128 rows and the hash of the page, since a lost bit would hide documents; the
first page has the first row of each block. A search reads a page per 6-gram.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np
import polars as pl
import xxhash
from numpy.typing import NDArray

from assets.text.buffers import text_buffers
from assets.text.table_rows import change_where
from pipeline_defs.commands.look.spellings import characters_by_folding, folded

GRAM, WINDOW = 6, 3
LEAST_BYTES = GRAM + WINDOW - 1  # of a string that can be looked up
BLOCKS, PAGE = 256, 4096
ROW_BYTES = BLOCKS // 8
PAGE_ROWS = PAGE // ROW_BYTES
PIECE = 1 << 16  # bytes that are hashed at a time, to stay in the cache
MULTIPLIER, SMALL_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15), np.uint32(0x9E3779B1)
Bytes = NDArray[np.uint8]


@cache
def beyond_ascii() -> dict[str, str]:
    """Return the characters beyond ASCII that fold to what has ASCII in it: ß, ſ, K, ﬁ, ..."""
    known = characters_by_folding().items()
    with_ascii = {one: key for key, ones in known if any(map(str.isascii, key)) for one in ones}
    return {one: key for one, key in with_ascii.items() if not one.isascii()}


def evened(texts: pl.Series) -> pl.Series:
    """Fold what folds to ASCII, each character by itself: a string within a text stays within."""
    folds = beyond_ascii()
    has_some = texts.str.contains(f"[{''.join(folds)}]")
    return change_where(
        texts, has_some, lambda some: some.str.replace_many([*folds], [*folds.values()])
    )


def lowered(data: Bytes) -> Bytes:
    """Return bytes of UTF-8 with A to Z in lower case."""
    is_capital = data - np.uint8(ord("A")) < 26
    return data | is_capital.view(np.uint8) << np.uint8(5)


def least_hashes(data: Bytes) -> NDArray[np.uint32]:
    """Return the least hash of the 6-grams of each window of 8 bytes, none of fewer bytes."""
    count = max(0, len(data) - GRAM + 1)
    padded = np.append(data, np.zeros(2 * 8, np.uint8))
    grams = np.empty(-(-count // 8) * 8, np.uint64)
    for at in range(8):
        grams[at::8] = np.frombuffer(padded, "<u8", len(grams) // 8, at)
    grams = (grams[:count] << np.uint64(8 * (8 - GRAM))) * MULTIPLIER
    grams = (grams ^ grams >> np.uint64(32)) * MULTIPLIER
    hashes = (grams >> np.uint64(32)).astype(np.uint32)
    for _ in range(1, WINDOW):
        hashes = np.minimum(hashes[:-1], hashes[1:])
    return hashes * SMALL_MULTIPLIER  # the least of three are small


def rows_of(data: Bytes, num_rows: int) -> NDArray[np.int64]:
    """Return the rows that the windows of some bytes mark."""
    product = least_hashes(data).astype(np.uint64) * np.uint64(num_rows)
    return (product >> np.uint64(32)).astype(np.int64)


def mark_blocks(texts: pl.Series) -> bytes:
    """Return the pages of a part's texts."""
    data, offsets = text_buffers(evened(texts))
    data, total = lowered(data), int(offsets[-1])
    edges = np.searchsorted(offsets, np.linspace(0, total, BLOCKS + 1))
    edges[0], edges[-1] = 0, len(texts)
    num_pages = 1 + total * 5 // 4 // BLOCKS // PAGE_ROWS  # the bits of a block: 5/4 of its bytes
    marks = np.zeros((BLOCKS, num_pages * PAGE_ROWS), np.bool_)
    for block, (start, stop) in enumerate(pairwise(offsets[edges].tolist())):
        for at in range(start, stop, PIECE):
            piece = data[at : min(stop, at + PIECE + LEAST_BYTES - 1)]
            marks[block, rows_of(piece, marks.shape[1])] = True
    head = np.zeros(PAGE // 8, np.int64)
    head[: BLOCKS + 1] = edges
    content = head.tobytes() + np.packbits(marks, axis=0).T.tobytes()
    pages = (content[at : at + PAGE] for at in range(0, len(content), PAGE))
    return b"".join(page + xxhash.xxh3_64_digest(page) for page in pages)


def documents_with(pages: Bytes, strings: Sequence[bytes]) -> NDArray[np.bool_]:
    """Return which documents may have all of some strings, by the mapped pages of their part.

    Raises ValueError if a page is damaged.
    """
    pages = pages.reshape(-1, PAGE + 8)
    num_rows = (len(pages) - 1) * PAGE_ROWS
    is_left = np.full(ROW_BYTES, 255, np.uint8)
    for string in strings:
        for row in np.unique(rows_of(np.frombuffer(string, np.uint8), num_rows)).tolist():
            if not is_left.any():
                break
            page = read_page(pages, 1 + row // PAGE_ROWS)
            is_left &= page.reshape(PAGE_ROWS, ROW_BYTES)[row % PAGE_ROWS]
    edges = read_page(pages, 0).view(np.int64)[: BLOCKS + 1]
    return np.repeat(np.unpackbits(is_left).astype(np.bool_), np.diff(edges))


def read_page(pages: Bytes, number: int) -> Bytes:
    """Return a page without its hash, with which it is compared."""
    page = pages[number, :PAGE]
    if xxhash.xxh3_64_digest(page.tobytes()) != pages[number, PAGE:].tobytes():
        raise ValueError(f"page {number:,} is not as it was written")
    return page


def check_pages(pages: Bytes) -> None:
    """Raise ValueError if a page of a part is damaged."""
    pages = pages.reshape(-1, PAGE + 8)
    for number in range(len(pages)):
        read_page(pages, number)


def strings_of(text: str, *, ignore_case: bool) -> list[bytes]:
    """Return what every text with a string has in its pages; none if that is too short.

    Without case that is ASCII only: the pages have other letters as they are.
    """
    runs = re.findall("[\\x00-\\x7f]+", folded(text)) if ignore_case else [text]
    strings = [one.encode() for one in evened(pl.Series(runs, dtype=pl.String))]
    return [
        lowered(np.frombuffer(one, np.uint8)).tobytes()
        for one in strings
        if len(one) >= LEAST_BYTES
    ]
