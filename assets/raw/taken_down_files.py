"""Leave out the documents, and the records in quarantine, that a takedown means.

A record in quarantine is no document, but its bytes may be those of one: it is meant if its place
has the id, or if its bytes have the text, a passage of it, or the address.

The record of a patch is forgotten likewise, and the patch stays: so the bytes that it replaces,
which may have the text as well, stay out of the corpus.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import polars as pl

from assets.raw.places.patch_files import PatchFile, patch_paths, read_patch_file, replace_patches
from assets.raw.readers.documents import document_id
from assets.raw.readers.input_record import Patch
from assets.text.marks import find_doc_ids
from assets.text.takedown_files import Wanted, is_url_wanted, is_wanted, owners_of_quotes
from resources.corpus import Corpus

NO_RECORD = '{"taken_down":true}'  # has no text, so that it is in quarantine
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>\\]+")


def without_taken_down(
    documents: pl.DataFrame, quarantine: pl.DataFrame, wanted: Wanted
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return documents and quarantine without those that are wanted."""
    return (
        documents.filter(~is_wanted(documents, wanted)),
        quarantine.filter(~is_record_wanted(quarantine, wanted)),
    )


def is_record_wanted(quarantine: pl.DataFrame, wanted: Wanted) -> pl.Series:
    """Check which records in quarantine are meant, Boolean."""
    rows = quarantine.select("source", "file", "position", "raw").iter_rows()
    meant = [
        is_place_wanted(source, file, position, wanted) or is_raw_wanted(raw or b"", wanted)
        for source, file, position, raw in rows
    ]
    return pl.Series(meant, dtype=pl.Boolean)


def is_place_wanted(source: str, file: str, position: str, wanted: Wanted) -> bool:
    """Check that the document at a place of a file, "row 3", is meant."""
    row = position.rpartition(" ")[2]
    if not row.isdecimal():
        return False
    doc_id = pl.Series([document_id(source, file, int(row))])
    return bool(find_doc_ids(doc_id, wanted.ids))


def is_raw_wanted(raw: bytes, wanted: Wanted) -> bool:
    """Check that the bytes of a record have something that is meant."""
    values = pl.Series([*texts_in(raw)], dtype=pl.String)
    if owners_of_quotes(values, wanted):
        return True
    urls = pl.Series([url for text in values for url in ADDRESS.findall(text)], dtype=pl.String)
    return is_url_wanted(urls, wanted).any()


def texts_in(raw: bytes) -> Iterator[str]:
    """Yield the strings of a JSON record; of bytes that are none, all of them as one text."""
    try:
        yield from strings_in([msgspec.json.decode(raw)])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        text = raw.decode("utf-8", "replace")
        yield re.sub(r"\\u([0-9a-fA-F]{4})", unescaped, text.replace("\\n", " "))


def unescaped(match: re.Match[str]) -> str:
    """Return the character of an escape in JSON; a blank for half of a pair."""
    code = int(match[1], 16)
    return " " if 0xD800 <= code < 0xE000 else chr(code)


def strings_in(values: Iterable[object]) -> Iterator[str]:
    """Yield the strings in values of JSON, at any depth."""
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value.encode("utf-8", "replace").decode()
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def patches_meant(corpus: Corpus, wanted: Wanted) -> dict[Path, PatchFile]:
    """Return the files with a patch that is meant, as they are without its record."""
    found: dict[Path, PatchFile] = {}
    for path in patch_paths(corpus.store.root):
        before, source = read_patch_file(path), path.parent.name
        after = PatchFile(tuple(without_record(each, source, wanted) for each in before.patches))
        if after != before:
            found[path] = after
    return found


def without_record(patch: Patch, source: str, wanted: Wanted) -> Patch:
    """Return a patch, without its record if that is meant."""
    is_meant = is_place_wanted(source, patch.file, f"row {patch.row}", wanted) or is_raw_wanted(
        patch.record.encode(), wanted
    )
    return msgspec.structs.replace(patch, record=NO_RECORD) if is_meant else patch


def forget_patches(corpus: Corpus, wanted: Wanted) -> int:
    """Remove the records of patches that are meant from the store; return the number of files."""
    meant = patches_meant(corpus, wanted)
    for path, after in meant.items():
        replace_patches(path, after)
    return len(meant)


def lost_its_record(patch: Patch) -> bool:
    """Return whether a takedown removed the record of a patch."""
    return patch.record == NO_RECORD
