"""`corpus takedown`: record which documents the next run removes, everywhere downstream.

Every part of `raw` that the store has is read, those of older manifests too: the documents that are
meant, the copies of their texts, and the parts that have them are known from then on, and no
nightly run has to look for them.

A file of notices has one a line: a URL, a doc_id, or a JSON object with one of `url`, `domain`,
`doc` and `text`, and if wanted with `reason` and `date`. Empty lines, and those that begin with #,
are left out.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
import polars as pl
from cyclopts import App, Group, Parameter
from msgspec import UNSET

from assets.raw.raw_records import RAW
from assets.raw.taken_down_files import forget_patches
from assets.text.marks import MARK_BYTES, id_marks, passage_marks, run_marks, text_marks
from assets.text.takedown_files import hash_of, wanted_by, with_runs
from assets.text.text_form import TEXT_FORM
from pipeline_defs.commands.answers import answer_lines
from pipeline_defs.commands.look.find_index import remove_indexes
from pipeline_defs.commands.takedown.find import FoundDocuments, find
from pipeline_defs.commands.terminal import Json, alone_on, check_one_given
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.dagster_home import records_folder
from resources.errors import UsageError
from resources.settings.named_files import NamedFileError, read_named_file
from resources.store.inventory import remove_stored, stored_files
from resources.store.named_states import read_rollbacks, read_tags
from resources.store.store import Store
from resources.takedowns import (
    URL_FORM,
    Takedown,
    UrlForm,
    add_takedown,
    forbidden_documents,
    forbidden_in_rollback,
    read_takedowns,
)
from resources.tasks import GLOBAL
from resources.urls import parse_url

SHOWN_ROWS = 20  # of a file
SHOWN_REQUESTS = 20  # of a file of notices, those that found something
MOST_FILE_BYTES = 64 << 20
DOC_ID = re.compile(r"[0-9a-f]{32}")
AMOUNTS = ("documents", "parts", "records", "passages", "near_copies")
FOUND: dict[str, Any] = {
    **{"number": pl.Int64, "kind": pl.String},
    **dict.fromkeys(AMOUNTS, pl.Int64),
    "is_quoted": pl.Boolean,  # by items of evaluation sets
}
PLACES: dict[str, Any] = {"doc_id": pl.String, "file": pl.String, "row": pl.Int64}
Asked = tuple[str, bool, str | bytes]  # kind, with near copies or without, hash or mark
WHICH = Group("Documents", validator=check_one_given)


VERBS = {
    "prove": (
        "prove:prove",
        "Search every kept state for what takedowns mean; --purge removes states that have it.",
    ),
    "list": ("records:list_requests", "List the requests: what each found, and when."),
    "withdraw": (
        "records:withdraw",
        "Withdraw a request: its documents come back with the next build.",
    ),
    "export": (
        "records:export",
        "Write the requests to a file for an auditor: .csv, or .jsonl with JSON Lines.",
    ),
}

takedown = App(
    name="takedown",
    help="Remove documents from the corpus for good, everywhere, and prove it.",
)
for verb, (function, meaning) in VERBS.items():
    takedown.command(f"pipeline_defs.commands.takedown.{function}", name=verb, help=meaning)


@takedown.default
def request(  # noqa: PLR0913  what a notice can say
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
    file: Annotated[
        Path | None,
        Parameter(
            group=WHICH,
            help="A notice a line: a URL, a doc_id, or JSON (docs/takedown.md).",
        ),
    ] = None,
    reason: Annotated[str, Parameter(help="Why; it is kept as written, so name nobody in it.")],
    date: Annotated[str | None, Parameter(help="Date of the notice; kept as written.")] = None,
    near: Annotated[bool, Parameter(help="Near copies, too: all of their clusters.")] = False,
    dry_run: Annotated[bool, Parameter(help="Only count what would be removed.")] = False,
    json: Json = False,
) -> int:
    """Find the documents, record the request, and print what the next run will remove."""
    corpus = load_corpus()
    form = UrlForm(URL_FORM, corpus.settings.urls.tracking_parameters)
    text = None if match is None else read_text(match, "--match")
    notice = Notice(url, domain, doc, text, reason, date)
    asked = partial(Notice.asked, form=form, command=notice, near=near)
    requests = [asked(notice)] if file is None else requests_in(file, asked)
    told = recorded(corpus, requests, are_many=file is not None, is_dry=dry_run)
    steps = {"next": [] if dry_run else [*next_steps(corpus.store)]}
    end = ["Next:", *steps["next"]] if steps["next"] else ["Nothing was recorded."]
    answer_lines([*lines_of(**told), *end], told | steps, json=json)
    return 0


def recorded(
    corpus: Corpus, asked: Sequence[Takedown], *, are_many: bool, is_dry: bool
) -> dict[str, Any]:
    """Record requests, each with what it found; return that, as `lines_of` takes it."""
    store, began = corpus.store, time.monotonic()
    with alone_on(store.root, "corpus takedown"):
        # Notices that are recorded are left out: a file can be given again after a kill.
        known = {key for each in read_takedowns(store.root) if are_many for key in keys_of(each)}
        new = [each for each in asked if known.isdisjoint(keys_of(each))]
        found = find(corpus, new)
        takedowns = [each.takedown for each in found]
        first = 0 if is_dry or not found else add_takedown(store.root, *takedowns)
        num_patched = 0 if is_dry else forget(corpus, takedowns)
    return {
        "requests": pl.DataFrame([*found_rows(first, found)], FOUND, orient="row"),
        "documents": found_places([each.documents for each in found if each.documents.height]),
        "known": len(asked) - len(new),
        "patches": num_patched,
        "named_states": [*named_states_with(store)],
        "seconds": time.monotonic() - began,
    }


def next_steps(store: Store) -> Iterator[str]:
    """Yield the commands that remove what was taken down, in order."""
    for source, rollback in read_rollbacks(store.root).items():
        if forbidden_in_rollback(store, rollback):
            yield f"corpus states rollback {source} --release"
    yield from ("corpus build", "corpus takedown prove --purge")


def forget(corpus: Corpus, takedowns: Sequence[Takedown]) -> int:
    """Remove what is left beside the stages: what is made again, indexes, records of patches.

    Return the number of files of patches. Previews and tables of sources without a document of the
    takedowns stay. Those of stages that are of all sources come back with the next build, as far as
    their documents stay, and tables with the next push.
    """
    concerned = {source for each in takedowns for source in each.parts}
    if concerned:
        others = {*corpus.settings.source_names()} - concerned
        root, remove = corpus.store.root, list[Path]()
        for each in stored_files(root, records_folder(root)):
            if each.text in ("remade", "left") and each.partition not in others:
                remove.append(each.path)
        remove_stored(root, remove)
        remove_indexes(corpus.store, takedowns)
    return forget_patches(corpus, wanted_by(takedowns))


def named_states_with(store: Store) -> Iterator[str]:
    """Yield what to do about holds and tags of states with documents that were taken down."""
    for source, hold in read_rollbacks(store.root).items():
        if found := forbidden_in_rollback(store, hold):
            yield (
                f"{hold}, which has {found}. A build fails for it until you give `corpus states "
                f"rollback {source} --release`; until then no phase that draws from it is mixed or "
                "read."
            )
    for tag in read_tags(store.root).values():
        of_raw = (
            store.partition(each.stage, each.partition).read_manifest(each.number)
            for each in tag.manifests
            if each.stage == RAW.name
        )
        if any(forbidden_documents(store, raw) for raw in of_raw):
            yield (
                f"The tag {tag.name} names a state with documents that were taken down. It stays "
                f"on disk until `corpus takedown prove --purge --tag {tag.name}`; a loader that "
                "opens it raises."
            )


def found_rows(first: int, found: Sequence[FoundDocuments]) -> Iterator[tuple[Any, ...]]:
    """Yield a row of FOUND for each request; `first` is 0 if they are not recorded."""
    for number, each in enumerate(found, first):
        asked = each.takedown
        num_parts = sum(len(names) for at, names in asked.parts.items() if at != GLOBAL)
        yield (
            *(number if first else None, asked.kind, asked.documents, num_parts, each.records),
            len(asked.passages) // MARK_BYTES,
            0 if asked.near else each.near,
            GLOBAL in asked.parts,
        )


def found_places(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the places of documents in the input files."""
    if not tables:
        return pl.DataFrame(schema=PLACES)
    places = pl.concat(tables, how="diagonal").unique("doc_id").unnest("origin")
    return places.sort("file", "row").select(*PLACES)


