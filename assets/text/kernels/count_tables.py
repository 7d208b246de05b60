"""Tables of the counts that kernels return as matrices."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray


def table_of(numbers: NDArray[Any], names: Iterable[str]) -> pl.DataFrame:
    """Return a table of a matrix [rows, columns].

    Its columns are slices of one: a table of 30 takes 0.1 ms, from the matrix itself 0.4 ms.
    """
    height = len(numbers)
    flat = pl.Series(np.ravel(numbers, order="F"))
    return pl.DataFrame(
        [flat.slice(i * height, height).alias(name) for i, name in enumerate(names)]
    )
