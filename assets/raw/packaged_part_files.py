"""Parts of files that the package `datasets` reads: each keeps the state that the next begins at.

Parts are published as they are read. A killed run goes on behind the last one, and reads its file
again up to there, without a row lost or doubled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from assets.raw.places.open_input import with_content
from assets.raw.raw_inputs import RawInputs
from assets.raw.raw_records import RawNumbers, Resume
from assets.raw.readers.documents import Chunk, DocumentBuilder
from assets.raw.readers.formats import format_of
from assets.raw.readers.input_file import InputFile
from assets.raw.readers.read_packaged import records_of
from resources.store.records import PartRecord
from resources.tasks import Task, stream_name

BEGINNING = Resume(0)


class ChunkBefore(NamedTuple):
    """A chunk, and where what follows it begins."""

    chunk: Chunk
    behind: Resume


def has_packaged(files: Sequence[InputFile]) -> bool:
    """Return whether the package reads the files of a task, which are all of one kind."""
    return bool(files) and format_of(files[0]).is_packaged


def parts_so_far(task: Task[RawInputs]) -> list[PartRecord]:
    """Return the parts that an interrupted run has published."""
    parts: list[PartRecord] = []
    while part := task.folder.find_part(stream_name(task.name, len(parts)), task.fingerprint):
        parts.append(part)
    return parts


def resume_behind(parts: Sequence[PartRecord]) -> Resume:
    """Return where the part behind these begins."""
    numbers = msgspec.convert(parts[-1].stats.numbers, RawNumbers) if parts else RawNumbers()
    return numbers.resume or BEGINNING


def chunks_behind(inputs: RawInputs, start: Resume) -> Iterator[ChunkBefore]:
    """Yield chunks of about `part_bytes`, each with where the next one begins.

    A chunk ends behind a table of the package. A record that is repeated (by `id_field`) is kept
    once per file and chunk: a run that begins at a chunk knows no ids from before.
    """
    builder = DocumentBuilder(inputs.part_bytes, patches=inputs.patches)
    first, is_first = start.state, True
    for index, file in enumerate(with_content(inputs.files[start.file :]), start.file):
        builder.start_file(inputs.source, file.name, "record")
        for records, state in records_of(file, inputs.source, first):
            for record in records:
                builder.add(record)
            behind = Resume(index, state) if state else Resume(index + 1)
            for chunk in builder.end_file():
                yield ChunkBefore(chunk, behind)
                is_first = False
                builder.start_file(inputs.source, file.name, "record")
        first = None
    rest = builder.take()
    if rest.rows_in or is_first:
        yield ChunkBefore(rest, Resume(len(inputs.files)))
