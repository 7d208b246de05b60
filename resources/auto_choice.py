"""Choice of `engine.kind: auto`: the work from which processes pay on this machine.

`corpus engines` measures it and keeps it beside the records of runs. It changes no output, so it is
in no config and no fingerprint. A file that is broken is as none: then `map_parts` has a default.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from resources.dagster_home import dagster_home
from resources.settings.engine import EngineConfig


class Measured(msgspec.Struct, frozen=True):
    """Bytes of work from which processes pay, None for never, on a machine with so many cores."""

    cores: int
    process_bytes: int | None


def measured_choice(config: EngineConfig, work_bytes: int) -> EngineConfig:
    """Return the config with what was measured to be faster for this much work, if it is `auto`."""
    if config.kind != "auto" or (measured := read_measured()) is None:
        return config
    limit = measured.process_bytes
    kind = "processes" if limit is not None and work_bytes >= limit else "in_process"
    return config.model_copy(update={"kind": kind})


def read_measured() -> Measured | None:
    """Read what was measured on this machine, None if nothing was on one with as many cores."""
    with suppress(OSError, msgspec.MsgspecError):
        measured = msgspec.json.decode(choice_file().read_bytes(), type=Measured)
        return measured if measured.cores == os.cpu_count() else None
    return None


def keep_measured(process_bytes: int | None) -> Path:
    """Keep a measurement for later runs; return its file."""
    path = choice_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(msgspec.json.encode(Measured(os.cpu_count() or 1, process_bytes)))
    temporary.replace(path)
    return path


def choice_file() -> Path:
    """Return the file of the measurement."""
    return dagster_home() / "tokenmill_runs" / "engines.json"
