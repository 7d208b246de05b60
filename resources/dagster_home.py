"""DAGSTER_HOME: the folder of Dagster's records, and of ours about runs.

Assets and partitions of two corpora have the same names: in one home, the records of one would take
the place of the other's. So the SQLite records of a home are of one store: that of the newest run
which began in it, as a file there says. The file names the home, too: a copied home is free.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

from resources.errors import UsageError
from resources.settings.pipeline import config_path
from resources.store.disk import write_temporary
from resources.store.inventory import RUNS
from resources.store.records import fingerprint_of, to_json
from resources.store.scratch import place_of

HOME_VARIABLE = "DAGSTER_HOME"
FOLDER = ".dagster"
INSTANCE_FILE = "dagster.yaml"
PROJECT = Path(__file__).with_name("project")  # files of a new project: links, copies in a wheel
SHIPPED = PROJECT / INSTANCE_FILE
OTHER_RECORDS = re.compile(r"^(run_)?storage:", re.MULTILINE)  # in dagster.yaml: not these files
STORE_FILE = "tokenmill_store.json"  # in the home: the store that its records are of
STORE_TAG = "tokenmill/store"  # of a run


def default_home() -> Path:
    """Return .dagster beside pipeline.yaml."""
    return config_path().parent / FOLDER


def dagster_home() -> Path:
    """Return $DAGSTER_HOME, or the default."""
    return Path(os.environ.get(HOME_VARIABLE) or default_home())


def prepare_home(store: Path | None = None) -> Path:
    """Set and make DAGSTER_HOME, with our dagster.yaml if it has none; return it.

    Without that file Dagster monitors and retries no runs. Every command that starts Dagster calls
    this first: Dagster and other processes then find the folder by the variable. With the store on
    which something will run, a home of another one is refused.
    """
    home = dagster_home().absolute()
    os.environ[HOME_VARIABLE] = str(home)  # an error of the next line says so
    home.mkdir(parents=True, exist_ok=True)
    if not (home / INSTANCE_FILE).exists():
        shutil.copy(SHIPPED, home / INSTANCE_FILE)
    if store is not None:
        refuse_other_store(store)
    return home


def refuse_other_store(store: Path) -> None:
    """Raise UsageError if the records in $DAGSTER_HOME are of another store, which still exists.

    Without the variable Dagster's records are in a temporary folder, of one command.
    """
    if not os.environ.get(HOME_VARIABLE):
        return
    home = dagster_home().absolute()
    other = store_of_records(home.resolve())
    if other is None or not os.path.exists(other):  # also where it may not be looked at
        return
    here, there = (place_of(each.resolve()) for each in (store, other))
    if here == there:
        return
    free = default_home()
    if free.resolve() == home.resolve():
        free = home.with_name(f"{home.name}_{store.name}")
    raise UsageError(
        f"{home} has Dagster's records of another store, {there}: those of {here} would replace "
        f"them. Set {HOME_VARIABLE} to a folder for {here} alone, such as {free}. If {there} is no "
        f"longer in use, rename {other} instead."
    )


def store_of_records(home: Path) -> Path | None:
    """Return the store that the SQLite records of a home are of, None if it is free."""
    instance, noted = home / INSTANCE_FILE, home / STORE_FILE
    if instance.is_file() and OTHER_RECORDS.search(instance.read_text("utf-8", "replace")):
        return None  # in PostgreSQL, where stores may share records
    if not noted.is_file():
        return None
    owner = json.loads(noted.read_bytes())
    return Path(owner["store"]) if owner["home"] == str(home) else None


def note_store(store: Path) -> None:
    """Note in the home that its records are of this store, as every run that begins does."""
    home = dagster_home().resolve()
    write_record(home / STORE_FILE, to_json({"home": str(home), "store": str(store)}))


def records_folder(store: Path) -> Path:
    """Return the folder of our records about the runs on a store."""
    return dagster_home() / RUNS / fingerprint_of(str(store.resolve()))[:12]


def tables_folder(store: Path) -> Path:
    """Return the folder of what is known of the main tables of a store."""
    return records_folder(store) / "tables"


def write_record(path: Path, content: bytes) -> None:
    """Write a file of our records, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    os.replace(write_temporary(path.parent, path.name, content), path)
