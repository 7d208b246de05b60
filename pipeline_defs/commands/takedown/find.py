"""Find what requests mean: the documents, the copies of their texts, and the parts with them.

Every part of `raw` that the store has, of any manifest, is read twice, whatever the number of
requests: once for what they name, and once for the texts of the documents that were found, alone or
within more. Those of `filtered` are read once, since its corrections may make such a text of
another, and items of evaluation sets, which are named if they quote one.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec
import polars as pl

from assets.deduped.deduped_records import EVALUATION
from assets.deduped.evaluation_asset import INDEX
from assets.filtered.filtered_records import FILTERED
from assets.raw.raw_records import RAW
from assets.raw.taken_down_files import is_record_wanted
from assets.text.marks import (
    MARK_BYTES,
    RUN_BYTES,
    digest,
    find_passages,
    find_runs,
    id_marks,
    passage_marks,
    run_marks,
    single,
    text_marks,
)
from assets.text.takedown_files import (
    Wanted,
    has_wanted_text,
    hash_of,
    is_itself_wanted,
    owners_of_copied,
    owners_of_quotes,
    parts_in,
    passages_by_text,
    wanted_by,
    with_passages,
    with_runs,
)
from corpus_loader.places.stage_names import DUPLICATES
from resources.corpus import Corpus
from resources.store.published import PublishedFile
from resources.store.records import PartRecord
from resources.store.store import Partition, Store, part_stem, published_file
from resources.takedowns import Takedown, task_name
from resources.tasks import GLOBAL
from resources.urls import domains_above

NOTHING = pl.DataFrame(schema=dict.fromkeys(("doc_id", "url", "text"), pl.String))
COMMON = 5  # documents that stay: a passage of so many is a form, not the text of one document
COLUMNS = ("doc_id", "url", "text", "origin")
SEARCHED = (RAW.name, FILTERED.name, EVALUATION.name)  # stages whose tasks obey requests
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class FoundDocuments:
    """A request with what it found.

    documents  those that are meant, from every version of every part
    records    number of records in quarantine
    near       number of near copies that stay, as they were not asked for
    """

    takedown: Takedown
    documents: pl.DataFrame
    records: int
    near: int


def find(corpus: Corpus, asked: Sequence[Takedown]) -> list[FoundDocuments]:
    """Find the documents of requests, the copies of their texts, and the parts that have them."""
    parts = raw_parts(corpus)
    documents = asked_documents(parts, asked)
    meant = [*meant_by(documents, asked, by_passages=True)]
    by_id: dict[str, set[str]] = {}
    for cluster in clusters_with(corpus, documents["doc_id"]):
        for doc_id in cluster:
            by_id.setdefault(doc_id, set()).update(cluster)
    members = [
        {one for doc_id in each["doc_id"] for one in by_id.get(doc_id, ())} for each in meant
    ]
    asked = [
        with_marks(each, of_request, members=ids if each.near else ())
        for each, of_request, ids in zip(asked, meant, members, strict=True)
    ]
    if any(each.near for each in asked):
        found = on_all_cores(partial(named_documents, wanted=wanted_by(asked)), parts)
        meant = [*meant_by(pl.concat([NOTHING, *found], how="diagonal"), asked)]
        asked = [with_marks(*each) for each in zip(asked, meant, strict=True)]
    parts += filtered_parts(corpus.store, parts)
    hits = list(on_all_cores(partial(hits_in, wanted=wanted_by(asked)), parts))
    return [*with_evaluation_sets(corpus, [*found_by(hits, asked, members)])]


def asked_documents(parts: Sequence[RawPart], asked: Sequence[Takedown]) -> pl.DataFrame:
    """Return the documents that requests name; texts are read if they are what is asked for."""
    matches = [each for each in asked if each.kind == "match"]
    others = [each for each in asked if each.kind != "match"]
    found = [NOTHING]
    if others:
        found += on_all_cores(partial(named_documents, wanted=wanted_by(others)), parts)
    if matches:
        found += on_all_cores(partial(matching_documents, wanted=wanted_by(matches)), parts)
    return pl.concat(found, how="diagonal")


def meant_by(
    documents: pl.DataFrame, asked: Sequence[Takedown], *, by_passages: bool = False
) -> Iterator[pl.DataFrame]:
    """Yield the documents (doc_id, url, text, ...) that each request means."""
    wanted = wanted_by(asked)
    # Rows by what requests have of them: a kind, and a digest of a mark or the hash of a URL.
    rows: defaultdict[tuple[str, bytes | str], set[int]] = defaultdict(set)
    for row, mark in enumerate(id_marks(documents["doc_id"].to_list())):
        rows["id", digest(mark)].add(row)
    for row, mark in enumerate(text_marks(documents["text"])):
        if mark:
            rows["text", digest(mark)].add(row)
    for form in wanted.forms:
        with_url = documents.with_row_index("row").drop_nulls("url")
        of_form = parts_in(form, with_url["url"]).select("host", "address")
        for row, host, address in zip(with_url["row"], *of_form, strict=True):
            rows["address", hash_of(address)].add(row)
            for domain in domains_above(host) if host else ():
                rows["domain", hash_of(domain)].add(row)
    copied = owners_of_copied(documents["text"], wanted) if by_passages else {}
    for number, each in enumerate(asked):
        keys: list[tuple[str, bytes | str]] = [("id", digest(mark)) for mark in single(each.ids)]
        keys += [("text", digest(mark)) for mark in single(each.texts)]
        keys += [("address", key) for key in each.addresses]
        keys += [("domain", key) for key in each.domains]
        found = {row for key in keys for row in rows.get(key, ())}
        found |= {row for row, owners in copied.items() if number in owners}
        yield documents[sorted(found)]


def found_by(
    hits: Sequence[Hits], asked: Sequence[Takedown], members: Sequence[set[str]]
) -> Iterator[FoundDocuments]:
    """Yield each request with what it has of the parts, without passages that are forms."""
    numbered = (each.documents.with_columns(part=pl.lit(n)) for n, each in enumerate(hits))
    documents = pl.concat([NOTHING, *numbered], how="diagonal")
    asked = without_forms(asked, hits)
    meant = zip(meant_by(documents, asked), having_copies(hits, asked), strict=True)
    for takedown, both, near in zip(asked, meant, members, strict=True):
        of_request = pl.concat(both, how="diagonal")
        records = records_of(hits, takedown, is_alone=len(asked) == 1)
        places = {*records, *(of_request["part"] if of_request.height else ())}
        parts = [hits[place].part for place in sorted(places)]
        doc_ids = set(of_request["doc_id"])
        found = msgspec.structs.replace(
            with_marks(takedown, of_request, with_texts=False),
            parts=names_by_source((each.source, each.task) for each in parts),
            published=names_by_source((p.source, stem) for p in parts for stem in p.stems),
            documents=len(doc_ids),
        )
        yield FoundDocuments(found, of_request, sum(records.values()), len(near - doc_ids))


def records_of(hits: Sequence[Hits], takedown: Takedown, *, is_alone: bool) -> dict[int, int]:
    """Count the records in quarantine that a request means, by the place of the part."""
    found = {place: each.records for place, each in enumerate(hits) if each.records.height}
    counts = {place: records.height for place, records in found.items()}
    if found and not is_alone:
        wanted = wanted_by([takedown])
        counts = {n: int(is_record_wanted(records, wanted).sum()) for n, records in found.items()}
    return {place: count for place, count in counts.items() if count}


def having_copies(hits: Sequence[Hits], asked: Sequence[Takedown]) -> Iterator[pl.DataFrame]:
    """Yield the documents that have a text of each request within more: no text is read."""
    wanted = wanted_by(asked)
    numbered = [each.within.with_columns(part=pl.lit(n)) for n, each in enumerate(hits)]
    within = pl.concat([NOTHING.drop("text"), *numbered], how="diagonal")
    rows: dict[int, list[int]] = {}
    for row, digests in enumerate(within["passages"] if numbered else ()):
        owners = wanted.copies.owners_among(digests) | wanted.runs.owners_among(digests)
        for owner in owners:
            rows.setdefault(owner, []).append(row)
    for number in range(len(asked)):
        yield within[rows.get(number, [])]


def with_marks(
    asked: Takedown,
    documents: pl.DataFrame,
    *,
    with_texts: bool = True,
    members: Iterable[str] = (),
) -> Takedown:
    """Add the marks of documents and near copies to a request, `with_texts` those of passages too.

    What has the text of `--match` within more gives no passages: the rest of it is not meant.
    """
    if documents.is_empty():
        return asked
    texts = documents["text"].drop_nulls().unique(maintain_order=True)
    if with_texts and asked.kind != "match":
        asked = with_passages(asked, [*passages_by_text(asked), *passage_marks(texts)])
        asked = with_runs(asked, [*(asked.runs or ()), *run_marks(texts)])
    return msgspec.structs.replace(
        asked,
        ids=joined(asked.ids, id_marks([*documents["doc_id"], *members])),
        texts=joined(asked.texts, text_marks(texts)),
    )


def joined(marks: bytes, more: list[bytes]) -> bytes:
    """Return marks without repetitions, in an order that tells nothing of the texts."""
    return b"".join(sorted({one for each in (marks, *more) for one in single(each)}))


def without_forms(asked: Sequence[Takedown], hits: Sequence[Hits]) -> list[Takedown]:
    """Leave out passages that COMMON documents which stay have, such as licences and menus.

    They are no text of the one document, and the proof would find them for ever.
    """
    pairs = (zip(each.within["doc_id"], each.within["passages"], strict=True) for each in hits)
    has = {(doc_id, passage) for each in pairs for doc_id, found in each for passage in found}
    counts = Counter(passage for _, passage in has)

    def own(marks: bytes, size: int) -> bytes:
        return b"".join(mark for mark in single(marks, size) if counts[digest(mark)] < COMMON)

    asked = [
        with_passages(each, [own(one, MARK_BYTES) for one in passages_by_text(each)])
        for each in asked
    ]
    return [with_runs(each, [own(one, RUN_BYTES) for one in each.runs or ()]) for each in asked]


def names_by_source(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return names without repetitions by their source."""
    names: dict[str, set[str]] = {}
    for source, name in pairs:
        names.setdefault(source, set()).add(name)
    return {source: tuple(sorted(of_source)) for source, of_source in sorted(names.items())}


