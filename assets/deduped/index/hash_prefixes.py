"""Cut sorted keys into ranges by the first bits of their hash."""

from __future__ import annotations

TASK_BYTES_PER_ENTRY = 224  # twice the measured peak: arrays below 32 MB stay in the heap


MAX_PREFIX_BITS = 12


def prefix_bits_for(entries: int, memory_bytes: int) -> int:
    """Return the bits of the key that cut a segment into files, so that four fit the memory."""
    files = max(1, -(-entries * TASK_BYTES_PER_ENTRY * 4 // memory_bytes))
    return min(MAX_PREFIX_BITS, (files - 1).bit_length())


def keys_with_prefix(prefix: int, prefix_bits: int) -> tuple[int, int]:
    """Return the first and the last key, 64 bits, that begin with a prefix."""
    width = 64 - prefix_bits
    return prefix << width, (prefix + 1 << width) - 1
