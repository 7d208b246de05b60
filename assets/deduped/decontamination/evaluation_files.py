"""Evaluation sets: their files, through the readers of sources -> a table of items.

So every format and compression of a source is one of an evaluation set, with the same bounds
(decompression bombs, oversized records) and the same quarantine for what cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec
import polars as pl

from assets.raw.places.find_inputs import MAY_BE_EMPTY, find_inputs
from assets.raw.readers.documents import QUARANTINE_SCHEMA, Chunk
from assets.raw.readers.input_file import InputFile
from assets.raw.readers.read_chunks import STREAM_END, Slice, read_chunks
from resources.errors import InputError
from resources.settings.decontamination import DecontaminationConfig, EvaluationSet
from resources.settings.sources import SourceConfig

CHUNK_BYTES = 8 << 20
CHECKED_RECORDS = 100  # of a file, before any work: of these one must be readable
ITEM_SCHEMA = {"set": pl.String(), "item": pl.String(), "text": pl.String()}


class EvaluationFile(NamedTuple):
    """One file of an evaluation set."""

    of: EvaluationSet
    file: InputFile


def find_evaluation_files(
    config: DecontaminationConfig, base: Path, downloads: Path
) -> list[EvaluationFile]:
    """The files of every set, each checked for its fields; paths start at the folder `base`.

    Raises InputError for a pattern without a file, a file without a readable record and a field
    that its first readable record does not have.
    """
    found = []
    for each in config.sets:
        try:
            files = find_inputs(_as_source(each), base, downloads)
        except InputError as error:
            message = str(error).removesuffix(MAY_BE_EMPTY).replace("source", "evaluation set", 1)
            raise InputError(f"dedup.decontamination: {message}") from error
        for file in files:
            _check_fields(each, file)
            found.append(EvaluationFile(each, file))
    return found


def _as_source(each: EvaluationSet) -> SourceConfig:
    """The set as a source; no field of an item is taken for its language or licence."""
    text_field = each.fields[0]
    return SourceConfig.model_validate(
        {
            **each.model_dump(include={"name", "where", "format"}),
            **dict.fromkeys(("text_field", "lang_field", "license_field"), text_field),
            "text_documents": "blank_line",
        }
    )


def _chunks(each: EvaluationSet, file: InputFile, chunk_bytes: int) -> Iterator[Chunk]:
    whole = Slice(0, "stream", 0, STREAM_END)
    return read_chunks(file, whole, _as_source(each), chunk_bytes)


def _check_fields(each: EvaluationSet, file: InputFile) -> None:
    """InputError unless one of the first records is readable and has every field."""
    place = f"dedup.decontamination: evaluation set {each.name!r}, file {file.name!r}"
    error = ""
    for chunk in islice(_chunks(each, file, 1), CHECKED_RECORDS):
        for text, meta in chunk.documents.select("text", "meta").iter_rows():
            record = record_of(each, text, meta)
            named = [*each.fields, *([] if each.id_field is None else [each.id_field])]
            missing = [name for name in named if value_at(record, name) is None]
            if not missing:
                return
            error = error or f"no value of field {missing[0]!r}; a record has {', '.join(record)}"
        for reason in chunk.quarantine["error"].head(1):
            error = error or reason
    error = error or "it holds no record"
    raise InputError(f"{place}: {error}. Correct `fields`, `id_field` or `where` of the set.")


def record_of(each: EvaluationSet, text: str, meta: str) -> dict[str, object]:
    """The fields of a record as it was read."""
    rest: dict[str, object] = msgspec.json.decode(meta)
    return {each.fields[0]: text, **rest}


def value_at(record: Mapping[str, object], path: str) -> object:
    """The value of a field, or of a dotted path into objects and lists of them; None: not there."""
    if path in record:
        return record[path]
    value: object = record
    for key in path.split("."):
        if isinstance(value, list):
            value = [each.get(key) for each in value if isinstance(each, Mapping)]
        else:
            value = value.get(key) if isinstance(value, Mapping) else None
    return value


def text_of(value: object) -> str:
    """A text, a number or a list of them as text; nothing for null, flags and objects."""
    if isinstance(value, list):
        return " ".join(filter(None, map(text_of, value)))
    is_text = isinstance(value, str | int | float) and not isinstance(value, bool)
    return str(value) if is_text else ""


def read_items(files: list[EvaluationFile]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Items (set, item, text String) of all files in order, and the records that are none.

    An item is named by its `id_field`, else by file and place ("test.jsonl#0"). Records that cannot
    be read or lack the first field are rows of quarantine, as of `raw`, with the set as source.
    """
    items, quarantine = [pl.DataFrame(schema=ITEM_SCHEMA)], [pl.DataFrame(schema=QUARANTINE_SCHEMA)]
    for each, file in files:
        for chunk in _chunks(each, file, CHUNK_BYTES):
            quarantine.append(chunk.quarantine)
            rows = chunk.documents.select("text", "meta", pl.col("origin").struct.field("row"))
            # A Python loop: 200,000 items a second, and benchmarks have fewer.
            named = [_item(each, file, *row) for row in rows.iter_rows()]
            items.append(pl.DataFrame(named, schema=ITEM_SCHEMA, orient="row"))
    return pl.concat(items), pl.concat(quarantine)


def _item(
    each: EvaluationSet, file: InputFile, text: str, meta: str, row: int
) -> tuple[str, str, str]:
    record = record_of(each, text, meta)
    name = "" if each.id_field is None else text_of(value_at(record, each.id_field))
    joined = "\n".join(filter(None, (text_of(value_at(record, field)) for field in each.fields)))
    return each.name, name or f"{file.name}#{row}", joined
