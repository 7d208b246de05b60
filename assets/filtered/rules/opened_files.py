"""The files that a function opens.

Python tells a hook of the files that it opens, on any thread, and never takes the hook back: call
this in a process of its own. Of what Polars opens its readers are made to tell.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from glob import glob
from typing import Any

import polars as pl


def opened_files(work: Callable[[], object]) -> list[str]:
    """Call a function; return the real paths of the files that were opened meanwhile, sorted."""
    opened = set[str]()

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
            folder, name = os.path.split(os.path.realpath(os.fsdecode(arguments[0])))
            if os.path.basename(folder) == "__pycache__":  # a module, compiled
                folder, name = os.path.dirname(folder), f"{name.partition('.')[0]}.py"
            opened.add(os.path.join(folder, name))

    sys.addaudithook(note)
    for name in dir(pl):
        if name.startswith(("read_", "scan_")):
            setattr(pl, name, _telling(getattr(pl, name)))
    work()
    return sorted(path for path in opened if os.path.isfile(path))


def _telling(read: Callable[..., Any]) -> Callable[..., Any]:
    def telling(*arguments: Any, **options: Any) -> Any:
        given = arguments[0] if arguments else options.get("source")
        for each in given if isinstance(given, list) else [given]:
            for path in glob(str(each)):
                sys.audit("open", path)
        return read(*arguments, **options)

    return telling
