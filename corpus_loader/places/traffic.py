"""Requests to object stores that this process sent, and bytes of objects, by URL."""

from __future__ import annotations

import os
from collections import Counter
from threading import Lock

REQUESTS, READ, WRITTEN = "requests", "read", "written"
Traffic = Counter[tuple[str, str]]  # by URL, and one of these
SENT: Traffic = Counter()
GUARD = Lock()


def this_process() -> str:
    """Return a name of this process, by host and number."""
    return f"{os.uname().nodename}:{os.getpid()}"


def count(url: str, kind: str, number: int = 1) -> None:
    """Count requests, or bytes of objects."""
    with GUARD:
        SENT[url, kind] += number
