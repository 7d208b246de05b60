"""Errors of the machine and of Dagster's records that no verb expects, each in one line."""

from __future__ import annotations

import os
import re
import socket
from contextlib import suppress
from pathlib import Path

from pipeline_defs.commands.terminal import ONE_LINE
from pipeline_defs.load_corpus import load_corpus
from resources.engine.system_errors import (
    CONTINUES,
    WAYS,
    SystemFault,
    causes_of,
    errno_of,
    explain,
    is_final,
    named_path,
    path_kind,
)

LINE_END = "\n"
UNSET = re.compile(r'environment variable "(\w+)" which is not set')
CONTINUES_WITH_RECORDS = (
    "What was published is kept. Start the database again, then run the same command: it continues "
    "with what is missing."
)


def system_fault(error: BaseException) -> str | None:
    """Return an error of the system in words: path, machine and next step; None for others."""
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


def records_fault(error: BaseException) -> str | None:
    """Return the fault, with the next step, if an error is one of Dagster's records."""
    text = str(error)
    if unset := UNSET.search(text):
        return (
            f"dagster.yaml in DAGSTER_HOME names the environment variable {unset[1]}, which is not "
            "set. Set it; docs/cluster.md has them all."
        )
    if "module dagster_postgres" in text:
        return (
            "dagster.yaml in DAGSTER_HOME puts Dagster's records into PostgreSQL, and the package "
            "dagster-postgres is not installed. Install it: pip install 'tokenmill[postgres]'"
        )
    causes = (each for each in causes_of(error) if type(each).__module__.startswith("psycopg2"))
    if (cause := next(causes, None)) is None:
        return None
    first = str(cause).partition("\n")[0]
    return f"Dagster's records in PostgreSQL cannot be used: {first}. {CONTINUES_WITH_RECORDS}"
