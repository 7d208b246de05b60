"""Read files of scores and labels into tables of answers, with the readers of sources.

So they may have every format, compression and place of a source, with the same bounds and the same
quarantine for unreadable records.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from assets.deduped.minhash.meta_fields import field_values, numbers_of
from assets.raw.places.other_inputs import as_source, find_files
from assets.raw.readers.documents import QUARANTINE_SCHEMA
from assets.raw.readers.input_file import InputFile
from assets.raw.readers.open_input import with_content
from assets.raw.readers.read_chunks import read_chunks, whole
from resources.errors import InputError
from resources.settings.annotations import FileAnnotator
from resources.settings.conditions import schema_of
from resources.settings.sources import SourceConfig

CHUNK_BYTES = 8 << 20


def find_answer_files(annotator: FileAnnotator, base: Path, downloads: Path) -> list[InputFile]:
    """Find the files of an annotator; paths start at the folder `base`.

    Raises InputError for a pattern without a file.
    """
    return find_files(_as_source(annotator), "annotations: annotator", base, downloads)


def _as_source(annotator: FileAnnotator) -> SourceConfig:
    """Return the files of an annotator as a source, whose text is the key."""
    key = annotator.key_field
    return as_source(annotator, key, columns=(key, *annotator.columns))


def read_answers(file: InputFile, annotator: FileAnnotator) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read a file: (answers: key String and the annotator's columns, unreadable records).

    Numbers are Float64, null where there is none that is finite; labels are String. Raises
    InputError if no record is readable, or none has the field of a column, or numbers in it.
    """
    columns = annotator.columns
    schema = {"key": pl.String, **schema_of(columns)}
    answers, quarantine = [pl.DataFrame(schema=schema)], [pl.DataFrame(schema=QUARANTINE_SCHEMA)]
    named, told = set[str](), set[str]()  # columns with a field, and with a value that is not null
    [opened] = with_content([file])
    for chunk in read_chunks(opened, whole(opened), _as_source(annotator), CHUNK_BYTES):
        found = {name: field_values(chunk.documents, f"meta.{name}") for name in columns}
        values = {n: numbers_of(s) if columns[n] == "number" else s for n, s in found.items()}
        meta = chunk.documents["meta"]
        named |= {name for name in columns if meta.str.contains(f'"{name}":', literal=True).any()}
        told |= {name for name, series in found.items() if series.null_count() < len(series)}
        answers.append(chunk.documents.select(key="text").with_columns(**values))
        quarantine.append(chunk.quarantine)
    table, unreadable = pl.concat(answers), pl.concat(quarantine)
    place = f"annotations: annotator {annotator.name!r}, file {file.name!r}"
    if table.is_empty() and not unreadable.is_empty():
        fault = unreadable["error"][0].replace("text field", "field")
        raise InputError(f"{place}: {fault}. Correct `key`: it names the field with `by` as text.")
    for name in columns if table.height else ():
        if name not in named or (name in told and table[name].null_count() == table.height):
            raise InputError(
                f"{place}: no record has a {columns[name]} {name!r}. Correct `columns`."
            )
    return table, unreadable
