"""Digests of input files: made side by side, and compared again after a file was read.

A file of more than one block also has a digest per block, so that whoever reads a slice of it
proves that slice and not the whole file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import xxhash

from assets.raw.readers.input_file import ChangedFileError, InputFile
from corpus_loader.places.files import state_of
from resources.store.disk import BLOCK_BYTES, block_digest

THREADS = 8  # disks and network disks answer several requests at once
FILES_PER_CALL = 256  # small files cost 15 µs each, as much as a call of a thread
HEX_PER_BLOCK = 16
SINCE = "between planning and reading"
AGAIN = "Build again when nothing writes to it."


class FileStatus(NamedTuple):
    """A file's place, and its FileState: by what it is known not to have changed."""

    place: str
    bytes: int
    written_ns: int
    changed_ns: int
    inode: int


class FileDigest(NamedTuple):
    """Size and digests of a file's bytes, as in InputFile."""

    bytes: int
    digest: str
    blocks: str = ""


def status_of(place: str, status: os.stat_result) -> FileStatus:
    """Return the status of a file of which `status` was asked."""
    return FileStatus(place, *state_of(status))


def digest_file(place: str) -> FileDigest:
    """Read a file for its size and digests."""
    with open(place, "rb") as file:
        block = file.read(BLOCK_BYTES)
        if len(block) < BLOCK_BYTES:
            return FileDigest(len(block), xxhash.xxh3_128_hexdigest(block))
        state, num_bytes, blocks = xxhash.xxh3_128(), 0, list[str]()
        while block:
            state.update(block)
            blocks.append(block_digest(block))
            num_bytes += len(block)
            block = file.read(BLOCK_BYTES)
    is_single = len(blocks) == 1
    return FileDigest(num_bytes, state.hexdigest(), "" if is_single else "".join(blocks))


def digest_files(places: Sequence[str]) -> list[FileDigest]:
    """Read files side by side for their digests; an error is that of the first in order."""
    if len(places) <= 1:
        return [digest_file(place) for place in places]
    calls = [places[i : i + FILES_PER_CALL] for i in range(0, len(places), FILES_PER_CALL)]
    if len(calls) == 1:  # perhaps large ones
        calls = [[place] for place in places]
    with ThreadPoolExecutor(THREADS) as pool:
        found = pool.map(lambda call: [digest_file(place) for place in call], calls)
        return [digest for done in found for digest in done]


def check_unchanged(file: InputFile, spans: Sequence[tuple[int, int]]) -> None:
    """Compare a file that was read with its digests; of a large file only the bytes of `spans`.

    Raises ChangedFileError with its size and digest at planning and now if they differ. Remote
    files were compared with each answer.
    """
    if file.is_remote:
        return
    try:
        is_long = file.blocks and os.stat(file.place).st_size == file.bytes
        if is_long and _has_blocks(file, spans):
            return
        now = digest_file(file.place)
    except FileNotFoundError:
        raise removed(file) from None
    if (now.bytes, now.digest) != (file.bytes, file.digest):
        raise ChangedFileError(
            f"{file.name} has changed {SINCE}: {file.bytes:,} bytes with digest {file.digest} "
            f"then, {now.bytes:,} bytes with digest {now.digest} now. {AGAIN}"
        )


def changed(file: InputFile, now: str) -> ChangedFileError:
    """Return the error of a file that is not the planned one."""
    return ChangedFileError(
        f"{file.name} has changed {SINCE}: {file.bytes:,} bytes then, {now}. {AGAIN}"
    )


def removed(file: InputFile) -> ChangedFileError:
    """Return the error of a file that is gone."""
    return ChangedFileError(f"{file.name} was removed {SINCE}. {AGAIN}")


def _has_blocks(file: InputFile, spans: Sequence[tuple[int, int]]) -> bool:
    last = len(file.blocks) // HEX_PER_BLOCK - 1
    touched = {
        index
        for start, stop in spans
        for index in range(start // BLOCK_BYTES, min(stop // BLOCK_BYTES, last) + 1)
    }
    with open(file.place, "rb") as stream:
        for index in sorted(touched):
            stream.seek(index * BLOCK_BYTES)
            expected = file.blocks[index * HEX_PER_BLOCK : (index + 1) * HEX_PER_BLOCK]
            if block_digest(stream.read(BLOCK_BYTES)) != expected:
                return False
    return True
