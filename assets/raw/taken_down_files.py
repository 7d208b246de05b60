"""Leave out the documents, and the records in quarantine, that a takedown means.

A document is meant if its id, its address, its domain or the words of its text are, or if it has
enough passages, or runs of five words, of a text that is meant, alone or within more (`Copies`). A
record in quarantine is no document, but its bytes may be those of one: it is meant if its place has
the id, or if its bytes have the text, a passage of it, or the address.

The record of a patch is forgotten likewise, and the patch stays: so the bytes that it replaces,
which may have the text as well, stay out of the corpus.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
from msgspec import UNSET, UnsetType

from assets.raw.places.patch_files import (
    Patch,
    PatchFile,
    patch_paths,
    read_patch_file,
    replace_patches,
)
from assets.raw.readers.documents import document_id
from assets.text.addresses import first_address_of, first_host_of, url_parts
from assets.text.marks import (
    COMMON_PERCENT,
    LEAST_RUNS,
    RUN_BYTES,
    Copies,
    Marks,
    copied_rows,
    copies_of,
    find_doc_ids,
    find_passages,
    find_runs,
    find_texts,
    marks_of,
    single,
)
from resources.corpus import Corpus
from resources.settings.tracking import TRACKING_PARAMETERS
from resources.store.records import fingerprint_of
from resources.takedowns import URL_FORM, Takedown, UrlForm, read_takedowns
from resources.urls import domains_above

NO_RECORD = '{"taken_down":true}'  # has no text, so that it is in quarantine
TAKEN_DOWN = "taken_down"  # why `raw` leaves a document out
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>\\]+")


@dataclass(frozen=True)
class Wanted:
    """The meaning of some takedowns: sha256 of addresses and domains, and marks.

    `forms` are those in which the takedowns have URLs and domains; UNSET is the first one, of
    which URLs that were plain are found in the form of today, too.
    """

    addresses: frozenset[str]
    domains: frozenset[str]
    forms: tuple[UrlForm | UnsetType, ...]
    ids: Marks
    texts: Marks
    copies: Copies
    runs: Copies

    @property
    def passages(self) -> Marks:
        """Marks of all passages."""
        return self.copies.marks


def wanted_by(takedowns: Sequence[Takedown]) -> Wanted:
    """Return what takedowns mean together; owners of marks are their places."""
    forms = [each.form for each in takedowns if each.addresses or each.domains]
    if UNSET in forms:
        forms.append(UrlForm(URL_FORM, TRACKING_PARAMETERS))
    return Wanted(
        addresses=frozenset(one for each in takedowns for one in each.addresses),
        domains=frozenset(one for each in takedowns for one in each.domains),
        forms=tuple(dict.fromkeys(forms)),
        ids=marks_of((place, each.ids) for place, each in enumerate(takedowns)),
        texts=marks_of((place, each.texts) for place, each in enumerate(takedowns)),
        copies=copies_of(
            (place, passages)
            for place, each in enumerate(takedowns)
            for passages in passages_by_text(each)
        ),
        runs=copies_of(
            ((place, runs) for place, each in enumerate(takedowns) for runs in each.runs or ()),
            RUN_BYTES,
            COMMON_PERCENT,
        ),
    )


def passages_by_text(takedown: Takedown) -> list[bytes]:
    """Return the passages of each text of a request, end to end."""
    if takedown.copies is UNSET:
        return [takedown.passages] if takedown.passages else []
    marks = [*single(takedown.passages)]
    return [
        b"".join(marks[place] for place in np.frombuffer(places, "<u4").tolist())
        for places in takedown.copies
    ]


def with_passages(takedown: Takedown, texts: Iterable[bytes]) -> Takedown:
    """Return a request with the passages of these texts, in an order that tells nothing of them."""
    by_text = sorted({b"".join(sorted({*single(passages)})) for passages in texts if passages})
    marks = sorted({mark for passages in by_text for mark in single(passages)})
    places = {mark: place for place, mark in enumerate(marks)}
    return msgspec.structs.replace(
        takedown,
        passages=b"".join(marks),
        copies=tuple(
            np.array([places[mark] for mark in single(passages)], "<u4").tobytes()
            for passages in by_text
        ),
    )


def with_runs(takedown: Takedown, texts: Iterable[bytes]) -> Takedown:
    """Return a request with the runs of words of these texts; of too few nothing can be told."""
    enough = {runs for runs in texts if len(runs) >= LEAST_RUNS * RUN_BYTES}
    return msgspec.structs.replace(takedown, runs=tuple(sorted(enough)))


@lru_cache(maxsize=2)
def wanted_at(root: Path, count: int) -> Wanted:
    """Return what the first takedowns of a store mean."""
    return wanted_by(read_takedowns(root, count))


def hash_of(part_of_url: str) -> str:
    """Return the sha256 of an address or a domain."""
    return sha256(part_of_url.encode()).hexdigest()


def without_taken_down(
    documents: pl.DataFrame, quarantine: pl.DataFrame, wanted: Wanted
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return documents and quarantine without those that are wanted."""
    return (
        documents.filter(~is_wanted(documents, wanted)),
        quarantine.filter(~is_record_wanted(quarantine, wanted)),
    )


