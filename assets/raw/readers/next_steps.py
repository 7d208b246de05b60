"""Next step for a record in quarantine, by its error."""

import re

ENCODE_AGAIN = "Convert the file to UTF-8."
ESCAPES = "Correct the escape, or the program that wrote the file."
GET_AGAIN = "Get the file again, or set `on_damage: drop` to leave out all of its rows."
GET_AGAIN_WHOLE = "Get the file again, or write it again."
LARGER = "Raise max_record_bytes of the source, or split the record."
SMALLER_BATCHES = (
    "Write it as Parquet, or with smaller batches (`record_batch_size` of Polars, `max_chunksize` "
    "of pyarrow)."
)
SAID = re.compile(r"\bthis (?:window )?is [^:]+: (.+)", re.DOTALL)  # an error that names its remedy
ARCHIVE = "Write the archive again, with names that are relative and without `..`."
CHARSET = "Convert the page to UTF-8, and let it say so."
LEAVE_PAGE = "Leave the page out, or save its text."
STEPS = (  # the first part of an error that is found decides
    ("Permission denied", "Ask for the right to read it."),
    ("members overlap", "Do not read the archive: no ordinary program writes such a one."),
    ("decompression bomb", "Unpack the file to read it anyway."),
    ("(DRM)", "Get the book without it from its publisher, or leave it out."),
    ("it is encrypted", "Unpack the archive with its password, and name the folder in `where`."),
    ("compression method", "Write the archive again with deflate, or unpack it."),
    (" leads out of its archive", ARCHIVE),
    (" has an absolute name", ARCHIVE),
    ("its sample has a ", "Give each sample one text, one .json and one .cls."),
    ("zip member ", "Unpack the archive, or write it again."),
    ("must be held whole", "Unpack the file: Parquet compresses inside."),
    (" has a record batch of ", SMALLER_BATCHES),
    (" stream is broken", GET_AGAIN),
    ("(truncated)", GET_AGAIN),
    ("max_record_bytes", LARGER),
    ("not valid UTF-8", ENCODE_AGAIN),
    ("lone surrogate", ESCAPES),
    ("levels deep", "Flatten the record, or leave it out of the file."),
    ("stream field `", "Name the field of the record in `stream_field`, or leave that out."),
    ("the id is beyond", "Let the server make the ids (XADD with *)."),
    (" is list, expected", "Set `kind: chat` for lists of messages, or name a field of text."),
    ("text field `", "Name the field of the text in `text_field`, or set `field_filter`."),
    ("no column `", "Name the column of the text in `text_field`."),
    ("columns are named `", "Rename all of these columns but one."),
    ("was seen before", "Give the record an id of its own, or leave out `id_field`."),
    ("zip archive", GET_AGAIN_WHOLE),
    ("tar header", "Get the archive again; its other members are read."),
    ("Arrow", GET_AGAIN_WHOLE),
    ("Parquet", GET_AGAIN_WHOLE),
    ("CSV is broken", "Quote the field as RFC 4180 says, or set `format`."),
    (" fields, the header has ", "Quote separators inside of fields, or correct the row."),
    ("malformed in the encoding", CHARSET),
    ("encoding that is not decoded", CHARSET),
    ("page ends its parser", LEAVE_PAGE),
    ("page cannot be read", LEAVE_PAGE),
    ("XML", "Get the file again; the other records are read."),
    ("subtitle cue", "Correct the times of the cue, or leave it out of the file."),
    ("notebook cannot", "Open it in Jupyter and save it, which writes nbformat 4."),
    ("message cannot", "Correct the header of the message, or leave it out of the file."),
    ("EPUB cannot", "Get the book again, or check it with epubcheck."),
    ("WARC", "Get the file again; the other records are read."),
    ("chat role ", "Rename the role in the file, or leave the record out of it."),
    ("chat message has `", "Write it into the content, or leave out the key or the record."),
    ("chat has `", "Write it into the messages, or leave the field out with `columns`."),
    ("chat has more than one system", "Keep one of them: `columns` leaves fields out."),
    ("chat ", "Correct the messages, name their field in `text_field`, or set `kind: text`."),
    ("JSON", "Correct the line, or the program that wrote it."),
)
CORRECT = "Correct the record, or leave it out of the file."


def next_step(error: str) -> str:
    """Return what to do about a record that could not be read."""
    if said := SAID.search(error):
        return f"{said[1][0].upper()}{said[1][1:]}."
    return next((step for part, step in STEPS if part in error), CORRECT)
