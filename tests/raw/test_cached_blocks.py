"""Remote files that are read at any place: each block is fetched once, while it is held."""

from __future__ import annotations

import io

from assets.raw.readers.read_packaged import (
    BLOCK_BYTES,
    MOST_BLOCKS,
    CachedBlocks,
    cached_blocks,
)

NUM_BYTES = 2 * BLOCK_BYTES + 5


def test_any_place_is_read_with_a_fetch_per_block() -> None:
    asked: list[tuple[int, int]] = []

    def fetch(start: int, stop: int) -> bytes:
        asked.append((start, stop))
        return bytes(place % 251 for place in range(start, stop))

    block = cached_blocks(fetch, NUM_BYTES)
    for _ in range(2):
        file = io.BufferedReader(CachedBlocks(block, NUM_BYTES))
        assert file.seek(-3, io.SEEK_END) == NUM_BYTES - 3
        assert file.read() == bytes(place % 251 for place in range(NUM_BYTES - 3, NUM_BYTES))
        file.seek(BLOCK_BYTES - 2)
        assert file.read(4) == bytes(p % 251 for p in range(BLOCK_BYTES - 2, BLOCK_BYTES + 2))
        assert file.tell() == BLOCK_BYTES + 2
        file.seek(NUM_BYTES + 9)
        assert file.read(1) == b""
    spans = [(0, BLOCK_BYTES), (BLOCK_BYTES, 2 * BLOCK_BYTES), (2 * BLOCK_BYTES, NUM_BYTES)]
    assert sorted(asked) == spans


def test_only_the_last_blocks_are_held() -> None:
    asked: list[int] = []
    block = cached_blocks(lambda start, _: asked.append(start) or b"", 99 * BLOCK_BYTES)
    for number in [*range(MOST_BLOCKS + 1), 1, 0]:
        block(number)
    assert asked == [n * BLOCK_BYTES for n in [*range(MOST_BLOCKS + 1), 0]]
