"""Fields of one record, its patch, the field filter, and the columns of its document.

Trade-off: a record is decoded to Python objects and its other fields are encoded again as `meta`.
That checks every byte of it (UTF-8, escapes, number ranges) but writes 1.10 as 1.1. Keeping the
original spelling (msgspec.Raw) was slower and let invalid UTF-8 through.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, NoReturn

import msgspec
import numpy as np
import xxhash

from resources.settings.sources import Scalar, SourceConfig

RAW_LIMIT_BYTES = 65536  # that quarantine shows of a record
PatchKey = tuple[str, int, str]
ENTRY = "entry"
MEMBER = "member and row"  # unit of rows that count members in steps of MEMBER_ROWS
MEMBER_ROWS = 10**12  # JSON lines count bytes, of which a member has far less
MEMBER_PLACE = re.compile(r"member (\d+), (row|byte) (\d+)")
NUMBER_BITS = 21
ROW_BITS = 63
DECODE_OBJECT = msgspec.json.Decoder(dict[str, object]).decode
ENCODE = msgspec.json.Encoder(enc_hook=str).encode
MAX_DEPTH = 200  # a limit of its own: what fits on the interpreter's stack depends on the caller
TOO_DEEP = f"JSON is nested more than {MAX_DEPTH} levels deep"
MISSING = object()  # in place of the value of a field that a record does not have
STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


class Patch(msgspec.Struct, frozen=True, array_like=True):
    """The JSON text of a record, by the file and row of the one that it replaces.

    `replaced` is the xxh3_128 of the bytes that quarantine shows of that one.
    """

    file: str
    row: int
    replaced: str
    record: str

    @property
    def key(self) -> PatchKey:
        """The record that it replaces."""
        return self.file, self.row, self.replaced

    @property
    def name(self) -> str:
        """Name of the patch in the counts of those that were used."""
        return f"{self.file} {self.row} {self.replaced}"


def shown_digest(raw: bytes) -> str:
    """Return the digest of a record, of the bytes that quarantine shows."""
    return xxhash.xxh3_128_hexdigest(raw[:RAW_LIMIT_BYTES])


class InputRecord(NamedTuple):
    """One record of an input file: its fields, or the error that makes it unreadable.

    `row` is the byte offset of the line (JSON lines) or the record number from 0 (other formats),
    `line` the number of its first line, from 1 at the start of the slice; 0 if it has no lines.
    `raw` is the JSON text that `fields` was decoded from. None means that the fields come from
    another format, so that their strings are still to be checked and quarantine shows them as JSON.
    `left_out` is the reason why a record of a container is neither read nor an error; `raw` is its
    name then, if the user should know of it.
    """

    row: int
    fields: Mapping[str, object] | None
    raw: bytes | None = None
    error: str = ""
    line: int = 0
    left_out: str = ""


@dataclass(frozen=True)
class LineRun:
    """Whole lines, the first of which begins at `offset` and is the slice's `number`-th, from 1.

    Only the last line of a file may be without a newline.
    """

    offset: int
    data: bytes
    number: int = 1

    @cached_property
    def num_newlines(self) -> int:
        """Count the newlines, without the interpreter's lock."""
        return int(np.count_nonzero(np.frombuffer(self.data, np.uint8) == ord("\n")))


def parse_record(row: int, text: bytes, line: int = 0) -> InputRecord:
    """Decode one JSON object strictly (RFC 8259, UTF-8); a fault becomes the record's error."""
    if is_too_deep(text):
        return InputRecord(row, None, text, TOO_DEEP, line)
    try:
        return InputRecord(row, DECODE_OBJECT(text), text, "", line)
    except UnicodeDecodeError as error:
        return InputRecord(row, None, text, f"not valid UTF-8: {error.reason}", line)
    except msgspec.DecodeError as error:
        fields = _with_big_numbers(text) if "out of range" in str(error) else None
        return InputRecord(row, fields, text, "" if fields else _json_error(text, error), line)


def is_too_deep(data: bytes) -> bool:
    """Return True if arrays and objects nest deeper than MAX_DEPTH, in broken JSON as well."""
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return False
    depth = 0
    for token in STRING_OR_BRACKET.finditer(data):
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(token[0], 0)
        if depth > MAX_DEPTH:
            return True
    return False


