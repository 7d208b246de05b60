"""Tokenmill as a library: `open_corpus`, and the steps of a build on frames of your own.

    import tokenmill

    corpus = tokenmill.open_corpus("pipeline.yaml")

docs/notebook.md shows what a corpus gives. Packages that add a reader, rule or shard format import
from `tokenmill.plugins`, which loads nothing of this.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline_defs.notebook import (
        OpenCorpus,
        filter_documents,
        find_duplicates,
        open_corpus,
        tokenize,
    )

__all__ = ["OpenCorpus", "filter_documents", "find_duplicates", "open_corpus", "tokenize"]


def __getattr__(name: str) -> Any:
    """Return a name of `pipeline_defs.notebook`, which is loaded when it is asked for first."""
    if name in __all__:
        return getattr(import_module("pipeline_defs.notebook"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
