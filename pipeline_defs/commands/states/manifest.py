"""`corpus states manifest`: print a manifest of a partition, indented, or list the newest of all.

On disk a manifest is one line, since those of 100,000 parts are read and written by every run.
"""

from __future__ import annotations

import sys
from typing import Annotated

import msgspec
from cyclopts import Parameter

from pipeline_defs.commands.terminal import Positive, say
from pipeline_defs.load_corpus import load_corpus
from resources.errors import UsageError
from resources.store.records import Manifest, to_json
from resources.store.store import Partition, Store


def manifest(
    stage: Annotated[str | None, Parameter(help="Stage, such as filtered.")] = None,
    partition: Annotated[str, Parameter(help="Source or phase; all for other stages.")] = "all",
    /,
    *,
    number: Annotated[Positive | None, Parameter(help="Its number; the newest without.")] = None,
    parts: Annotated[Positive | None, Parameter(help="Only so many parts, from the first.")] = None,
) -> int:
    """Print a manifest as indented JSON, or list the newest of every partition."""
    store = load_corpus().store
    if stage is None:
        for folder in store.partitions():
            say(f"{folder.stage} {folder.name}: {folder.manifest_numbers()[-1]}")
        return 0
    found = chosen(store, store.partition(stage, partition), number)
    if parts is not None:
        found = msgspec.structs.replace(found, parts=found.parts[:parts])
    sys.stdout.write(to_json(found).decode())
    return 0


def chosen(store: Store, folder: Partition, number: int | None) -> Manifest:
    """Return the manifest of a number, or the newest; an error names those that are kept."""
    if number is None:
        return store.newest(folder.stage, folder.name)
    numbers = folder.manifest_numbers()
    if number not in numbers:
        kept = ", ".join(map(str, numbers)) or "none"
        raise UsageError(
            f"{folder.stage}[{folder.name}] has no manifest {number}; kept are: {kept}. Name one "
            "of these, or leave out --number."
        )
    return folder.read_manifest(number)