def _with_big_numbers(line: bytes) -> dict[str, object] | None:
    # RFC 8259 sets no bound to numbers; those beyond Python's range stay as spelled.
    try:
        fields = json.loads(
            line.decode(), parse_float=_number, parse_int=_number, parse_constant=_no_constant
        )
    except ValueError:
        return None
    return fields if isinstance(fields, dict) else None


def _number(digits: str) -> object:
    if len(digits) <= 18 and digits.lstrip("-").isdigit():
        return int(digits)
    value = float(digits)
    is_float = math.isfinite(value) and not digits.lstrip("-").isdigit()
    return value if is_float else msgspec.Raw(digits.encode())


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _json_error(line: bytes, error: msgspec.DecodeError) -> str:
    # msgspec calls an unpaired \ud800 "truncated" or worse; the json module reads it, and so tells.
    if ("truncated" in str(error) or "surrogate" in str(error)) and b"\\ud" in line.lower():
        try:
            json.loads(line)
        except ValueError:
            return str(error)
        return "lone surrogate escape (\\ud800 to \\udfff without its pair) in a JSON string"
    return str(error)


def matches_filter(fields: Mapping[str, object], wanted: Mapping[str, tuple[Scalar, ...]]) -> bool:
    """Return True if every dotted path leads to one of its allowed values; a missing path does not.

    A string on the way is read as JSON, so that `meta.x` finds x in an object and in its JSON text.
    Types count: true is not 1, and "1" is not 1.
    """
    return all(
        any(value == each and isinstance(value, bool) == isinstance(each, bool) for each in allowed)
        for path, allowed in wanted.items()
        for value in [look_up(fields, path)]
    )


def look_up(fields: Mapping[str, object], path: str, default: object = None) -> object:
    """Return the value at a dotted path; a field whose own name is the path comes first.

    A string on the way is read as JSON.
    """
    if path in fields or "." not in path:
        return fields.get(path, default)
    name, _, below = path.partition(".")
    inner = _as_fields(fields.get(name))
    return default if inner is None else look_up(inner, below, default)


def has_field(names: Collection[str], path: str) -> bool:
    """Return whether a table with columns of these names may have a value at a dotted path."""
    return path in names or path.partition(".")[0] in names


def _as_fields(value: object) -> Mapping[str, object] | None:
    if isinstance(value, str):
        value = parse_record(0, value.encode("utf-8", "replace")).fields
    elif isinstance(value, bytes):
        value = parse_record(0, value).fields
    if isinstance(value, list):  # `license.0.name`
        return {str(number): each for number, each in enumerate(value)}
    return value if isinstance(value, Mapping) else None


def _remove(fields: dict[str, object], path: str) -> None:
    """Remove the value that `look_up` finds; the objects around it are copied."""
    name, _, below = path.partition(".")
    inner = None if path in fields else _as_fields(fields.get(name))
    if inner is None:
        fields.pop(path, None)
    else:
        fields[name] = rest = dict(inner)
        _remove(rest, below)


def checked_size(record: InputRecord, max_bytes: int) -> int:
    """Return the bytes of a record as JSON.

    Raises ValueError above `max_bytes`, and UnicodeEncodeError for text that is not UTF-8.
    """
    size = len(ENCODE(record.fields) if record.raw is None else record.raw)
    if size > max_bytes:
        raise ValueError(f"record has {size:,} bytes, above max_record_bytes={max_bytes:,}")
    return size


