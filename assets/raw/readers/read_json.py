""".json files: an array of records, one record, or JSON lines under another name.

Arrays are read element by element from a growing window, so that a file of any size fits and a
broken one yields the elements before the break. The window doubles when an element does not fit,
which keeps the re-reading linear. Price: half the speed of JSON lines, which are better for large
data.
"""

import codecs
import json
import re
from collections.abc import Iterator
from itertools import chain

from assets.raw.readers.decompress import BLOCK_BYTES, BrokenStream, read_blocks
from assets.raw.readers.format import Format
from assets.raw.readers.input_file import WHOLE_FILE, InputFile, Slice
from assets.raw.readers.input_record import MAX_DEPTH, TOO_DEEP, InputRecord, parse_record
from assets.raw.readers.read_lines import Line, split_lines
from resources.settings.sources import SourceConfig

WHITESPACE = " \t\n\r\ufeff\x1e"  # with the separator of RFC 7464
RAW_DECODE = json.JSONDecoder().raw_decode
STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


def read_json(
    file: InputFile, source: SourceConfig, _cut: Slice = WHOLE_FILE
) -> Iterator[InputRecord]:
    """Yield the records of a .json file, numbered from 0; the rest after a break is one record."""
    blocks = read_blocks(file)
    head, error = b"", None
    try:
        head = next(blocks, b"")
    except BrokenStream as broken:
        error = broken
    if error is not None:
        yield InputRecord(0, None, error.head, error.reason)
    elif _is_json_lines(head):
        yield from _read_lines(split_lines(chain([head], blocks), 0, source.max_record_bytes))
    else:
        yield from _read_values(_Window(chain([head], blocks)), source.max_record_bytes)


def _read_lines(lines: Iterator[Line]) -> Iterator[InputRecord]:
    kept = (each for each in enumerate(lines, 1) if each[1].error or each[1].data.strip())
    for row, (number, line) in enumerate(kept):
        data = line.data.removeprefix(codecs.BOM_UTF8)
        if line.error:
            yield InputRecord(row, None, data, line.error, number)
        else:
            yield parse_record(row, data, number)


def _is_json_lines(head: bytes) -> bool:
    # Two lines are asked, so that one broken line does not turn the file into one broken record.
    lines = [line for line in head.removeprefix(codecs.BOM_UTF8).split(b"\n", 8) if line.strip()]
    return any(parse_record(0, line).fields is not None for line in lines[:2] if len(lines) > 1)


class _Window:
    """Text that is not parsed yet; bytes that are not UTF-8 stay as surrogates."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self.text = ""
        self.is_complete = False
        self.broken = ""

    def grow(self) -> None:
        """Read until the text has doubled at least, or mark it complete."""
        parts, wanted = [self.text], max(len(self.text), BLOCK_BYTES)
        try:
            while wanted > 0 and (block := next(self._blocks, b"")):
                parts.append(self._decoder.decode(block))
                wanted -= len(block)
        except BrokenStream as error:
            self.broken = error.reason
            wanted = 1
        if wanted > 0:
            self.is_complete = True
            parts.append(self._decoder.decode(b"", final=True))
        self.text = "".join(parts)


def _read_values(window: _Window, max_bytes: int) -> Iterator[InputRecord]:
    window.grow()
    start = _skip(window.text, 0, WHITESPACE)
    is_array = window.text[start : start + 1] == "["
    position, row, error = start + is_array, 0, ""
    while not error:
        position = _skip(window.text, position, WHITESPACE + "," * (row > 0))
        end, error = _value_end(window.text, position)
        is_cut = bool(error) or end == len(window.text)
        if is_cut and not window.is_complete and len(window.text) - position <= max_bytes:
            window.text, position, error = window.text[position:], 0, ""
            window.grow()
        elif not error:
            yield parse_record(row, _to_bytes(window.text[position:end]))
            position, row = end, row + 1
    rest = window.text[position:]
    if window.broken or rest.strip(WHITESPACE) != "]" * is_array:
        if len(rest) > max_bytes:
            error = f"record is above max_record_bytes={max_bytes:,}"
        yield InputRecord(row, None, _to_bytes(rest[:max_bytes]), window.broken or error)


def _value_end(text: str, position: int) -> tuple[int, str]:
    try:
        return RAW_DECODE(text, position)[1], ""
    except json.JSONDecodeError as error:
        deep_end = _deep_value_end(text, position, error.pos)
        return deep_end or (position, f"JSON is broken: {error.msg}")
    except RecursionError:
        return _deep_value_end(text, position, len(text)) or (position, TOO_DEEP)


def _deep_value_end(text: str, position: int, broken_at: int) -> tuple[int, str] | None:
    """Return (end, error) of a value that is too deep before it breaks, by its brackets; else None.

    The decoder's stack may or may not suffice for such a value: the outcome must not depend on it.
    """
    if text.count("[", position, broken_at) + text.count("{", position, broken_at) <= MAX_DEPTH:
        return None
    depth, is_deep = 0, False
    for token in STRING_OR_BRACKET.finditer(text, position):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        is_deep = is_deep or depth > MAX_DEPTH
        if not is_deep and token.start() >= broken_at:
            return None
        if is_deep and depth == 0:
            return token.end(), ""
    return (position, TOO_DEEP) if is_deep else None


def _skip(text: str, position: int, characters: str) -> int:
    while position < len(text) and text[position] in characters:
        position += 1
    return position


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


JSON = Format("json", (".json",), read_json)
