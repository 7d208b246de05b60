"""Documents that are a whole file, or a whole member of an archive: text, Markdown and HTML.

The front matter of Markdown (YAML between two lines `---`) goes to the other fields, bounded in
bytes and in what its aliases expand to. What is no such mapping stays in the text.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from datetime import date

import msgspec
import yaml

from assets.raw.readers.decompress import BrokenStream, read_blocks
from assets.raw.readers.format import Format
from assets.raw.readers.input_file import WHOLE_FILE, InputFile, Slice
from assets.raw.readers.input_record import RAW_LIMIT_BYTES, InputRecord
from assets.raw.readers.page_child import PageError, page_text
from resources.settings.named_files import check_size
from resources.settings.sources import SourceConfig

FRONT_MATTER = re.compile(rb"---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
MOST_FRONT_BYTES = 1 << 16
MOST_DEPTH = 50
ENCODE = msgspec.json.Encoder(enc_hook=str, order="deterministic").encode  # YAML has sets
DECODE_OBJECT = msgspec.json.Decoder(dict[str, object]).decode
NO_MAPPING = (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError)


def read_page(
    file: InputFile, source: SourceConfig, _cut: Slice = WHOLE_FILE
) -> Iterator[InputRecord]:
    """Yield the one record of a Markdown or HTML file; an empty file has none."""
    data = whole_file(file, source)
    if isinstance(data, InputRecord):
        yield data
    elif data:
        yield page_record(0, data, file.format, source)


def whole_file(file: InputFile, source: SourceConfig) -> bytes | InputRecord:
    """Return the content of a file, or its fault: it is broken, or above `max_record_bytes`."""
    data, error = bytearray(), ""
    try:
        for block in read_blocks(file):
            data += block
            if len(data) > source.max_record_bytes:
                error = f"{file.format} file is above max_record_bytes={source.max_record_bytes:,}"
                break
    except BrokenStream as broken:
        error, data = broken.reason, data or bytearray(broken.head)
    return InputRecord(0, None, bytes(data[:RAW_LIMIT_BYTES]), error) if error else bytes(data)


def page_record(row: int, data: bytes, file_format: str, source: SourceConfig) -> InputRecord:
    """Return the record of a whole text, Markdown or HTML file."""
    front: Mapping[str, object] = {}
    match file_format:
        case "html":
            try:
                return InputRecord(row, {source.text_field: page_text(data)})
            except PageError as error:
                return InputRecord(row, None, data, str(error))
        case "md":
            front, data = split_front_matter(data.removeprefix(BOM_UTF8))
    text = data.removeprefix(BOM_UTF8).decode("utf-8", "surrogateescape")
    return InputRecord(row, {**front, source.text_field: text})


def split_front_matter(data: bytes) -> tuple[dict[str, object], bytes]:
    """Return the front matter of a Markdown file, and its text; all is text without one."""
    head = FRONT_MATTER.match(data, 0, MOST_FRONT_BYTES)
    if head is None:
        return {}, data
    try:
        fields = _mapping(head[1].decode())
    except NO_MAPPING:
        return {}, data
    return fields, data[head.end() :]


def _mapping(text: str) -> dict[str, object]:
    """Return a YAML mapping as JSON has it; one of NO_MAPPING if it is none."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_DEPTH:  # libyaml composes nodes by recursion, to the end of the stack
            raise ValueError("nested too deeply")
    loader = yaml.CSafeLoader(text)
    try:
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            raise ValueError("no mapping")
        check_size(root, {})
        encoded = ENCODE(
            {_key(key): value for key, value in loader.construct_document(root).items()}
        )
    finally:
        loader.dispose()
    return DECODE_OBJECT(encoded)


def _key(key: object) -> str:
    return key.isoformat() if isinstance(key, date) else str(key)


MARKDOWN = Format("md", (".md", ".markdown"), read_page)
HTML = Format("html", (".html", ".htm"), read_page, has_pages=True)
