"""Raw files of sorted pairs: read them together in bounded blocks, distribute them to other files.

Bands of an index find the same pairs many times (three of four in eight files). Since every file is
sorted, the copies of a pair come in one block and are removed together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assets.deduped.clusters.components import merge_pairs
from assets.deduped.index.row_ids import parts_of
from resources.store.store import StoreError

PAIR_BYTES = 16
BLOCK_SHARE = 256  # a block, and its copies while it is merged, numbered, linked and grouped
LARGEST_BLOCK = 1 << 20  # pairs

Pairs = NDArray[Any]


def unique_blocks(
    pair_files: Sequence[Path], part_ids: NDArray[np.int64], block_rows: int
) -> Iterator[Pairs]:
    """Yield all pairs of sorted files, each once and in order, in blocks, uint64 [m, 2].

    Pairs of other parts than `part_ids` are passed over: the index keeps those of removed parts
    until it is written again. A block takes from every file the pairs up to the last one that all
    files have been read to, so that the copies of a pair come in one block.
    """
    from assets.deduped.kernels.union_find import rows_up_to

    is_live = np.zeros(int(part_ids.max(initial=-1)) + 2, np.bool_)
    is_live[part_ids] = True
    step = max(1, block_rows // max(1, len(pair_files)))
    left = {path: path.stat().st_size // PAIR_BYTES for path in pair_files}
    positions = dict.fromkeys(left, 0)
    while left := {path: rows for path, rows in left.items() if positions[path] < rows}:
        runs = {path: read_rows(path, np.uint64, positions[path], step) for path in left}
        unread = [path for path, run in runs.items() if positions[path] + len(run) < left[path]]
        if unread:
            last = min((runs[path][-1:] for path in unread), key=lambda pair: pair[0].tolist())
            runs = {path: run[: rows_up_to(run, last)] for path, run in runs.items()}
        for path, run in runs.items():
            positions[path] += len(run)
        block = merge_pairs(list(runs.values()))
        parts = np.minimum(parts_of(block), len(is_live) - 1)
        yield block[is_live[parts].all(axis=1)]


def append_grouped(rows: Pairs, groups: NDArray[np.int64], paths: Sequence[Path]) -> None:
    """Add rows [m, 2] to the files of their groups, int64 [m], in order."""
    from assets.deduped.kernels.union_find import group_rows

    grouped, ends = group_rows(rows, groups, len(paths))
    start = 0
    for path, end in zip(paths, ends.tolist(), strict=True):
        if end > start:
            with path.open("ab") as file:
                grouped[start:end].tofile(file)
        start = end


def read_rows(path: Path, dtype: type[np.generic], start: int, count: int) -> Pairs:
    """Read `count` rows, or as many as are left, [m, 2], of a raw file from row `start` on."""
    values = np.fromfile(path, dtype, 2 * count, offset=start * PAIR_BYTES)
    return values.reshape(-1, 2)


def block_rows_of(memory_bytes: int) -> int:
    """Return the number of pairs to hold at once."""
    return max(1, min(LARGEST_BLOCK, memory_bytes // BLOCK_SHARE))


def check_pair_files(pair_files: Sequence[Path]) -> None:
    """Raise StoreError for a file that does not hold whole pairs."""
    for path in pair_files:
        size = path.stat().st_size
        if size % PAIR_BYTES:
            raise StoreError(
                f"{path} is truncated: {size:,} bytes are not a whole number of pairs of "
                f"{PAIR_BYTES} bytes. Materialize `band_index` again."
            )
