"""Records of the entries of streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from assets.raw.readers.input_record import InputRecord, as_json, parse_record
from resources.settings.sources import SourceConfig

JSON_FIELDS = (b"json", b"data")  # a record as JSON, if an entry has nothing else
TOO_HIGH = "the id is beyond what a position holds (2^21 entries in a millisecond, the year 2109)"


class StreamEntry(Protocol):
    """An entry of a stream: its position, None if there is none for it, and its fields."""

    @property
    def row(self) -> int | None:
        """Position of the entry."""

    @property
    def fields(self) -> Mapping[bytes, bytes]:
        """Fields as the server has them."""


def entry_record(entry: StreamEntry, source: SourceConfig) -> InputRecord:
    """Return the record of an entry: the JSON in one of its fields, or else all of them."""
    fields = {text(name): text(value) for name, value in entry.fields.items()}
    if entry.row is None:
        return InputRecord(-1, None, as_json(fields), TOO_HIGH)
    name = json_field(entry.fields, source)
    if name is None:
        return InputRecord(entry.row, fields)
    if name not in entry.fields:
        names = ", ".join(list(fields)[:20]) or "none"
        error = f"stream field `{source.stream_field}` is missing (fields: {names})"
        return InputRecord(entry.row, None, as_json(fields), error)
    return parse_record(entry.row, entry.fields[name])


def json_field(fields: Mapping[bytes, bytes], source: SourceConfig) -> bytes | None:
    """Return the field that holds the record; None if the fields are the record."""
    if source.stream_field is not None:
        return source.stream_field.encode()
    [name, *others] = fields or [b""]
    is_record = not others and name in JSON_FIELDS and name != source.text_field.encode()
    return name if is_record else None


def text(value: bytes) -> str:
    """Decode a text; a byte that is not UTF-8 is found, and named, when the record is checked."""
    return value.decode("utf-8", "surrogateescape")
