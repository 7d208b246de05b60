"""The corpus as assets see it: its settings and its store; and the tasks that compute its parts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from resources.settings.pipeline import (
    Settings,
)
from resources.store.store import Store


@dataclass(frozen=True)
class Corpus:
    """A corpus: what pipeline.yaml says, and where it lies."""

    settings: Settings
    config: Path
    store: Store

    @property
    def downloads(self) -> Path:
        """Where files of URL sources are kept."""
        return self.store.root / "_downloads"
