"""DAGSTER_HOME: the folder of Dagster's records, and of ours about runs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from resources.store.records import fingerprint_of

HOME_VARIABLE = "DAGSTER_HOME"
SHIPPED = Path(__file__).resolve().parent.parent / ".dagster"
INSTANCE_FILE = "dagster.yaml"


def dagster_home() -> Path:
    """Return $DAGSTER_HOME, or .dagster beside the packages."""
    return Path(os.environ.get(HOME_VARIABLE) or SHIPPED)


def prepare_home() -> Path:
    """Set and make DAGSTER_HOME, with our dagster.yaml if it has none; return it.

    Without that file Dagster monitors and retries no runs. Every command that starts Dagster calls
    this first: Dagster and other processes then find the folder by the variable.
    """
    home = dagster_home().absolute()
    home.mkdir(parents=True, exist_ok=True)
    if not (home / INSTANCE_FILE).exists():
        shutil.copy(SHIPPED / INSTANCE_FILE, home / INSTANCE_FILE)
    os.environ[HOME_VARIABLE] = str(home)
    return home


def records_folder(store: Path) -> Path:
    """Return the folder of our records about the runs on a store."""
    return dagster_home() / "tokenmill_runs" / fingerprint_of(str(store.resolve()))[:12]


def tables_folder(store: Path) -> Path:
    """Return the folder of what is known of the main tables of a store."""
    return records_folder(store) / "tables"


def write_record(path: Path, content: bytes) -> None:
    """Write a file of our records, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.replace(path)