def lines_of(
    requests: pl.DataFrame,
    documents: pl.DataFrame,
    known: int,
    patches: int,
    named_states: Sequence[str],
    seconds: float,
) -> Iterator[str]:
    """Yield what requests found, and the input files that have it."""
    something = requests.filter((pl.col("parts") > 0) | pl.col("is_quoted"))
    if requests.height != 1 or known:
        numbers = requests["number"].drop_nulls()
        place = f"takedowns {numbers[0]} to {numbers[-1]}" if len(numbers) else "not recorded"
        yield (
            f"{requests.height:,} notices ({place}): {documents.height:,} documents; "
            f"{requests.height - something.height:,} found nothing, {known:,} more are recorded "
            "already."
        )
    shown = something if requests.height != 1 else requests
    for each in shown.head(SHOWN_REQUESTS).iter_rows(named=True):
        name = f"By {each['kind']}" if each["number"] is None else f"Takedown {each['number']}"
        records = f", {each['records']:,} records in quarantine" if each["records"] else ""
        yield (
            f"{name}: {each['documents']:,} documents in {each['parts']:,} parts of raw{records}; "
            f"{each['passages']:,} passages to look for."
        )
    if shown.height > SHOWN_REQUESTS:
        yield f"and {shown.height - SHOWN_REQUESTS:,} more: `corpus takedown list` has all."
    if not requests["documents"].sum():
        yield "Documents that come later are left out if a request means them."
    if requests["is_quoted"].any():
        yield (
            "Items of evaluation sets quote it. The next build leaves them out of the store, and "
            "finds no document by them any more; your files keep them."
        )
    if near := requests["near_copies"].sum():
        yield f"Near copies that stay: {near:,}. Before a build, --near removes them, too."
    yield from input_lines(documents)
    if patches:
        yield f"Records of yours are gone from {patches:,} files of patches."
    yield from named_states
    yield f"Searched in {seconds:.1f} s."


