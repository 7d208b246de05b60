"""Commands that end at a file-system call, a sample of what `make faults` tries."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]


@pytest.mark.slow
def test_commands_that_end_anywhere_are_given_again() -> None:
    command = [sys.executable, "-m", "faults.crash_points", "--points", "60"]
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    ended = subprocess.run(
        command, cwd=TESTS.parent, env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