@dataclass(frozen=True)
class RawPart:
    """A published part of `raw`, or what `filtered` made of one, with its tables.

    task   name of the task of `raw` that made it
    stems  stems of the files of `raw`; those of all versions of the part for one of `filtered`
    """

    source: str
    task: str
    name: str
    stems: tuple[str, ...]
    documents: PublishedFile
    quarantine: PublishedFile | None


class Hits(NamedTuple):
    """Documents and records of a part that a takedown means.

    documents  those that are meant themselves: doc_id, url, text and origin
    records    those in quarantine that are meant
    within     other documents with passages of these: doc_id, url, origin, digests of passages and
               hashes of runs of words
    """

    part: RawPart
    documents: pl.DataFrame
    records: pl.DataFrame
    within: pl.DataFrame


def raw_parts(corpus: Corpus) -> list[RawPart]:
    """Return every published part of `raw`, whether a manifest names it or not."""
    return [
        RawPart(
            folder.name,
            task_name(record.name),
            record.name,
            (part_stem(record.name, record.fingerprint),),
            files["documents"],
            files.get("quarantine"),
        )
        for folder, record, files in published_records(corpus.store, RAW.name)
    ]


def filtered_parts(store: Store, raw: Sequence[RawPart]) -> list[RawPart]:
    """Return every published part of `filtered` as one of `raw`."""
    stems: dict[tuple[str, str], tuple[str, ...]] = {}
    for each in raw:
        key = each.source, each.name
        stems[key] = (*stems.get(key, ()), *each.stems)
    return [
        RawPart(
            folder.name,
            task_name(record.name),
            record.name,
            stems.get((folder.name, record.name), ()),
            files["documents"],
            None,
        )
        for folder, record, files in published_records(store, FILTERED.name)
    ]


