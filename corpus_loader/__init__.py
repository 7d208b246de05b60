"""The training side: read a mixed corpus, in one order for any number of ranks.

Names are imported at their first use: who needs one light module, as
`corpus_loader.places.url_secrets`, does not wait 0.2 s for numpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from corpus_loader.batch import Batch, Documents
    from corpus_loader.loader import CorpusLoader, LoaderStats
    from corpus_loader.places.errors import CorpusError
    from corpus_loader.reader import LoaderOptions

__all__ = ["Batch", "CorpusError", "CorpusLoader", "Documents", "LoaderOptions", "LoaderStats"]
MODULES = {
    "Batch": "batch",
    "CorpusError": "places.errors",
    "CorpusLoader": "loader",
    "Documents": "batch",
    "LoaderOptions": "reader",
    "LoaderStats": "loader",
}

if not TYPE_CHECKING:  # a type checker would take every name for one of the module

    def __getattr__(name: str) -> object:
        """Import a name from its module."""
        if name not in MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)
