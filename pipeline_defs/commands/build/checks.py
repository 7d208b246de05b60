"""Checks that run at the same time and have WAIT_SECONDS: a dead disk is one of the faults."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from corpus_loader.places.transports import RETRY_VARIABLE
from corpus_loader.places.url_secrets import masked

WAIT_SECONDS = 20.0
RETRY_SECONDS = "2"  # of requests: a build is patient, a look is not
Check = Callable[[], str]  # returns a fact, or raises


class Remark(Exception):
    """Something that may fail later: a warning. Any other error of a check is a fault."""


class Finding(msgspec.Struct, frozen=True):
    """The outcome of a check: ok, warning or fault; the fact, and what to do."""

    check: str
    state: str
    text: str


def run_checks(checks: dict[str, Check]) -> list[Finding]:
    """Run checks at the same time; one without an answer in WAIT_SECONDS is a fault."""
    found: dict[str, tuple[str, str]] = {}

    def look(name: str, check: Check) -> None:
        try:
            found[name] = "ok", check()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
            text = " ".join(str(error).split()) or type(error).__name__
            found[name] = "warning" if isinstance(error, Remark) else "fault", masked(text)

    threads = [threading.Thread(target=look, args=each, daemon=True) for each in checks.items()]
    for thread in threads:
        thread.start()
    until = time.monotonic() + WAIT_SECONDS
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    late = "fault", f"no answer in {WAIT_SECONDS:g} s. Check the network, or the disk behind it."
    return [Finding(name, *found.get(name, late)) for name in checks]


@contextmanager
def brief_retries() -> Iterator[None]:
    """Repeat requests for RETRY_SECONDS, unless the environment says for how long."""
    given = os.environ.get(RETRY_VARIABLE)
    os.environ[RETRY_VARIABLE] = given or RETRY_SECONDS
    try:
        yield
    finally:
        if not given:
            os.environ.pop(RETRY_VARIABLE, None)