def with_evaluation_sets(
    corpus: Corpus, found: Sequence[FoundDocuments]
) -> Iterator[FoundDocuments]:
    """Yield requests; those of which an evaluation set quotes a text name the task of its index."""
    takedowns = [each.takedown for each in found]
    wanted, named = wanted_by(takedowns), set[int]()
    config = corpus.settings.dedup.decontamination
    is_any = config is not None and config.ngram.unit == "characters"  # of which no text is told
    for _, _, files in published_records(corpus.store, EVALUATION.name):
        items = pl.read_parquet(files["items"].checked(), columns=["units"])["units"]
        named.update(*owners_of_quotes(items, wanted).values())
        if quarantine := files.get("quarantine"):
            is_any |= is_record_wanted(pl.read_parquet(quarantine.checked()), wanted).any()
        named |= {place for place, each in enumerate(takedowns) if is_any and each.texts}
    for place, each in enumerate(found):
        parts = each.takedown.parts | ({GLOBAL: (INDEX,)} if place in named else {})
        yield replace(each, takedown=msgspec.structs.replace(each.takedown, parts=parts))


def published_records(
    store: Store, stage: str
) -> Iterator[tuple[Partition, PartRecord, dict[str, PublishedFile]]]:
    """Yield the records of all parts of a stage whose files are there, with the files by kind."""
    for folder, record in stage_records(store, (stage,)):
        if folder.find_part(record.name, record.fingerprint):
            files = {f.kind: published_file(folder.folder / f.path, f) for f in record.files}
            yield folder, record, files


