"""Faults of Dagster's records in PostgreSQL, in words."""

from __future__ import annotations

import re

UNSET = re.compile(r'environment variable "(\w+)" which is not set')
CONTINUES = (
    "What was published is kept. Start the database again, then run the same command: it continues "
    "with what is missing."
)


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
    cause: BaseException | None = error
    while cause is not None and not type(cause).__module__.startswith("psycopg2"):
        cause = cause.__cause__ or cause.__context__
    if cause is None:
        return None
    first = str(cause).partition("\n")[0]
    return f"Dagster's records in PostgreSQL cannot be used: {first}. {CONTINUES}"
