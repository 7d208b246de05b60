"""Jupyter notebooks, nbformat 3 and 4: the cells in their order, as one document in Markdown.

Markdown is as it is, and code is fenced with the language of the kernel, as nbconvert writes it:
StarCoder's structured notebooks have the same order of text and code, between tokens that only its
tokenizer has (Li et al. 2023). Outputs are left out, or the text of each is cut.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from assets.raw.readers.archive_names import ATTACHMENT, OUTPUT
from assets.raw.readers.input_file import InputFile, Slice
from assets.raw.readers.input_record import TOO_DEEP, InputRecord, is_too_deep
from assets.raw.readers.read_pages import whole_file
from resources.settings.sources import SourceConfig

Text = str | list[str]  # lines, with their ends
NO_CELLS = "it has no cells, as nbformat 3 and 4 have them"
TICKS = re.compile("`{3,}")
ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")  # colours of a terminal


class Cell(Struct):
    """A cell; `source` is that of nbformat 4, `input` and `language` of code in nbformat 3."""

    cell_type: str
    source: Text = ""
    input: Text = ""
    language: str = ""
    level: int = 1
    outputs: list[dict[str, Any]] = []
    attachments: dict[str, Any] | None = None


class Worksheet(Struct):
    """The cells of a notebook of nbformat 3."""

    cells: list[Cell] = []


class Notebook(Struct):
    """A notebook."""

    cells: list[Cell] | UnsetType = UNSET
    worksheets: list[Worksheet] | UnsetType = UNSET
    metadata: dict[str, Any] = {}


DECODE = msgspec.json.Decoder(Notebook).decode


def read(file: InputFile, source: SourceConfig, _cut: Slice) -> Iterator[InputRecord]:
    """Yield the record of a notebook, and one for each output that it does not have whole."""
    data = whole_file(file, source)
    if isinstance(data, InputRecord):
        yield data
        return
    if not data:
        return
    try:
        cells, language = _content(data.removeprefix(BOM_UTF8))
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        yield InputRecord(0, None, data, f"notebook cannot be read: {error}")
        return
    blocks = list[str]()
    for cell in cells:
        blocks.append(_shown(cell, language))
        for output in cell.outputs:
            text = ESCAPES.sub("", _output_text(output))
            blocks.append(_fenced(text[: source.notebook_outputs], ""))
            if not text or len(text) > source.notebook_outputs:
                yield InputRecord(0, None, left_out=OUTPUT)
        for _ in cell.attachments or ():
            yield InputRecord(0, None, left_out=ATTACHMENT)
    yield InputRecord(0, {source.text_field: "\n\n".join(filter(None, blocks))})


def _content(data: bytes) -> tuple[list[Cell], str]:
    """Return the cells, and the language of their code; ValueError if there are none."""
    if is_too_deep(data):
        raise ValueError(TOO_DEEP)
    notebook = DECODE(data)
    if notebook.cells is UNSET and notebook.worksheets is UNSET:
        raise ValueError(NO_CELLS)
    cells = [cell for sheet in notebook.worksheets or () for cell in sheet.cells]
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        about = notebook.metadata.get(key)
        if isinstance(about, dict) and isinstance(about.get(name), str):
            return (notebook.cells or []) + cells, about[name]
    return (notebook.cells or []) + cells, next(filter(None, (each.language for each in cells)), "")


def _shown(cell: Cell, language: str) -> str:
    text = _joined(cell.source) or _joined(cell.input)
    if cell.cell_type == "code":
        return _fenced(text, language)
    if cell.cell_type == "heading" and text:  # of nbformat 3
        return f"{'#' * min(max(cell.level, 1), 6)} {text}"
    return text


def _output_text(output: dict[str, Any]) -> str:
    """Return the text of an output; "" of one that is a picture or the like."""
    data = output.get("data")
    found = [output.get("text"), data.get("text/plain") if isinstance(data, dict) else None]
    trace = output.get("traceback")
    found += ["\n".join(map(str, trace))] if isinstance(trace, list) else []
    return "".join(map(_joined, filter(None, found)))


def _joined(text: Any) -> str:
    return ("".join(map(str, text)) if isinstance(text, list) else str(text)).strip("\n")


def _fenced(text: str, language: str) -> str:
    """Return a fenced block, whose fence is longer than any in it (CommonMark 0.31, 4.5)."""
    fence = "`" * max((len(ticks) + 1 for ticks in TICKS.findall(text)), default=3)
    return f"{fence}{language}\n{text}\n{fence}" if text else ""
