"""Notices of a takedown: what a command line or a file of notices asks for, as requests.

A file has a notice a line: a URL, a doc_id, or a JSON object with one of `url`, `domain`, `doc` and
`text`, and if wanted with `reason` and `date`. Empty lines, and those that begin with #, are left
out.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import polars as pl
from msgspec import UNSET

from assets.raw.taken_down_files import hash_of
from assets.text.marks import MARK_BYTES, id_marks, passage_marks, text_marks
from resources.errors import UsageError
from resources.settings.named_files import NamedFileError, read_named_file
from resources.takedowns import Takedown, UrlForm
from resources.urls import parse_url

MOST_FILE_BYTES = 64 << 20
DOC_ID = re.compile(r"[0-9a-f]{32}")
Asked = tuple[str, bool, str | bytes]  # kind, with near copies or without, hash or mark


class Notice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked for: one of the first four; reason and date if they are its own."""

    url: str | None = None
    domain: str | None = None
    doc: str | None = None
    text: str | None = None
    reason: str | None = None
    date: str | None = None

    def asked(self, form: UrlForm) -> Takedown:
        """Return the request; UsageError for what can mean no document, or too many."""
        given = [each for each in (self.url, self.domain, self.doc, self.text) if each is not None]
        if len(given) != 1:
            raise UsageError("a notice has one of url, domain, doc and text.")
        takedown = requested(self, form)
        reason, date = self.reason or "", UNSET if self.date is None else self.date
        return msgspec.structs.replace(takedown, reason=reason, date=date)


def requested(notice: Notice, form: UrlForm) -> Takedown:
    """Return the request of a notice, with what it means alone."""
    if notice.url is not None:
        if not (address := parse_url(notice.url).address(form.tracking_parameters)):
            raise UsageError(
                f"{notice.url!r:.80} is no URL. Give one such as https://example.org/page."
            )
        return Takedown("url", "", addresses=(hash_of(address),), form=form)
    if notice.domain is not None:
        domains = (hash_of(checked_domain(notice.domain)),)
        return Takedown("domain", "", domains=domains, form=form)
    if notice.doc is not None:
        if not DOC_ID.fullmatch(notice.doc.lower()):
            raise UsageError(f"{notice.doc!r:.80} is no doc_id: give all of its 32 hex digits.")
        return Takedown("doc", "", ids=id_marks([notice.doc.lower()])[0])
    texts = pl.Series([notice.text])
    if not (marks := text_marks(texts)[0]):
        raise UsageError("no words. Give the text of a document, in UTF-8.")
    return Takedown("match", "", texts=marks, passages=passage_marks(texts)[0])


def checked_domain(domain: str) -> str:
    """Return a domain in normal form; UsageError for a public suffix, which is of many owners."""
    from publicsuffixlist import PublicSuffixList

    url = parse_url(domain.strip().removeprefix("*").removeprefix("."))
    if url.host and url.place != "/":
        raise UsageError(f"{domain!r:.80} is a URL, and no domain. Give it with --url.")
    if not url.host or not PublicSuffixList().privatesuffix(url.domain):
        raise UsageError(
            f"{domain!r:.80} is no domain that one owner can have. Give one such as example.org, "
            "or one below it."
        )
    return url.domain


def read_text(path: Path, option: str) -> str:
    """Return the text of a file that an option names; UsageError if it cannot be read."""
    try:
        return read_named_file(path, MOST_FILE_BYTES).decode("utf-8-sig")
    except (NamedFileError, UnicodeDecodeError) as error:
        raise UsageError(f"{option}: {error}") from error


def notices_in(path: Path, form: UrlForm) -> list[Takedown]:
    """Return the requests of a file of notices, each once; UsageError that names a wrong line."""
    found: dict[frozenset[Asked], Takedown] = {}
    for number, line in enumerate(read_text(path, "--file").splitlines(), 1):
        given = line.strip()
        if not given or given.startswith("#"):
            continue
        try:
            takedown = notice_of(given).asked(form)
        except (UsageError, msgspec.MsgspecError) as error:
            raise UsageError(
                f"{path}, line {number}: {error} No request of the file was recorded."
            ) from error
        found.setdefault(frozenset(keys_of(takedown)), takedown)
    if not found:
        raise UsageError(f"{path} has no notice. Give one a line: a URL, a doc_id, or JSON.")
    return [*found.values()]


def keys_of(takedown: Takedown) -> set[Asked]:
    """Return what a request is known by; one that was recorded has those of its notice."""
    marks = {"doc": takedown.ids, "match": takedown.texts}.get(takedown.kind, b"")
    own = (marks[at : at + MARK_BYTES] for at in range(0, len(marks), MARK_BYTES))
    meant: list[str | bytes] = [*takedown.addresses, *takedown.domains, *own]
    return {(takedown.kind, takedown.near, each) for each in meant}


def notice_of(line: str) -> Notice:
    """Return the notice of a line."""
    if line.startswith("{"):
        return msgspec.json.decode(line, type=Notice)
    return Notice(doc=line) if DOC_ID.fullmatch(line.lower()) else Notice(url=line)
