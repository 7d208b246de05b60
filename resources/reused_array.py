"""Memory that a thread uses again and again.

An array of many megabytes is given back to the system when it is freed, and its successor gets
pages that the kernel must find and clear first: that takes longer than copying tokens to them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

NewArray = Callable[[int, np.dtype[Any]], NDArray[Any]]  # of a size and a type: `np.empty`, or ours


class Memory(threading.local):
    """Bytes of one thread."""

    content = np.empty(0, np.uint8)


MEMORY = Memory()


def reused_array(size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array of arbitrary values, which the thread's next call overwrites."""
    num_bytes = size * dtype.itemsize
    if MEMORY.content.size < num_bytes:
        MEMORY.content = np.empty(num_bytes, np.uint8)
    return MEMORY.content[:num_bytes].view(dtype)
