"""A reader: files of `fortune`, whose texts end at lines with nothing but a percent sign."""

from __future__ import annotations

from collections.abc import Iterator

from tokenmill.plugins import Format, InputFile, InputRecord, Slice, SourceConfig, read_lines


def read(file: InputFile, source: SourceConfig, cut: Slice) -> Iterator[InputRecord]:
    """Yield a record for each text; a line that cannot be read is one with its fault."""
    row, texts = 0, list[bytes]()
    for line in read_lines(file, source, cut.span):
        if line.error:
            yield InputRecord(row, None, line.data, line.error)
            row += 1
        elif line.data.rstrip() == b"%":
            yield record(row, texts, source)
            row, texts = row + 1, []
        else:
            texts.append(line.data)
    if texts:
        yield record(row, texts, source)


def record(row: int, lines: list[bytes], source: SourceConfig) -> InputRecord:
    """Return the record of the lines of a text."""
    text = b"\n".join(lines).decode("utf-8", "surrogateescape")  # wrong bytes go to quarantine
    return InputRecord(row, {source.text_field: text})


FORTUNES = Format("fortunes", (".fortunes",), read)
