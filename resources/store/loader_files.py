"""The files of a store as the loader reads them, also where the store is on an object store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from corpus_loader.places.files import Verify, inside
from corpus_loader.places.local_files import LocalFiles
from resources.store.medium import medium_of


class StoreFiles(LocalFiles):
    """A store by its root; copies of objects are brought when they are asked for."""

    def __init__(self, root: Path, verify: Verify = "first") -> None:
        super().__init__(root, verify)
        self.medium = medium_of(root)

    def read(self, relative: str) -> bytes:
        """The content of a small file; FileNotFoundError if there is none."""
        return self.medium.read(self.root / inside(relative))

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted."""
        return self.medium.names(self.root / inside(folder))

    @contextmanager
    def local_path(self, relative: str, num_bytes: int, sha256: str) -> Iterator[Path]:
        """Provide the file's path; CorpusError if it is missing or not as the mixture says."""
        self.medium.bring(self.root / inside(relative))
        with super().local_path(relative, num_bytes, sha256) as path:
            yield path
