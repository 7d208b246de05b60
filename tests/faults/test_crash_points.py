"""Commands that are ended at a file-system call: given again, they leave the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
TESTS = Path(__file__).resolve().parent.parent


def test_sixty_points_lose_nothing_and_leave_nothing_over() -> None:
    """In a process of its own, which has imported all and computed nothing when it forks."""
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])

    done = subprocess.run(
        [sys.executable, "-m", "faults.crash_points", "--points", "60"],
        cwd=TESTS.parent,
        env=os.environ | {"PYTHONPATH": path.rstrip(os.pathsep)},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "push " in done.stdout and " points in " in done.stdout
