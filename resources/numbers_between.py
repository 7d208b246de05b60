"""Numbers of ranges, each after the other."""

import numpy as np
from numpy.typing import NDArray


def numbers_between(starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers starts[i] up to stops[i], for each i in turn."""
    counts = stops - starts
    ends = np.cumsum(counts)
    firsts = np.repeat(starts - (ends - counts), counts)
    return np.asarray(np.arange(len(firsts)) + firsts)
