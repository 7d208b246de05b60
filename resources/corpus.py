"""The corpus as stages see it: its settings and its store."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from resources.settings.pipeline import Settings
from resources.store.store import Store


@dataclass(frozen=True)
class Corpus:
    """A corpus: the settings of a pipeline.yaml, and the store.

    `behind` are the sources that failed in an earlier stage of the run that uses the corpus: their
    states in different stages may be of different runs. `flags` are those of the stage's flags that
    the run config sets.
    """

    settings: Settings
    config: Path
    store: Store
    behind: frozenset[str] = field(default_factory=frozenset)
    flags: frozenset[str] = field(default_factory=frozenset)

    @property
    def downloads(self) -> Path:
        """Folder of the files of URL sources."""
        return self.store.root / "_downloads"