def input_lines(documents: pl.DataFrame) -> Iterator[str]:
    """Yield the input files that have documents, with the first rows."""
    if documents.height:
        yield "These input files are yours, and keep the documents until you delete them there:"
    for (file,), rows in documents.group_by(["file"], maintain_order=True):
        some = ", ".join(f"{row:,}" for row in rows["row"].head(SHOWN_ROWS))
        yield f"  {file}: row {some}{', ...' if rows.height > SHOWN_ROWS else ''}"


class Notice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A notice: one of the first four; reason and date if they are its own."""

    url: str | None = None
    domain: str | None = None
    doc: str | None = None
    text: str | None = None
    reason: str | None = None
    date: str | None = None

    def asked(self, form: UrlForm, command: Notice, *, near: bool) -> Takedown:
        """Return the request, with reason and date of the command where it has none of its own.

        Raises UsageError for what can mean no document, or too many.
        """
        given = [each for each in (self.url, self.domain, self.doc, self.text) if each is not None]
        if len(given) != 1:
            raise UsageError("a notice has one of url, domain, doc and text.")
        reason, date = self.reason or command.reason or "", self.date or command.date
        date_or_unset = UNSET if date is None else date
        meant = self.meant(form)
        return msgspec.structs.replace(
            meant, reason=reason, date=date_or_unset, near=near, text_form=TEXT_FORM
        )

    def meant(self, form: UrlForm) -> Takedown:
        """Return the request with what it means alone."""
        if self.url is not None:
            if not (address := parse_url(self.url).address(form.tracking_parameters)):
                raise UsageError(
                    f"{self.url!r:.80} is no URL. Give one such as https://example.org/page."
                )
            return Takedown("url", "", addresses=(hash_of(address),), form=form)
        if self.domain is not None:
            domains = (hash_of(checked_domain(self.domain)),)
            return Takedown("domain", "", domains=domains, form=form)
        if self.doc is not None:
            if not DOC_ID.fullmatch(self.doc.lower()):
                raise UsageError(f"{self.doc!r:.80} is no doc_id: give all of its 32 hex digits.")
            return Takedown("doc", "", ids=id_marks([self.doc.lower()])[0])
        texts = pl.Series([self.text])
        if not (marks := text_marks(texts)[0]):
            raise UsageError("no words. Give the text of a document, in UTF-8.")
        passages, runs = passage_marks(texts)[0], run_marks(texts)
        return with_runs(Takedown("match", "", texts=marks, passages=passages), runs)


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


def requests_in(path: Path, asked: Callable[[Notice], Takedown]) -> list[Takedown]:
    """Return the requests of a file of notices, each once; UsageError that names a wrong line."""
    found: dict[frozenset[Asked], Takedown] = {}
    for number, line in enumerate(read_text(path, "--file").splitlines(), 1):
        given = line.strip()
        if not given or given.startswith("#"):
            continue
        try:
            if given.startswith("{"):
                notice = msgspec.json.decode(given, type=Notice)
            else:
                is_id = DOC_ID.fullmatch(given.lower())
                notice = Notice(doc=given) if is_id else Notice(url=given)
            takedown = asked(notice)
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
