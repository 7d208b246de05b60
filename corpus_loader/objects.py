"""Bytes of a corpus in an object store, by obstore (the extra `remote`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from corpus_loader.errors import CorpusError
from corpus_loader.transports import BLOCK_BYTES, Interrupted

# Of obstore itself, besides ours: by its default of 10 in 3 minutes, a server that never answers
# would be named after a quarter of an hour.
RETRIES: Any = {"max_retries": 1, "retry_timeout": timedelta(seconds=30)}
used_by: list[int] = []  # the process that used obstore first, if any


def check_process() -> None:
    """CorpusError in a fork of a process that used obstore: its threads are not there.

    A request would wait for them for ever.
    """
    if not used_by:
        used_by.append(os.getpid())
    if used_by[0] != os.getpid():
        raise CorpusError(
            "this process was forked from one that reads object storage (s3, gs, az), which does "
            "not survive that. Start workers anew: DataLoader(multiprocessing_context='spawn')."
        )


class ObjectTransport:
    """Objects under an s3://, gs:// or az:// URL; keys and regions come from the environment."""

    def __init__(self, url: str) -> None:
        try:
            import obstore
            import obstore.exceptions as errors
            from obstore.store import from_url
        except ImportError:
            raise CorpusError(
                f"{url!r} needs the package obstore: pip install 'tokenmill[remote]', or copy the "
                "corpus to a local disk."
            ) from None
        self.url = url
        self.obstore = obstore
        self.errors = errors
        check_process()
        try:
            self.store = from_url(url, retry_config=RETRIES)
        except (errors.BaseError, ValueError) as error:
            raise CorpusError(
                f"{url!r} is no place of a corpus ({error}). Give a folder, or a URL that begins "
                "with http, https, file, s3, gs or az."
            ) from None

    def __reduce__(self) -> tuple[type[ObjectTransport], tuple[str]]:
        """A copy in another process connects by itself: modules and clients cannot be sent."""
        return ObjectTransport, (self.url,)

    def blocks(self, name: str, start: int) -> Iterator[bytes]:
        """The bytes of an object from `start` on."""
        check_process()
        options = {"range": {"offset": start}} if start else None
        try:
            found = self.obstore.get(self.store, name, options=options)
            for block in found.stream(min_chunk_size=BLOCK_BYTES):
                yield bytes(block)
        except (FileNotFoundError, self.errors.NotFoundError) as error:
            raise FileNotFoundError(f"{name}: {error}") from None
        except (self.errors.PermissionDeniedError, self.errors.UnauthenticatedError) as error:
            raise CorpusError(f"{name} may not be read: {error}. Check the keys.") from None
        except self.errors.BaseError as error:
            raise Interrupted(f"{name}: {error}") from error

    def names(self, folder: str) -> list[str] | None:
        """Names of objects and folders in a folder."""
        check_process()
        try:
            found = self.obstore.list_with_delimiter(self.store, f"{folder}/")
        except self.errors.BaseError as error:
            raise CorpusError(f"{folder} cannot be listed: {error}") from error
        paths = [each["path"] for each in found["objects"]] + list(found["common_prefixes"])
        return sorted(path.rstrip("/").rsplit("/", 1)[-1] for path in paths)