def is_wanted(documents: pl.DataFrame, wanted: Wanted) -> pl.Series:
    """Check which documents (doc_id, url, text) are meant, Boolean."""
    return is_itself_wanted(documents, wanted) | is_copy(documents["text"], wanted)


def is_itself_wanted(documents: pl.DataFrame, wanted: Wanted) -> pl.Series:
    """Check which documents (doc_id, url, text) are meant by their id, URL or whole text."""
    by_id = (found.row for found in find_doc_ids(documents["doc_id"], wanted.ids))
    is_named = among(by_id, documents.height) | is_url_wanted(documents["url"], wanted)
    return is_named | is_text_wanted(documents["text"], wanted)


def is_text_wanted(texts: pl.Series, wanted: Wanted) -> pl.Series:
    """Check which texts are meant as a whole, Boolean."""
    return among((found.row for found in find_texts(texts, wanted.texts)), len(texts))


def is_copy(texts: pl.Series, wanted: Wanted) -> pl.Series:
    """Check which texts have one that is meant, alone or within more, Boolean."""
    return among(owners_of_copied(texts, wanted), len(texts))


def owners_of_copied(texts: pl.Series, wanted: Wanted) -> dict[int, set[int]]:
    """Return the owners of the texts that are meant, by the row that has one of them."""
    copied = copied_rows(find_passages(texts, wanted.passages), wanted.copies)
    for row, owners in copied_rows(find_runs(texts, wanted.runs.marks), wanted.runs).items():
        copied.setdefault(row, set()).update(owners)
    return copied


def among(rows: Iterable[int], height: int) -> pl.Series:
    """Return a Boolean column that is true in some rows."""
    is_found = np.zeros(height, np.bool_)
    is_found[[*rows]] = True
    return pl.Series(is_found)


def is_url_wanted(urls: pl.Series, wanted: Wanted) -> pl.Series:
    """Check which URLs (String, may be null) are meant, in any form, Boolean without nulls."""
    different = urls.alias("url").drop_nulls().unique()
    meant = {
        url
        for form in wanted.forms
        for url, host, address in zip(different, *parts_in(form, different), strict=True)
        if (wanted.addresses and hash_of(address) in wanted.addresses)
        or (wanted.domains and host and is_domain_wanted(host, wanted))
    }
    return urls.is_in(sorted(meant)).fill_null(False)


def parts_in(form: UrlForm | UnsetType, urls: pl.Series) -> pl.DataFrame:
    """Return host and address of URLs (no nulls) in a form that a takedown has."""
    if form:
        return url_parts(urls, form.tracking_parameters)
    lower = pl.col("url").str.to_lowercase()
    return urls.to_frame("url").select(host=first_host_of(lower), address=first_address_of(lower))


def is_domain_wanted(host: str, wanted: Wanted) -> bool:
    """Check that a host is meant, or a domain that it is in."""
    return any(hash_of(domain) in wanted.domains for domain in domains_above(host))


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
    if find_texts(values, wanted.texts) or find_passages(values, wanted.passages):
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


def takedown_ids(named: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the ids of the takedowns that name a task."""
    return tuple(sorted({one for ids in named.values() for one in ids}))


def obeying(fingerprint: str, takedowns: Sequence[str]) -> str:
    """Return the fingerprint of a task that takedowns name."""
    return fingerprint_of(fingerprint, (*takedowns,)) if takedowns else fingerprint


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
