"""Array that grows at its end, for values whose number is not known beforehand."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resources.reused_array import NewArray


class GrowingArray:
    """Values of a type, end to end in one buffer.

    The buffer is a `new_array` for the most values expected: pages that are not written take no
    memory. Arrays in a list would have to be joined in the end, which takes their memory twice.
    """

    def __init__(
        self,
        dtype: type[np.unsignedinteger[Any]],
        capacity: int,
        new_array: NewArray = np.empty,
    ) -> None:
        self.buffer: NDArray[Any] = new_array(capacity, np.dtype(dtype))
        self.size = 0

    @property
    def values(self) -> NDArray[Any]:
        """The values so far, not copied."""
        return self.buffer[: self.size]

    def extend(self, values: ArrayLike) -> None:
        """Append values, cast to the type of the array."""
        added = np.asarray(values)
        self.add_room(added.size)[:] = added

    def add_room(self, size: int) -> NDArray[Any]:
        """Append arbitrary values, and return them for the caller to write."""
        start, end = self.size, self.size + size
        if end > self.buffer.size:
            larger = np.empty(2 * end, self.buffer.dtype)
            larger[:start] = self.values
            self.buffer = larger
        self.size = end
        return self.buffer[start:end]

    def truncate(self, size: int) -> None:
        """Forget the values from number `size` on, if there are any."""
        self.size = min(self.size, size)
