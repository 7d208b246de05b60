"""`corpus states manifest`: print a manifest of a partition, indented, or list the newest of all.

On disk a manifest is one line, since those of 100,000 parts are read and written by every run.
"""

from __future__ import annotations

import sys
from typing import Annotated

import msgspec
import polars as pl
from cyclopts import Parameter

from pipeline_defs.commands.answers import answer
from pipeline_defs.commands.terminal import Json, Positive
from pipeline_defs.load_corpus import load_corpus
from resources.errors import UsageError
from resources.store.records import to_json


def manifest(
    stage: Annotated[str | None, Parameter(help="Stage, such as filtered.")] = None,
    partition: Annotated[str, Parameter(help="Source or phase; all for other stages.")] = "all",
    /,
    *,
    number: Annotated[Positive | None, Parameter(help="Its number; the newest without.")] = None,
    parts: Annotated[Positive | None, Parameter(help="Only so many parts, from the first.")] = None,
    json: Json = False,
) -> int:
    """Print a manifest, always as indented JSON, or list the newest of every partition."""
    store = load_corpus().store
    if stage is None:
        newest = [(p.stage, p.name, p.manifest_numbers()[-1]) for p in store.partitions()]
        frame = pl.DataFrame(newest, ("stage", "partition", "number"), orient="row")
        answer("newest manifests", frame, f"No manifest in {store}. Run: corpus build", json=json)
        return 0
    folder = store.partition(stage, partition)
    if number is None:
        found = store.newest(stage, partition)
    elif number in (numbers := folder.manifest_numbers()):
        found = folder.read_manifest(number)
    else:
        raise UsageError(
            f"{stage}[{partition}] has no manifest {number}; kept are: "
            f"{', '.join(map(str, numbers)) or 'none'}. Name one of these, or leave out --number."
        )
    if parts is not None:
        found = msgspec.structs.replace(found, parts=found.parts[:parts])
    sys.stdout.write(to_json(found).decode())
    return 0
