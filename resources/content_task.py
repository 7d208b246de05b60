"""Tasks of parts whose fingerprint is known when their content is."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import polars as pl
import xxhash

from resources.tasks import Task, TaskMaker


def task_by_content(
    task: Task[Any], code_version: str, of: object, tables: Sequence[pl.DataFrame]
) -> Task[None]:
    """Return a task of the same name whose fingerprint is that of its content, and of `of`.

    `of` is a JSON value. Content is that of uncompressed Parquet: in an Arrow file the bytes of
    strings depend on the tables that they were gathered from.
    """
    digest = xxhash.xxh3_128()
    for table in tables:
        content = BytesIO()
        table.rechunk().write_parquet(content, compression="uncompressed")
        digest.update(content.getbuffer())
    make = TaskMaker(*task.place[:2], code_version, task.partition, task.compression)
    return make.task(task.name, (of, digest.hexdigest()), None, work_bytes=0)
