"""Clues: short patterns of bytes, one of which is in every text with a candidate of a scan.

A clue is a pattern of fixed length in bytes of UTF-8: `[a-z]` is one byte of a class, `\\d` a
digit, `.` any byte or the end of the text, `{n}` repeats an element; anything else is itself. One
shorter than four bytes is a literal. A kernel looks for all clues in one pass over the text, which
takes 2.5 s/GB; regexes, 0.3 to 0.9 s/GB each of 35, read only the texts with a clue of theirs.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.text.buffers import text_buffers

if TYPE_CHECKING:
    from assets.filtered.kernels.clue_scan import ClueTables

Clues = tuple[str, ...]
_ELEMENT = re.compile(rb"(\[(?:[^\]\\]|\\.)+\]|\\x[0-9a-f]{2}|\\.|.)(?:\{(\d+)\})?", re.DOTALL)


def rows_with_clues(texts: pl.Series, clues: tuple[Clues, ...]) -> list[NDArray[np.int64]]:
    """Return the rows of the texts (String, no nulls) with one of the clues of each scan.

    At most 64 scans.
    """
    from assets.filtered.kernels.clue_scan import GRAM, find_clues

    patterns = tuple(tuple(clue for clue in own if len(clue) >= GRAM) for own in clues)
    found = find_clues(*text_buffers(texts.rechunk()), clue_tables(patterns))
    literals = {clue for own in clues for clue in own if len(clue) < GRAM}
    has = {literal: texts.str.contains(literal, literal=True).to_numpy() for literal in literals}
    rows = []
    for number, own in enumerate(clues):
        is_likely = found & np.uint64(1 << number) != 0
        for literal in literals.intersection(own):
            is_likely |= has[literal]
        rows.append(np.flatnonzero(is_likely))
    return rows


@cache
def clue_tables(clues: tuple[Clues, ...]) -> "ClueTables":
    """Make the kernel's tables; clue i of the n-th scan sets bit n."""
    from assets.filtered.kernels.clue_scan import GRAM, HASH_BITS, ClueTables, hash_gram

    folded = _folded_bytes()
    masks: dict[str, int] = {}
    for number, own in enumerate(clues):
        for clue in own:
            masks[clue] = masks.get(clue, 0) | 1 << number
    slots = np.full(1 << HASH_BITS, -1, np.int32)
    links: list[tuple[int, int]] = []
    allowed, ends = [elements_of(clue) for clue in masks], []
    for number, elements in enumerate(allowed):
        first, grams = _rarest_gram(elements, folded, GRAM)
        ends.append(first + GRAM)
        for gram in grams:
            key = hash_gram(np.uint32(int.from_bytes(bytes(gram), "little")))
            links.append((number, int(slots[key])))
            slots[key] = len(links) - 1
    return ClueTables(
        folded=folded.astype(np.uint32) << np.uint32(24),
        bits=np.packbits(slots >= 0, bitorder="little").view(np.uint32),
        slots=slots,
        chained=np.array(links or [(0, -1)], np.int32),
        elements=np.concatenate([np.zeros((0, 256), np.uint8), *allowed]),
        starts=np.cumsum([0, *map(len, allowed)]),
        ends=np.array(ends, np.int64),
        masks=np.array(list(masks.values()), np.uint64),
    )


def elements_of(clue: str) -> NDArray[np.uint8]:
    """Return the bytes that each element of a clue allows, uint8 [elements, 256], 0 or 1."""
    rows: list[NDArray[np.uint8]] = []
    for match in _ELEMENT.finditer(clue.encode()):
        is_special = match[1] == b"." or (match[1][0] in b"[\\" and len(match[1]) > 1)
        is_allowed = re.compile(match[1] if is_special else re.escape(match[1]), re.DOTALL)
        row = np.array([bool(is_allowed.fullmatch(bytes([i]))) for i in range(256)], np.uint8)
        rows += [row] * int(match[2] or 1)
    return np.array(rows)


def _folded_bytes() -> NDArray[np.uint8]:
    folded = np.arange(256, dtype=np.uint8)
    folded[ord("0") : ord("9") + 1] = ord("0")
    folded[ord("A") : ord("Z") + 1] += ord("a") - ord("A")
    return folded


def _rarest_gram(
    elements: NDArray[np.uint8], folded: NDArray[np.uint8], size: int
) -> tuple[int, Iterator[Sequence[int]]]:
    """Return the first element of the window with the fewest folded grams, and these."""
    choices = [sorted(set(folded[row != 0].tolist())) for row in elements]
    windows = [choices[i : i + size] for i in range(len(choices) - size + 1)]
    first = min(range(len(windows)), key=lambda i: prod(map(len, windows[i])))
    return first, product(*windows[first])
