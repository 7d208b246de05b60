"""Commands that are ended at a file-system call: given again, they leave the same bytes."""

import pytest
from faults.crash_points import try_in_a_process

pytestmark = pytest.mark.slow


def test_sixty_points_lose_nothing_and_leave_nothing_over() -> None:
    assert try_in_a_process("--points", "60").count(" 0\n") == 9  # commands
