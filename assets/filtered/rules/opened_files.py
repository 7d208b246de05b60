"""The files that a function opens.

Python tells a hook of every file that it opens itself, on any thread, and never takes the hook
back: call this in a process of its own. What Polars opens it is not told.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from glob import glob
from typing import Any

import polars as pl


def opened_files(work: Callable[[], object]) -> list[str]:
    """Call a function; return the paths of files that Python or Polars opened meanwhile, sorted."""
    opened = set[str]()

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
            folder, name = os.path.split(os.path.abspath(os.fsdecode(arguments[0])))
            if os.path.basename(folder) == "__pycache__":  # a module, compiled
                folder, name = os.path.dirname(folder), f"{name.partition('.')[0]}.py"
            opened.add(os.path.join(folder, name))

    sys.addaudithook(note)
    for name in dir(pl):
        if name.startswith(("read_", "scan_")):
            setattr(pl, name, _audited(getattr(pl, name)))
    work()
    return sorted(opened)


def _audited(read: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reader of Polars that tells hooks of the files it is given."""

    def audited(*arguments: Any, **options: Any) -> Any:
        source = arguments[0] if arguments else options.get("source")
        for place in source if isinstance(source, list) else [source]:
            for path in [place, *(glob(place) if isinstance(place, str) else ())]:
                sys.audit("open", path, "r", 0)
        return read(*arguments, **options)

    return audited
