"""Next step for a record in quarantine, by its error."""

import re

ENCODE_AGAIN = "Convert the file to UTF-8."
ESCAPES = "Correct the escape, or the program that wrote the file."
GET_AGAIN = "Get the file again, or set `on_damage: drop` to leave out all of its rows."
LARGER = "Raise max_record_bytes of the source, or split the record."
SAID = re.compile(r"\bthis (?:window )?is [^:]+: (.+)", re.DOTALL)  # an error that names its remedy
STEPS = (  # the first part of an error that is found decides
    ("decompression bomb", "Unpack the file to read it anyway."),
    ("must be held whole", "Unpack the file: Parquet compresses inside."),
    (" stream is broken", GET_AGAIN),
    ("(truncated)", GET_AGAIN),
    ("max_record_bytes", LARGER),
    ("not valid UTF-8", ENCODE_AGAIN),
    ("lone surrogate", ESCAPES),
    ("levels deep", "Flatten the record, or leave it out of the file."),
    ("stream field `", "Name the field of the record in `stream_field`, or leave that out."),
    ("the id is beyond", "Let the server make the ids (XADD with *)."),
    ("text field `", "Name the field of the text in `text_field`, or set `field_filter`."),
    ("no column `", "Name the column of the text in `text_field`."),
    ("columns are named `", "Rename all of these columns but one."),
    ("was seen before", "Give the record an id of its own, or leave out `id_field`."),
    ("Parquet", "Get the file again, or write it again."),
    ("CSV is broken", "Quote the field as RFC 4180 says, or set `format`."),
    (" fields, the header has ", "Quote separators inside of fields, or correct the row."),
    ("WARC", "Get the file again; the other records are read."),
    ("JSON", "Correct the line, or the program that wrote it."),
)
CORRECT = "Correct the record, or leave it out of the file."


def next_step(error: str) -> str:
    """Return what to do about a record that could not be read."""
    if said := SAID.search(error):
        return f"{said[1][0].upper()}{said[1][1:]}."
    return next((step for part, step in STEPS if part in error), CORRECT)
