"""Group consecutive items into windows whose borders depend on the items near them alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xxhash


def content_windows(names: Sequence[str], sizes: Sequence[int], most: int) -> list[slice]:
    """Group consecutive items of together at most `most` bytes or tokens; a larger one is alone.

    A range that is too large is cut before the item whose name has the least hash, then both sides
    likewise: the borders are those of a treap. An item that comes or goes, wherever it is, thus
    changes its own window and at most those beside it. On average a window is half full.
    """
    if len(names) == 0:
        return []
    digests = (xxhash.xxh3_64_intdigest(name.encode()) for name in names)
    hashes = np.fromiter(digests, np.uint64, len(names))
    ends = np.concatenate([[0], np.cumsum(np.asarray(sizes, np.int64))])
    windows: list[slice] = []
    ranges = [(0, len(names))]
    while ranges:
        start, stop = ranges.pop()
        if stop - start == 1 or ends[stop] - ends[start] <= most:
            windows.append(slice(start, stop))
            continue
        cut = start + 1 + int(hashes[start + 1 : stop].argmin())
        ranges += [(cut, stop), (start, cut)]  # the last is taken first: windows come in order
    return windows
