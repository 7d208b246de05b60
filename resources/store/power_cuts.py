"""Tell whether the machine was started again since the last writer of a partition.

Parts are not flushed one by one. While the machine runs, the kernel has them, whatever happens to
the process; a power cut may leave a record without the content of its files. The lock file of a
partition therefore holds the boot in which its writers work.
"""

from __future__ import annotations

import os
from io import BufferedRandom
from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

Lock = BufferedRandom


def boot_before(lock: Lock) -> bool:
    """Return whether the last writer worked in this boot of the machine."""
    lock.seek(0)
    return lock.read() == BOOT_ID.read_bytes()


def note_boot(lock: Lock) -> None:
    """Keep the boot of the machine in the lock file, on disk before any part is written."""
    lock.truncate(0)
    lock.write(BOOT_ID.read_bytes())
    lock.flush()
    os.fsync(lock.fileno())
