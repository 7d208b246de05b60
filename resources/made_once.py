"""Tables that no setting changes: made once per process, or by a run's server for all its forks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeVar

Table = TypeVar("Table")

_makers: list[Callable[[], object]] = []


def made_once(make: Callable[[], Table]) -> Callable[[], Table]:
    """Keep what a function without arguments returns, as `functools.cache` does.

    The server of a run calls it before it forks, so it must compute nothing with Polars, whose
    threads would not survive the fork.
    """
    kept = cache(make)
    _makers.append(kept)
    return kept


def make_tables(package: str) -> None:
    """Make the tables of the imported modules of a package."""
    for make in _makers:
        if f"{make.__module__}.".startswith(f"{package}."):
            make()
