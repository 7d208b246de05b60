"""Let the wall clock of a Python process jump by up to a day, back and forth."""

import itertools
import time

DAY = 86_400
REAL = time.time_ns
JUMPS = itertools.cycle((0, DAY, -DAY, 3600, -3600, 1, -1))


def jumping_ns() -> int:
    """Return the time in nanoseconds, some jump away from the right one."""
    return REAL() + next(JUMPS) * 1_000_000_000


time.time_ns = jumping_ns
time.time = lambda: jumping_ns() / 1e9
