"""The corpus as stages see it: its settings and its store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from resources.settings.pipeline import Settings
from resources.store.named_states import Rollback
from resources.store.records import DOWNLOADS
from resources.store.store import Store

Found = TypeVar("Found")


@dataclass(frozen=True)
class Corpus:
    """A corpus: the settings of a pipeline.yaml, and the store.

    `behind` are the sources that failed in an earlier stage of the run that uses the corpus, and
    those that are rolled back: their states in different stages may be of different runs.
    `rollbacks` has these by source. `flags` are those of the stage's flags that the run config
    sets. `shared` has what the plans, or the conclusions, of a step share (see `once`).
    """

    settings: Settings
    config: Path
    store: Store
    behind: frozenset[str] = field(default_factory=frozenset)
    flags: frozenset[str] = field(default_factory=frozenset)
    rollbacks: Mapping[str, Rollback] = field(default_factory=dict)
    shared: dict[str, Any] | None = field(default=None, compare=False)

    def once(self, name: str, read: Callable[[], Found]) -> Found:
        """Return what is read once for all plans or conclusions of a step, by its name."""
        known = {} if self.shared is None else self.shared
        if name not in known:
            known[name] = read()
        found: Found = known[name]
        return found

    @property
    def downloads(self) -> Path:
        """Folder of the files of URL sources."""
        return self.store.root / DOWNLOADS


def stops_on_error(corpus: Corpus) -> bool:
    """Return whether the error of one source ends the work on all."""
    return corpus.settings.on_source_error == "stop"
