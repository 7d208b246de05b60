"""A process that holds the lock of a store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOLD = ROOT / "tests/runs/hold_lock.py"


@contextmanager
def holder_process(store: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock of a store."""
    process = subprocess.Popen(
        [sys.executable, str(HOLD), str(store), *options],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):  # a test has killed it
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