def document_columns(
    fields: Mapping[str, object], source: SourceConfig
) -> tuple[str, str | None, str | None, str | None, str | None, str]:
    """Return (text, id, url, lang, license, meta); ValueError if there is no text."""
    rest = dict(fields)
    found = _as_text(look_up(rest, source.text_field, MISSING))
    if found is not MISSING:
        _remove(rest, source.text_field)
    text = found
    if source.kind == "chat" and found is not MISSING:
        from assets.raw.chat_records import chat_text

        siblings = _as_fields(look_up(rest, source.text_field.rpartition(".")[0])) or {}
        own = {*rest, source.text_field}  # siblings stay in the object around them
        text, others = chat_text({**siblings, **rest, source.text_field: found}, source.text_field)
        rest = {key: value for key, value in others.items() if key in own}
    if not isinstance(text, str):
        raise ValueError(_text_error(fields, source.text_field, found))
    if source.html != "keep":
        from assets.raw.readers.html_fields import HTML_TO_TEXT

        text = HTML_TO_TEXT[source.html](text)
    record_id = _take_id(rest, source.id_field)
    lang = _take_string(rest, source.lang_field) or source.declared_language
    license_name = _take_string(rest, source.license_field) or source.license
    if isinstance(url := _as_text(rest.get("url")), str):
        rest["url"] = url
    meta = ENCODE(rest).decode()
    return text, record_id, url if isinstance(url, str) and url else None, lang, license_name, meta


def _as_text(value: object) -> object:
    """Return bytes in UTF-8 as text: some writers of Parquet do not mark strings as such."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    return value


def _take_string(rest: dict[str, object], field: str) -> str | None:
    # A value of another type is no language or licence: it stays in meta, the source's own applies.
    value = _as_text(look_up(rest, field))
    if not isinstance(value, str):
        return None
    _remove(rest, field)
    return value


def _take_id(rest: dict[str, object], field: str | None) -> str | None:
    value = None if field is None else _as_text(look_up(rest, field))
    if field is None or value == "" or isinstance(value, bool) or not isinstance(value, str | int):
        return None
    _remove(rest, field)
    return str(value)


def _text_error(fields: Mapping[str, object], field: str, value: object) -> str:
    if value is MISSING:
        names = ", ".join(map(str, list(fields)[:20])) or "none"
        return f"text field `{field}` is missing (fields: {names}) - at `$.{field}`"
    if isinstance(value, bytes):
        return f"text field `{field}` is not valid UTF-8, but bytes - at `$.{field}`"
    type_name = "null" if value is None else type(value).__name__
    return f"text field `{field}` is {type_name}, expected a string - at `$.{field}`"


def encode_error(error: UnicodeEncodeError) -> str:
    """Describe the character that has no UTF-8 form, or the byte it was decoded from."""
    code = ord(error.object[error.start])
    if 0xDC80 <= code <= 0xDCFF:  # how "surrogateescape" (PEP 383) marks a byte that is not UTF-8
        return f"not valid UTF-8: byte 0x{code - 0xDC00:02x} at character {error.start}"
    return f"lone surrogate U+{code:04X} at character {error.start}"


def as_json(fields: Mapping[str, object] | None) -> bytes:
    """Encode fields of any type as ASCII JSON text."""
    return json.dumps(fields, default=str).encode()


def entry_row(entry_id: str) -> int | None:
    """Return the row of an entry of Redis; None if its id is beyond what a row holds."""
    milliseconds, _, number = entry_id.partition("-")
    row = int(milliseconds) << NUMBER_BITS | int(number)
    return row if int(number) >> NUMBER_BITS == 0 and row >> ROW_BITS == 0 else None


def position_text(unit: str, row: int) -> str:
    """Return the position of a record: "byte 512", "member 2, row 7", "entry 1700000000000-0".

    A line in a member of a tar has "member 2, byte 7".
    """
    if unit == "member" and row >= MEMBER_ROWS:
        return f"member {row // MEMBER_ROWS - 1}, byte {row % MEMBER_ROWS}"
    if unit == MEMBER:
        return f"member {row // MEMBER_ROWS}, row {row % MEMBER_ROWS}"
    if unit != ENTRY:
        return f"{unit} {row}"
    if row < 0:
        return f"{unit} of no row"
    return f"{unit} {row >> NUMBER_BITS}-{row & (1 << NUMBER_BITS) - 1}"


def position_row(position: str) -> int | None:
    """Return the row of a position; None if it has none."""
    if match := MEMBER_PLACE.fullmatch(position):
        return (int(match[1]) + (match[2] == "byte")) * MEMBER_ROWS + int(match[3])
    unit, _, place = position.partition(" ")
    try:
        return entry_row(place) if unit == ENTRY else int(place)
    except ValueError:
        return None
