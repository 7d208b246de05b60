"""A stream of bytes over the blocks of a file, for formats whose records say their size."""

from __future__ import annotations

from collections.abc import Iterator

from assets.raw.readers.decompress import BrokenStream, FileFault

STEP_BYTES = 1 << 20


class BlockStream:
    """Stream of bytes over blocks, of which as many are held as were asked for.

    `offset` is the place in the content; `broken` is the reason if the blocks ended early, and
    `head` what is shown for it.
    """

    def __init__(self, blocks: Iterator[bytes], offset: int = 0) -> None:
        self._blocks = blocks
        self._ready = b""
        self._at = 0
        self.offset = offset
        self.broken = FileFault()
        self.head = b""

    def peek(self, num_bytes: int) -> bytes:
        """Return the bytes ahead, `num_bytes` unless the stream ends; take none."""
        if self._at + num_bytes > len(self._ready):
            self._fill(num_bytes)
        return self._ready[self._at : self._at + num_bytes]

    def _fill(self, num_bytes: int) -> None:
        parts = [self._ready[self._at :]]
        size = len(parts[0])
        try:
            while size < num_bytes and (block := next(self._blocks, b"")):
                parts.append(block)
                size += len(block)
        except BrokenStream as error:
            self.broken, self.head = error.reason, error.head
        self._ready, self._at = b"".join(parts), 0

    def take(self, num_bytes: int) -> bytes:
        """Take up to `num_bytes`."""
        taken = self.peek(num_bytes)
        self._at += len(taken)
        self.offset += len(taken)
        return taken

    def skip(self, num_bytes: int) -> int:
        """Drop up to `num_bytes` without holding them; return the number of dropped bytes."""
        skipped = 0
        while skipped < num_bytes and (data := self.take(min(num_bytes - skipped, STEP_BYTES))):
            skipped += len(data)
        return skipped