def stage_records(store: Store, stages: Sequence[str]) -> Iterator[tuple[Partition, PartRecord]]:
    """Yield the records of all parts of stages, of any manifest, with their partition."""
    for folder in store.partitions():
        for name in folder.medium.names(folder.records) if folder.stage in stages else ():
            if (record := folder.read_record(name)) is not None:
                yield folder, record


def on_all_cores(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Map a function over items, on all cores: Polars and the kernels release the lock."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(work, items)


def named_documents(part: RawPart, wanted: Wanted) -> pl.DataFrame:
    """Return the documents of a part that are meant by id or URL; texts are read of these alone."""
    table = pl.read_parquet(part.documents.checked(), columns=["doc_id", "url"])
    is_named = is_itself_wanted(table.with_columns(text=pl.lit("")), wanted)
    return read_rows(part, is_named.arg_true())


def matching_documents(part: RawPart, wanted: Wanted) -> pl.DataFrame:
    """Return the documents of a part that have a text of `wanted`, alone or within more."""
    texts = pl.read_parquet(part.documents.checked(), columns=["text"])["text"]
    return read_rows(part, has_wanted_text(texts, wanted).arg_true())


def read_rows(part: RawPart, rows: pl.Series) -> pl.DataFrame:
    """Read some documents of a part; nothing is read for no rows."""
    table = pl.scan_parquet(part.documents.checked()).select(COLUMNS)
    if rows.is_empty():
        return table.head(0).collect()
    return (
        table.with_row_index("row")
        .filter(pl.col("row").is_in(rows.implode()))
        .drop("row")
        .collect()
    )


def hits_in(part: RawPart, wanted: Wanted) -> Hits:
    """Read a part, and return all that it has of a takedown."""
    documents = pl.read_parquet(part.documents.checked(), columns=list(COLUMNS))
    is_meant = is_itself_wanted(documents, wanted)
    others = documents.filter(~is_meant)
    found: dict[int, set[bytes]] = {}  # digests of the passages by row
    texts = others["text"]
    runs = find_runs(texts, wanted.runs.marks)
    for passage in (*find_passages(texts, wanted.passages), *runs):
        found.setdefault(passage.row, set()).add(passage.digest)
    within = others.drop("text")[[*found]].with_columns(
        pl.Series("passages", [sorted(each) for each in found.values()], pl.List(pl.Binary))
    )
    records = pl.DataFrame()
    if part.quarantine is not None:
        quarantine = pl.read_parquet(part.quarantine.checked())
        records = quarantine.filter(is_record_wanted(quarantine, wanted))
    return Hits(part, documents.filter(is_meant), records, within)


def clusters_with(corpus: Corpus, doc_ids: Iterable[str]) -> list[frozenset[str]]:
    """Return the duplicate clusters that have any of some documents, of all kept manifests."""
    wanted = pl.Series(sorted(doc_ids), dtype=pl.String)
    folder = corpus.store.partition(DUPLICATES, GLOBAL)
    clusters: dict[frozenset[str], None] = {}
    for number in folder.manifest_numbers() if len(wanted) else ():
        manifest = folder.read_manifest(number)
        files = [file for part in manifest.parts if (file := part.file("clusters")) and file.rows]
        paths = [corpus.store.file_of(manifest, file).checked() for file in files]
        if paths:
            table = pl.read_parquet(paths, columns=["doc_id", "cluster_id"])
            found = table.filter(pl.col("doc_id").is_in(wanted.implode()))["cluster_id"]
            members = table.filter(pl.col("cluster_id").is_in(found.implode()))
            groups = members.group_by("cluster_id", maintain_order=True).agg("doc_id")["doc_id"]
            clusters |= dict.fromkeys(map(frozenset, groups.to_list()))
    return [*clusters]
