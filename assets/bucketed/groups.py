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

from assets.bucketed.held_out import is_below
from resources.settings.buckets import VALIDATION


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
    """Input of a window: the names of the groups of its source, sorted, and what decides them.

    `share`: the share of documents that is held out.
    """

    names: tuple[str, ...]
    share: float = 0.0

    @property
    def made_of(self) -> list[Any]:
        """What the groups of the window depend on, for its fingerprint."""
        return [self.names, *([self.share] if self.share else [])]

    def groups_of(self, tables: Sequence[pl.DataFrame]) -> Groups:
        """Return the group of each document of all tables (column doc_id)."""
        of_documents = np.zeros(sum(table.height for table in tables), np.uint8)
        if self.share:
            doc_ids = pl.concat([table["doc_id"] for table in tables])
            of_documents[is_below(doc_ids, self.share)] = 1 + self.names.index(VALIDATION)
        return Groups(self.names, of_documents)
