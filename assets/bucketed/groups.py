"""Groups of documents: those of one group are packed with each other only.

A group is a small number per document, 0 for ordinary training. Which documents are in which group
is decided per window, by what the settings ask for; a document is of one group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray


@dataclass(frozen=True)
class Groups:
    """Groups of a window's documents.

    `names` are those of groups 1, 2, ...; `of_documents`, uint8 [n], the group of each document, 0
    for ordinary training.
    """

    names: tuple[str, ...]
    of_documents: NDArray[np.uint8]


@dataclass(frozen=True)
class Grouping:
    """Input of a window: the names of the groups of its source, sorted, and what decides them."""

    names: tuple[str, ...]

    @property
    def made_of(self) -> list[Any]:
        """What the groups of the window depend on, for its fingerprint."""
        return [self.names]

    def groups_of(self, tables: Sequence[pl.DataFrame]) -> Groups:
        """Return the group of each document of all tables (column doc_id)."""
        return Groups(self.names, np.zeros(sum(table.height for table in tables), np.uint8))
