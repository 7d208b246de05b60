"""Checks in the background: done once each, told at once, never waited for at exit."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from corpus_loader.places.files import Checks


def fail(message: str) -> None:
    """A check that finds something."""
    raise RuntimeError(message)


def test_every_check_is_run_once_and_no_thread_stays() -> None:
    checks, done = Checks(), []
    for number in range(50):
        checks.add(number, lambda number=number: done.append(number))  # type: ignore[misc]

    checks.finish()

    assert sorted(done) == list(range(50))
    assert not checks.open
    assert not any(thread.is_alive() for thread in checks.threads)


def test_finish_waits_for_what_is_running() -> None:
    checks, begun = Checks(), threading.Event()
    checks.add(0, lambda: begun.set() or time.sleep(0.05) or fail("late"))  # type: ignore[func-returns-value]
    begun.wait()

    with pytest.raises(RuntimeError, match="late"):
        checks.finish()


def test_what_a_check_found_is_raised_from_then_on() -> None:
    checks = Checks()
    checks.look()
    checks.add("a", lambda: fail("damaged"))

    for again in (checks.finish, checks.look, checks.finish):
        with pytest.raises(RuntimeError, match="damaged"):
            again()


def test_a_process_that_was_forked_off_does_what_its_parent_has_not_done() -> None:
    checks, gate, parent = Checks(), threading.Event(), os.getpid()
    for number in range(4):  # two are running in the parent, two are waiting
        checks.add(number, lambda: gate.wait() if os.getpid() == parent else fail("mine"))

    child = os.fork()
    if not child:
        with suppress(RuntimeError):
            checks.finish()
        os._exit(len(checks.faults) * 10 + len(checks.open))
    gate.set()
    checks.finish()

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 40


def test_nobody_waits_for_a_check_at_exit() -> None:
    code = (
        "import time; from corpus_loader.places.files import Checks; "
        "Checks().add(0, lambda: time.sleep(60))"
    )

    subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=True, timeout=20
    )
