"""Runs of sorted entries that a newer run absorbs: segments of an index, generations of sequences.

As in Bentley and Saxe 1980, "Decomposable searching problems": the number of runs grows with the
logarithm of the entries, and so does the number of times that an entry is rewritten.
"""

from collections.abc import Sequence


def absorbed_from(live_entries: Sequence[int], new_entries: int) -> int:
    """Return the number of runs that stay; the new run absorbs those after them.

    `live_entries` counts each run's entries, oldest first. A run with at most twice as many entries
    as all that follow it is absorbed: sizes at least halve from one run to the next.
    """
    staying = len(live_entries)
    while staying and live_entries[staying - 1] <= 2 * new_entries:
        staying -= 1
        new_entries += live_entries[staying]
    return staying
