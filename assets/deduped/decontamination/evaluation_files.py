"""Read the files of evaluation sets into a table of items, with the readers of sources.

So an evaluation set may have every format and compression of a source, with the same bounds
(decompression bombs, oversized records) and the same quarantine for unreadable records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec
import polars as pl

from assets.raw.places.other_inputs import as_source, find_files
from assets.raw.readers.documents import QUARANTINE_SCHEMA, Chunk
from assets.raw.readers.input_file import InputFile
from assets.raw.readers.open_input import with_content
from assets.raw.readers.read_chunks import read_chunks, whole
from resources.errors import InputError
from resources.settings.decontamination import DecontaminationConfig, EvaluationSet
from resources.settings.sources import SourceConfig

CHUNK_BYTES = 8 << 20
MOST_BYTES = 256 << 20  # of items and unreadable records, which are in memory at once
CHECKED_RECORDS = 100  # first records of a file, one of which must be readable
ITEM_SCHEMA = {"set": pl.String(), "item": pl.String(), "text": pl.String()}


class EvaluationFile(NamedTuple):
    """One file of an evaluation set."""

    evaluation_set: EvaluationSet
    file: InputFile


def find_evaluation_files(
    config: DecontaminationConfig, base: Path, downloads: Path
) -> list[EvaluationFile]:
    """Find the files of every set, and check their fields; paths start at the folder `base`.

    Raises InputError for a pattern without a file, a file without a readable record and a field
    that its first readable record does not have.
    """
    evaluation_files = []
    for evaluation_set in config.sets:
        noun = "dedup.decontamination: evaluation set"
        for file in find_files(_as_source(evaluation_set), noun, base, downloads):
            _check_fields(evaluation_set, file)
            evaluation_files.append(EvaluationFile(evaluation_set, file))
    return evaluation_files


def _as_source(evaluation_set: EvaluationSet) -> SourceConfig:
    """Return the set as a source, with an item for each of its documents."""
    return as_source(evaluation_set, evaluation_set.fields[0], text_documents="blank_line")


def _read_chunks(file: EvaluationFile, chunk_bytes: int) -> Iterator[Chunk]:
    """Read a file as a source's, in chunks of so many bytes of text."""
    [opened] = with_content([file.file])
    return read_chunks(opened, whole(opened), _as_source(file.evaluation_set), chunk_bytes)


def _check_fields(evaluation_set: EvaluationSet, file: InputFile) -> None:
    """Raise InputError unless one of the first records is readable and has every field."""
    place = f"dedup.decontamination: evaluation set {evaluation_set.name!r}, file {file.name!r}"
    id_fields = [] if evaluation_set.id_field is None else [evaluation_set.id_field]
    named = [*evaluation_set.fields, *id_fields]
    error = ""
    for chunk in islice(_read_chunks(EvaluationFile(evaluation_set, file), 1), CHECKED_RECORDS):
        for text, meta in chunk.documents.select("text", "meta").iter_rows():
            record = record_of(evaluation_set, text, meta)
            missing = [name for name in named if value_at(record, name) is None]
            if not missing:
                return
            error = error or f"no value of field {missing[0]!r}; a record has {', '.join(record)}"
        for reason in chunk.quarantine["error"].head(1):
            error = error or reason
    error = error or "it holds no record"
    raise InputError(f"{place}: {error}. Correct `fields`, `id_field` or `where` of the set.")


def record_of(evaluation_set: EvaluationSet, text: str, meta: str) -> dict[str, object]:
    """Return the fields of a record as it was read."""
    others: dict[str, object] = msgspec.json.decode(meta)
    return {evaluation_set.fields[0]: text, **others}


def value_at(record: Mapping[str, object], path: str) -> object:
    """Return the value of a field, or of a dotted path into objects and lists; None if missing."""
    if path in record:
        return record[path]
    value: object = record
    for key in path.split("."):
        if isinstance(value, list):
            value = [item.get(key) for item in value if isinstance(item, Mapping)]
        else:
            value = value.get(key) if isinstance(value, Mapping) else None
    return value


def text_of(value: object) -> str:
    """Return a text, a number or a list of them as text; "" for null, flags and objects."""
    if isinstance(value, list):
        return " ".join(filter(None, map(text_of, value)))
    is_text = isinstance(value, str | int | float) and not isinstance(value, bool)
    return str(value) if is_text else ""


def read_items(files: list[EvaluationFile]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read the items (set, item, text String) of all files in order, and the unreadable records.

    An item is named by its `id_field`, else by file and position ("test.jsonl#0"). Records that
    cannot be read or lack the first field are rows of quarantine, as in `raw`, with the set as
    source.
    """
    held = 0
    items, quarantine = [pl.DataFrame(schema=ITEM_SCHEMA)], [pl.DataFrame(schema=QUARANTINE_SCHEMA)]
    for file in files:
        for chunk in _read_chunks(file, CHUNK_BYTES):
            quarantine.append(chunk.quarantine)
            rows = chunk.documents.select("text", "meta", pl.col("origin").struct.field("row"))
            # A Python loop is fast enough: benchmarks have fewer than 200,000 items.
            named = [_item(file, *row) for row in rows.iter_rows()]
            items.append(pl.DataFrame(named, schema=ITEM_SCHEMA, orient="row"))
            held += int(items[-1].estimated_size() + quarantine[-1].estimated_size())
            if held > MOST_BYTES:
                raise InputError(
                    f"dedup.decontamination: over {MOST_BYTES:,} bytes of items with file "
                    f"{file.file.name!r} of evaluation set {file.evaluation_set.name!r}. Name "
                    "evaluation sets only, or a sample of them."
                )
    return pl.concat(items), pl.concat(quarantine)


def _item(file: EvaluationFile, text: str, meta: str, row: int) -> tuple[str, str, str]:
    """Return set, name and text of an item: its fields, one a line."""
    evaluation_set = file.evaluation_set
    record = record_of(evaluation_set, text, meta)
    id_field = evaluation_set.id_field
    name = "" if id_field is None else text_of(value_at(record, id_field))
    texts = (text_of(value_at(record, field)) for field in evaluation_set.fields)
    return evaluation_set.name, name or f"{file.file.name}#{row}", "\n".join(filter(None, texts))
