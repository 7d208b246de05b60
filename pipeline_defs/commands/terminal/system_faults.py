"""Errors of the system that no verb expects: path, machine and next step, in one line."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

from pipeline_defs.commands.terminal.output import ONE_LINE
from pipeline_defs.load_corpus import load_corpus
from resources.engine.system_errors import (
    CONTINUES,
    WAYS,
    SystemFault,
    errno_of,
    explain,
    is_final,
    named_path,
    path_kind,
)

LINE_END = "\n"


def system_fault(error: BaseException) -> str | None:
    """Return an error of the system in words; None if it is another one."""
    if isinstance(error, SystemFault):
        return str(error)
    number, path = errno_of(error), named_path(error)
    if number is None:
        return None
    store: Path | None = None
    with suppress(Exception):  # the config may be what cannot be read
        store = load_corpus().store.root
    if is_final(number):
        fact = "" if isinstance(error, OSError) else f"{str(error).partition(LINE_END)[0]}. "
        return f"{fact}{explain(error, number, store).sentence()}".translate(ONE_LINE)
    if not path:
        return None
    remedy = f"Correct the path{WAYS.get(path_kind(path, store), '')}"
    return f"{os.strerror(number)}: {path} on {socket.gethostname()}. {remedy}, {CONTINUES}"
