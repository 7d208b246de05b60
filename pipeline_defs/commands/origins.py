"""Where a document was read, for people: a file, and the byte, line or record in it."""

from __future__ import annotations

from assets.raw.readers.formats import format_named, tell_format
from assets.raw.readers.input_record import ENTRY, position_text
from corpus_loader.places.urls import Url
from resources.settings.plug_ins import PlugInError


def origin_text(file: str | None, row: int | None) -> str | None:
    """Return file and position, such as "a.jsonl, byte 512"; None if they are not known.

    Positions are those of `origin`, whose unit depends on the format; it is "row" if the name of
    the file does not tell that.
    """
    if file is None or row is None:
        return None
    if Url(file).kind == "redis":
        return f"{file}, {position_text(ENTRY, row)}"
    try:
        name, _ = tell_format(file)
        return f"{file}, {position_text(format_named(name).unit if name else 'row', row)}"
    except PlugInError:
        return f"{file}, row {row}"
