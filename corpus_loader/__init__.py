"""The training side: read a mixed corpus, in one order for any number of ranks."""

from corpus_loader.batch import Batch, Documents
from corpus_loader.errors import CorpusError
from corpus_loader.loader import CorpusLoader
from corpus_loader.reader import LoaderOptions

__all__ = ["Batch", "CorpusError", "CorpusLoader", "Documents", "LoaderOptions"]
