"""Tell the documents that takedowns mean: by id, address, domain or the words of their texts.

A document is meant, too, if it has enough passages, or runs of five words, of a text that is meant,
alone or within more (`Copies`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
from msgspec import UNSET, UnsetType

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
from resources.settings.tracking import TRACKING_PARAMETERS
from resources.store.records import fingerprint_of
from resources.takedowns import URL_FORM, Takedown, UrlForm, read_takedowns
from resources.urls import domains_above

TAKEN_DOWN = "taken_down"  # why a stage leaves a document out


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


def is_wanted(documents: pl.DataFrame, wanted: Wanted) -> pl.Series:
    """Check which documents (doc_id, url, text) are meant, Boolean."""
    return is_itself_wanted(documents, wanted) | is_copy(documents["text"], wanted)


def has_wanted_text(texts: pl.Series, wanted: Wanted) -> pl.Series:
    """Check which texts are meant as a whole, or have one that is, Boolean."""
    return is_text_wanted(texts, wanted) | is_copy(texts, wanted)


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


def owners_of_quotes(texts: pl.Series, wanted: Wanted) -> dict[int, set[int]]:
    """Return the owners of marked texts and passages, by the row that has even one of them.

    Of what is no document nothing is kept that has a passage of one.
    """
    owners: dict[int, set[int]] = {}
    for found in (*find_texts(texts, wanted.texts), *find_passages(texts, wanted.passages)):
        owners.setdefault(found.row, set()).add(found.owner)
    return owners


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


def takedown_ids(named: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the ids of the takedowns that name a task."""
    return tuple(sorted({one for ids in named.values() for one in ids}))


def obeying(fingerprint: str, takedowns: Sequence[str]) -> str:
    """Return the fingerprint of a task that takedowns name."""
    return fingerprint_of(fingerprint, (*takedowns,)) if takedowns else fingerprint
