"""Notes on the runs of a store: a small file per run, written by the run's own process.

They are under DAGSTER_HOME, and can be read without importing Dagster, which takes 2 s. Beside the
note is a lock that the process holds until it ends: if it is free, the process is gone.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec

from resources.dagster_home import INSTANCE_FILE, dagster_home, records_folder, write_record
from resources.engine.cost import Usage
from resources.runs.run_lock import close, release, try_take
from resources.settings.pipeline import Settings
from resources.store.inventory import NOTES
from resources.store.records import fingerprint_of, to_json

MOST_NOTES = 50
BUILD, MIX = "build_corpus", "mix_corpus"  # the jobs of all sources, and of all phases
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

State = Literal["waiting", "running", "success", "failure", "canceled", "lost"]
RUNNING: tuple[State, ...] = ("waiting", "running")


class StepFault(msgspec.Struct, frozen=True):
    """The first line of the error of a failed step."""

    step: str
    error: str


class RunNote(msgspec.Struct, frozen=True):
    """A run: its process, its steps in order, the current ones, how it ended, what it has used."""

    run_id: str
    job: str
    pid: int
    host: str
    boot: str
    started: float
    steps: tuple[str, ...]
    partitions: tuple[str, ...]
    current: tuple[str, ...] = ()
    state: State = "running"
    waits_for: str = ""
    ended: float | None = None
    faults: tuple[StepFault, ...] = ()
    failed_sources: dict[str, dict[str, str]] = {}  # reason by stage and source
    drifts: tuple[str, ...] = ()
    used: Usage = msgspec.field(default_factory=Usage)
    versions: dict[str, str] = {}  # of the stages' code and settings
    settings: str = ""  # see `digest_of`
    unchanged_at: float = 0.0  # when a build last found nothing new since this run

    def is_like(self, other: RunNote) -> bool:
        """Return whether a run has the same steps and partitions as another."""
        return (self.steps, self.partitions) == (other.steps, other.partitions)


def digest_of(settings: Settings) -> str:
    """Return a digest of all settings, and of what says where Dagster's records are."""
    instance = dagster_home() / INSTANCE_FILE
    records = instance.read_text(encoding="utf-8") if instance.exists() else ""
    return fingerprint_of(settings.model_dump(mode="json"), records)


class OpenNote:
    """The note of a run of this process, whose lock is held until the process ends."""

    def __init__(self, store: Path, note: RunNote) -> None:
        """Write a note; `store` is the folder on which the run works."""
        self.store = store
        folder = notes_folder(store)
        folder.mkdir(parents=True, exist_ok=True)
        remove_old(folder)
        self.lock = try_take(lock_path(folder, note.run_id))
        self.note = change_note(store, note)

    def change(self, **fields: Any) -> None:
        """Write the note again with other values of some fields."""
        self.note = change_note(self.store, self.note, **fields)

    def close(self) -> None:
        """Give the lock up before the process ends, for one of many runs of it."""
        if self.lock is not None:
            close(self.lock)


def change_note(store: Path, note: RunNote, **fields: Any) -> RunNote:
    """Write a note with other values of some fields, in one move; return it."""
    changed = msgspec.structs.replace(note, **fields)
    write_record(notes_folder(store) / f"{note.run_id}.json", to_json(changed))
    return changed


def new_note(run_id: str, job: str, steps: tuple[str, ...], partitions: tuple[str, ...]) -> RunNote:
    """Return the note of a run that begins in this process."""
    host, boot = socket.gethostname(), BOOT_ID.read_text().strip()
    return RunNote(run_id, job, os.getpid(), host, boot, time.time(), steps, partitions)


def notes_folder(store: Path) -> Path:
    """Return the folder of the notes on a store's runs."""
    return records_folder(store) / NOTES


def lock_path(folder: Path, run_id: str) -> Path:
    """Return the path of the lock that a run's process holds."""
    return folder / f"{run_id}.lock"


def read_notes(store: Path) -> list[RunNote]:
    """Return the notes on a store's runs, the newest first."""
    found = (read_note(path) for path in notes_folder(store).glob("[!.]*.json"))
    return sorted((note for note in found if note), key=lambda note: -note.started)


def own_note(store: Path, start: float) -> RunNote | None:
    """Return the note of the newest run of this process since a time, None if there is none."""
    here = (os.getpid(), socket.gethostname(), BOOT_ID.read_text().strip())
    own = (note for note in read_notes(store) if (note.pid, note.host, note.boot) == here)
    return next((note for note in own if note.started >= start), None)


def read_note(path: Path) -> RunNote | None:
    """Return a note, None if it has just been removed or is of another version."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunNote)
    except (OSError, msgspec.MsgspecError):
        return None


@contextmanager
def judging(store: Path, note: RunNote) -> Iterator[bool]:
    """Yield whether a run's process is provably gone; if so, no other process judges it meanwhile.

    Afterwards, without an exception, the run is not judged again.
    """
    path = lock_path(notes_folder(store), note.run_id)
    lock = try_take(path) if path.exists() and can_judge(note) else None
    if lock is None:
        yield False
        return
    try:
        yield True
    except BaseException:
        close(lock)
        raise
    release(path, lock)


def is_gone(store: Path, note: RunNote) -> bool:
    """Return whether a run's process is provably gone, and the run not judged yet."""
    path = lock_path(notes_folder(store), note.run_id)
    lock = try_take(path) if path.exists() and can_judge(note) else None
    if lock is not None:
        close(lock)
    return lock is not None


def can_judge(note: RunNote) -> bool:
    """Return whether a free lock proves that a run's process is gone.

    It does under the same kernel, or on a machine of the same name that has been started again.
    """
    return note.boot == BOOT_ID.read_text().strip() or note.host == socket.gethostname()


def remove_old(folder: Path) -> None:
    """Remove the oldest notes beyond the limit."""
    paths = sorted(folder.glob("[!.]*.json"), key=lambda path: path.stat().st_mtime)
    for path in paths[: -(MOST_NOTES - 1)]:
        for suffix in (".json", ".lock", ".told"):
            path.with_suffix(suffix).unlink(missing_ok=True)
