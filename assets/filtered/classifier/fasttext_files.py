"""A user's own fastText model, read from its file."""

from functools import cache
from typing import Any


@cache
def load_fasttext(path: str) -> Any:
    """Load a supervised fastText model, plain or quantised, once per process.

    Raises ValueError if the file cannot be opened or is no fastText model.
    """
    import fasttext

    return fasttext.load_model(path)
