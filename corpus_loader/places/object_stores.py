"""The clients of object stores, by the scheme of a URL."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from corpus_loader.places.urls import Url

if TYPE_CHECKING:
    from corpus_loader.places.objects import Objects

OBSTORE = "corpus_loader.places.objects:Objects"
OBJECT_STORES = {  # the class of a client, which is imported when a URL is opened
    "s3": OBSTORE,
    "gs": OBSTORE,
    "az": OBSTORE,
}


def open_objects(url: str) -> Objects:
    """Return the client for a URL; CorpusError if it cannot be opened, or no scheme is known."""
    module, _, name = OBJECT_STORES.get(Url(url).scheme, OBSTORE).partition(":")
    client: Objects = getattr(import_module(module), name)(url)
    return client
