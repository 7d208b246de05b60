"""States of many sources for a stage that reads all of them, without those that have none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from resources.store.store import StoreError

State = TypeVar("State")


def usable_states(
    names: Iterable[str], read: Callable[[str], State]
) -> tuple[dict[str, State], dict[str, str]]:
    """Read the state of each source: (states, reasons of those that are left out), by source.

    Raises StoreError if every source is left out.
    """
    states: dict[str, State] = {}
    left_out: dict[str, str] = {}
    for name in names:
        try:
            states[name] = read(name)
        except StoreError as error:
            left_out[name] = str(error)
    if left_out and not states:
        raise StoreError("\n".join(left_out.values()))
    return states, left_out
