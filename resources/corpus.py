"""The corpus as stages see it: its settings and its store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from resources.settings.pipeline import Settings
from resources.store.store import Store


@dataclass(frozen=True)
class Corpus:
    """A corpus: the settings of a pipeline.yaml, and the store."""

    settings: Settings
    config: Path
    store: Store

    @property
    def downloads(self) -> Path:
        """Folder of the files of URL sources."""
        return self.store.root / "_downloads"
