"""Files of the store as later stages read them: compared with their hash before they are used.

Parquet and Arrow let most flipped bits through, and an array all of them: what is computed from a
damaged file would be published as if it were right. A task therefore gets `PublishedFile`s, whose
path is available through `checked()`. A file is hashed once per process; xxh3 reads 10 to 18 GB/s
from the page cache. Of a large array, of which a run may need little, only the blocks that are read
are compared.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpus_loader.places.files import FileState, state_of
from resources.store.disk import BLOCK_BYTES, block_digest, xxh3_of
from resources.store.mapped_files import map_array
from resources.store.medium import medium_of
from resources.store.records import DamagedFileError
from resources.store.scratch import place_of, scratch_of

DIGEST_HEX = 16  # of a block: 64 bits find damage as well as 128, and forgery is not looked for
COPIED_AT_ONCE = 256  # files that are copied before the first of them is used
CHECKED_FILES = 1 << 18  # remembered by a process, 300 bytes each
CHECKED_BLOCKS = 1 << 18  # 1 TB


@dataclass(frozen=True)
class PublishedFile:
    """A published file and its hashes; `blocks` holds one per BLOCK_BYTES, or is empty."""

    unchecked_path: Path
    bytes: int
    xxh3: str
    blocks: str = ""

    def checked(self) -> Path:
        """Return the path of the file, whose content is as published; else DamagedFileError."""
        path = self.unchecked_path
        try:
            compare_file(path, self.xxh3, self.state())
        except DamagedFileError:
            if scratch_of(path.parent) is None:
                raise
            path.unlink(missing_ok=True)  # the copy may be damaged where the object is not
            compare_file(path, self.xxh3, self.state())
        return path

    def brought(self) -> Path:
        """Return the path of the file, copied there if it is an object, and not compared."""
        path = self.unchecked_path
        if not medium_of(path.parent).bring(path):
            raise damaged(path, "is missing")
        return path

    def seen_from(self, folder: Path) -> str:
        """Return the path from a folder of the store, which stays right when the store moves."""
        return os.path.relpath(self.unchecked_path, folder)

    def state(self) -> FileState:
        """Return what tells a changed file; DamagedFileError if its size is wrong."""
        is_copy = scratch_of(self.unchecked_path.parent) is not None
        try:
            status = (self.brought() if is_copy else self.unchecked_path).stat()
        except FileNotFoundError:
            raise damaged(self.unchecked_path, "is missing") from None
        state = state_of(status)
        if state.bytes != self.bytes:
            what = f"has {state.bytes:,} bytes, where {self.bytes:,} were published"
            raise damaged(self.unchecked_path, what)
        return state._replace(changed_ns=0) if is_copy else state  # a use of a copy changes it

    def check_blocks(self, numbers: NDArray[np.int64]) -> None:
        """Compare some blocks with their hashes; all of the file if it has none."""
        if not self.blocks:
            self.checked()
            return
        state = self.state()
        for number in numbers.tolist():
            expected = self.blocks[DIGEST_HEX * number : DIGEST_HEX * (number + 1)]
            compare_block(self.unchecked_path, number, expected, state)


def copied_ahead(files: Sequence[PublishedFile]) -> Iterator[PublishedFile]:
    """Yield files, which are copied here if they are objects: many at a time.

    One after the other, those of the 390,625 parts of 100 TB took 16 hours.
    """
    for start in range(0, len(files), COPIED_AT_ONCE):
        some = files[start : start + COPIED_AT_ONCE]
        medium_of(some[0].unchecked_path.parent).each(PublishedFile.brought, some)
        yield from some


def as_it_is(path: Path) -> PublishedFile:
    """Return a file that no part names, with its hash of now."""
    return PublishedFile(path, path.stat().st_size, xxh3_of(path))


@dataclass(frozen=True)
class PublishedArray:
    """An array in a published file: `count` values from byte `offset` on.

    `mapped` is not checked: look for places in it, then read what is there with `read`.
    """

    file: PublishedFile
    dtype: type[np.generic]
    count: int
    offset: int = 0

    @property
    def mapped(self) -> NDArray[Any]:
        """The array, mapped into memory and not checked."""
        return map_array(self.file.brought(), self.dtype, (self.count,), self.offset)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return some values; they and their neighbours are checked.

        The neighbours prove that places found by bisection are right.
        """
        self.check(np.array([start]), np.array([stop]))
        return self.mapped[start:stop]

    def check(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> None:
        """Compare the blocks with the values `starts[i]` to `stops[i]` and their neighbours."""
        if self.count:
            width = np.dtype(self.dtype).itemsize
            first = self.offset + width * np.maximum(starts - 1, 0)
            last = self.offset + width * np.minimum(stops + 1, self.count) - 1
            self.file.check_blocks(touched_blocks(first, last, self.file.bytes))


def touched_blocks(
    first: NDArray[np.int64], last: NDArray[np.int64], num_bytes: int
) -> NDArray[np.int64]:
    """Return the numbers of the blocks that hold the bytes `first[i]` to `last[i]`, ascending."""
    changes = np.zeros(-(-num_bytes // BLOCK_BYTES) + 1, np.int64)
    np.add.at(changes, first // BLOCK_BYTES, 1)
    np.add.at(changes, last // BLOCK_BYTES + 1, -1)
    return np.flatnonzero(changes.cumsum()[:-1])


@lru_cache(maxsize=CHECKED_FILES)
def compare_file(path: Path, expected: str, _state: FileState) -> None:
    """Raise DamagedFileError unless a file has the hash; once per process and state of it."""
    found = xxh3_of(path)
    if found != expected:
        raise damaged(path, f"changed since it was published: its xxh3 is {found}, not {expected}")


@lru_cache(maxsize=CHECKED_BLOCKS)
def compare_block(path: Path, number: int, expected: str, _state: FileState) -> None:
    """Raise DamagedFileError unless a block of a file has the hash."""
    with open(path, "rb") as file:
        file.seek(number * BLOCK_BYTES)
        found = block_digest(file.read(BLOCK_BYTES))
    if found != expected:
        what = f"block {number:,} of {BLOCK_BYTES >> 20} MiB has the xxh3 {found}, not {expected}"
        raise damaged(path, f"changed since it was published: {what}")


def damaged(path: Path, what: str) -> DamagedFileError:
    """Return the error of a file that is not as published."""
    return DamagedFileError(
        f"{place_of(path)} {what}. Nothing was made of it. `corpus verify --repair` makes it "
        "again; then run the same command again."
    )
