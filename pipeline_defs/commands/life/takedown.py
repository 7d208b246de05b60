"""`corpus takedown`: record which documents the next run removes, everywhere downstream.

Every part of `raw` that the store has is read once, those of older manifests too: the documents
that are meant, the copies of their texts, and the parts that have them are known from then on, and
no nightly run has to look for them.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import polars as pl
from cyclopts import App, Group, Parameter

from assets.raw.raw_records import RawRecords
from assets.raw.taken_down_files import hash_of, wanted_by
from assets.raw.taken_down_patch_files import forget_patches
from assets.text.marks import DIGEST_BYTES, MARK_BYTES, id_marks, passage_marks, text_marks
from pipeline_defs.commands.life.raw_search import (
    Hits,
    cluster_members,
    hits_in,
    matching_documents,
    named_documents,
    on_all_cores,
    raw_parts,
)
from pipeline_defs.commands.terminal.options import check_one_given
from pipeline_defs.commands.terminal.output import ONE_LINE
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.runs.run_lock import run_lock, this_holder
from resources.settings.named_files import NamedFileError, read_named_file
from resources.store.named_states import Tag, read_holds, read_tags
from resources.store.records import Manifest
from resources.store.store import Store
from resources.takedown_gate import forbidden_documents, forbidden_in_hold
from resources.takedowns import URL_FORM, Takedown, UrlForm, add_takedown
from resources.urls import parse_url

MOST_MATCH_BYTES = 64 << 20
COMMON = 5  # documents that stay: a passage of so many is a form, not the text of one document
SHOWN_ROWS = 20  # of a file
DOC_ID = re.compile(r"[0-9a-f]{32}")
WHICH = Group("Documents", validator=check_one_given)

takedown = App(
    name="takedown",
    help="Remove documents from the corpus for good, everywhere, and prove it.",
)
takedown.command(
    "pipeline_defs.commands.life.takedown_prove:prove",
    name="prove",
    help="Search every kept state for what takedowns mean; --purge removes states that have it.",
)


@takedown.default
def request(
    *,
    url: Annotated[str | None, Parameter(group=WHICH, help="The documents of this URL.")] = None,
    domain: Annotated[
        str | None, Parameter(group=WHICH, help="All documents of this domain and those below it.")
    ] = None,
    doc: Annotated[str | None, Parameter(group=WHICH, help="The document of this doc_id.")] = None,
    match: Annotated[
        Path | None,
        Parameter(group=WHICH, help="Documents with the text in this file, alone or within more."),
    ] = None,
    reason: Annotated[str, Parameter(help="Why; it is kept as written, so name nobody in it.")],
    near: Annotated[
        bool, Parameter(help="Near copies, too: all of their duplicate clusters.")
    ] = False,
) -> int:
    """Find the documents, record the request, and print what the next run will remove."""
    corpus = load_corpus()
    form = UrlForm(URL_FORM, corpus.settings.urls.tracking_parameters)
    asked = asked_for(url, domain, doc, match, form)
    asked = msgspec.structs.replace(asked, reason=reason, near=near)
    began = time.monotonic()
    with run_lock(corpus.store.root, this_holder("", "corpus takedown"), say, time.sleep):
        found = find(corpus, asked)
        number = add_takedown(corpus.store.root, found.takedown)
        num_patched = forget_patches(corpus, wanted_by([found.takedown]))
    for line in lines_of(number, found):
        say(line)
    if num_patched:
        say(f"Records of yours are gone from {num_patched:,} files of patches.")
    for line in named_states_with(corpus.store):
        say(line)
    say(f"Searched in {time.monotonic() - began:.1f} s. Next: corpus build, then")
    say("corpus takedown prove --purge")
    return 0


def named_states_with(store: Store) -> Iterator[str]:
    """Yield what to do about holds and tags of states with documents that were taken down."""
    for source, hold in read_holds(store.root).items():
        if found := forbidden_in_hold(store, hold):
            yield (
                f"{hold}, which has {found}. A build fails for it until you give `corpus rollback "
                f"{source} --release`; until then no phase that draws from it is mixed or read."
            )
    for tag in read_tags(store.root).values():
        if any(forbidden_documents(store, raw) for raw in raw_manifests(store, tag)):
            yield (
                f"The tag {tag.name} names a state with documents that were taken down. It stays "
                f"on disk until `corpus takedown prove --purge --tag {tag.name}`; a loader that "
                "opens it raises."
            )


def raw_manifests(store: Store, tag: Tag) -> Iterator[Manifest]:
    """Yield the `raw` manifests that a tag names."""
    for named in tag.manifests:
        if named.stage == RawRecords.name:
            yield store.partition(named.stage, named.partition).read_manifest(named.number)


def asked_for(
    url: str | None, domain: str | None, doc: str | None, match: Path | None, form: UrlForm
) -> Takedown:
    """Return a request as it is given; UsageError for what can mean no document, or too many."""
    if url is not None:
        if not (address := parse_url(url).address(form.tracking_parameters)):
            raise UsageError(f"{url!r:.80} is no URL. Give one such as https://example.org/page.")
        return Takedown("url", "", addresses=(hash_of(address),), form=form)
    if domain is not None:
        return Takedown("domain", "", domains=(hash_of(checked_domain(domain)),), form=form)
    if doc is not None:
        if not DOC_ID.fullmatch(doc.lower()):
            raise UsageError(f"{doc!r:.80} is no doc_id: give all of its 32 hex digits.")
        return Takedown("doc", "", ids=id_marks([doc.lower()])[0])
    assert match is not None, "one of the group is given"
    try:
        text = read_named_file(match, MOST_MATCH_BYTES).decode()
    except (NamedFileError, UnicodeDecodeError) as error:
        raise UsageError(f"--match: {error}") from error
    texts = pl.Series([text])
    if not (marks := text_marks(texts)[0]):
        raise UsageError(f"{match}: no words. Give a file with the text of a document, in UTF-8.")
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


@dataclass(frozen=True)
class FoundDocuments:
    """A request with what it found.

    documents  those that are meant, from every version of every part
    hits       parts that have any of it
    near       number of near copies that stay, as they were not asked for
    """

    takedown: Takedown
    documents: pl.DataFrame
    hits: list[Hits]
    near: int


def find(corpus: Corpus, asked: Takedown) -> FoundDocuments:
    """Find the documents of a request, the copies of their texts, and the parts that have them."""
    parts, wanted = raw_parts(corpus), wanted_by([asked])
    search = matching_documents if asked.kind == "match" else named_documents
    named = [frame for frame in on_all_cores(partial(search, wanted=wanted), parts)]
    members = cluster_members(corpus, {doc_id for each in named for doc_id in each["doc_id"]})
    if asked.near:
        of_members = b"".join(id_marks(sorted(members)))
        also = wanted_by([msgspec.structs.replace(asked, ids=asked.ids + of_members)])
        named += on_all_cores(partial(named_documents, wanted=also), parts)
    asked = with_marks(asked, pl.concat(named) if named else pl.DataFrame())
    hits = list(on_all_cores(partial(hits_in, wanted=wanted_by([asked])), parts))
    hits_of_parts = [each for each in hits if each.documents.height or each.records]
    parts_with = [each.part for each in hits_of_parts]
    documents = pl.concat(each.documents for each in hits) if hits else pl.DataFrame()
    asked = without_forms(with_marks(asked, documents), hits)
    meant = set(documents["doc_id"]) if documents.width else set()
    takedown = msgspec.structs.replace(
        asked,
        parts=names_by_source((each.source, each.task) for each in parts_with),
        published=names_by_source((each.source, each.stem) for each in parts_with),
        documents=len(meant),
    )
    return FoundDocuments(takedown, documents, hits_of_parts, len(members - meant))


def with_marks(asked: Takedown, documents: pl.DataFrame) -> Takedown:
    """Add the marks of documents to a request."""
    if documents.is_empty():
        return asked
    different = documents.unique("doc_id", maintain_order=True)
    texts = documents["text"].unique(maintain_order=True)
    return msgspec.structs.replace(
        asked,
        ids=joined(asked.ids, id_marks(different["doc_id"].to_list())),
        texts=joined(asked.texts, text_marks(texts)),
        passages=joined(asked.passages, passage_marks(texts)),
    )


def joined(marks: bytes, more: list[bytes]) -> bytes:
    """Return marks without repetitions, in an order that tells nothing of the texts."""
    return b"".join(sorted({one for each in (marks, *more) for one in single(each)}))


def single(marks: bytes) -> Iterator[bytes]:
    """Yield each of some marks that are end to end."""
    for start in range(0, len(marks), MARK_BYTES):
        yield marks[start : start + MARK_BYTES]


def without_forms(asked: Takedown, hits: list[Hits]) -> Takedown:
    """Leave out passages that COMMON documents which stay have, such as licences and menus.

    They are no text of the one document, and the proof would find them for ever.
    """
    others = Counter(digest for _, digest in set().union(*(each.passages for each in hits)))
    kept = [
        one for one in single(asked.passages) if others[one[MARK_BYTES - DIGEST_BYTES :]] < COMMON
    ]
    return msgspec.structs.replace(asked, passages=b"".join(kept))


def names_by_source(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return names without repetitions by their source."""
    names: dict[str, set[str]] = {}
    for source, name in pairs:
        names.setdefault(source, set()).add(name)
    return {source: tuple(sorted(of_source)) for source, of_source in sorted(names.items())}


def lines_of(number: int, found: FoundDocuments) -> Iterator[str]:
    """Yield what a request found, and the input files that have it, safe to print."""
    takedown, records = found.takedown, sum(each.records for each in found.hits)
    num_parts = sum(map(len, takedown.parts.values()))
    yield (
        f"Takedown {number}: {takedown.documents:,} documents in {num_parts:,} parts of raw"
        + (f", {records:,} records in quarantine" if records else "")
        + f"; {len(takedown.passages) // MARK_BYTES:,} passages to look for."
    )
    if not takedown.documents:
        yield "Documents that come later are left out if the request means them."
    if found.near and not takedown.near:
        yield f"Near copies that stay: {found.near:,}. Before a build, --near removes them, too."
    if found.documents.height:
        yield "These input files are yours, and keep the documents until you delete them there:"
        places = found.documents.unique("doc_id").unnest("origin").sort("file", "row")
        for (file,), rows in places.group_by(["file"], maintain_order=True):
            shown = ", ".join(f"{row:,}" for row in rows["row"].head(SHOWN_ROWS))
            more = ", ..." if rows.height > SHOWN_ROWS else ""
            yield f"  {str(file).translate(ONE_LINE)}: row {shown}{more}"


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")
