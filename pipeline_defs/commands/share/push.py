"""`corpus push hf://owner/name`: send the corpus to a dataset repository, as a revision of it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from fnmatch import fnmatch
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from assets.deduped.document_files import kept_documents, read_kept
from assets.mixed.complete_state_files import CompleteState
from assets.raw.places.hub_files import HUB_URL
from corpus_loader.places.stage_names import DEDUPED
from pipeline_defs.commands.share.facts import Facts, PushedFile
from pipeline_defs.commands.share.forms import croissant, hf
from pipeline_defs.commands.share.gathered_facts import gather
from pipeline_defs.commands.share.hub_repository import (
    KIND,
    FileLine,
    Record,
    Revision,
    add_revision,
    add_tag,
    explained,
    hub_client,
    read_revision,
    send_files,
)
from pipeline_defs.commands.share.licences import may_be_passed_on
from pipeline_defs.commands.share.published_state import State, state_to_publish
from pipeline_defs.commands.share.push_iceberg import push_iceberg
from pipeline_defs.commands.share.pushed_files import (
    STAGES,
    CorpusFile,
    What,
    as_parquet,
    corpus_files,
)
from pipeline_defs.commands.states.history import commits_of, version_of
from pipeline_defs.commands.terminal import one_line, say
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.dagster_home import prepare_home
from resources.errors import UsageError, and_more
from resources.store.records import Manifest, fingerprint_of
from resources.takedowns import count_takedowns

Send = Callable[[Mapping[str, bytes]], list[Any]]
GIVEN = {".gitattributes"}  # what the hub puts into a new repository
BATCH_BYTES = 256 << 20  # sent at once, from memory
SPLITS = {"data": "train", "validation": "validation"}


def push(
    target: Annotated[
        str, Parameter(help="hf://owner/name of a hub; iceberg: tables in the store; FILE.lance.")
    ],
    /,
    *,
    what: Annotated[
        What | None, Parameter(help="What. Default: documents; of iceberg all that is in place.")
    ] = None,
    source: Annotated[
        tuple[str, ...], Parameter(help="Only this source; may be given again.", show_default=False)
    ] = (),
    state: State = None,
    dry_run: Annotated[bool, Parameter(help="Only print what would be sent.")] = False,
) -> int:
    """Send the newest complete state of the corpus, or a tag's, as far as it is not there."""
    if target == "iceberg":
        return push_iceberg(load_corpus(), what, source, state, is_dry=dry_run)
    what = what or "documents"
    if target.endswith(".lance"):
        return push_lance(target, what, source, state, is_dry=dry_run)
    name, api, corpus = repository_name(target), hub_client(), load_corpus()
    published = state_to_publish(corpus, state, source)
    manifests = manifests_of(corpus, what, published)
    files = [*corpus_files(corpus.store, what, manifests.values())]
    facts = facts_of(corpus, published)
    sizes = [hf.size_category(sum(file.rows for file in files))]
    readme = hf.render(facts, size_categories=sizes, configs=configs([file.path for file in files]))
    digest = fingerprint_of(what, [(file.path, file.digest) for file in files], readme)
    fingerprints = {source: each.fingerprint for source, each in manifests.items()}
    record = Record(what, digest, fingerprints, count_takedowns(corpus.store.root), {})
    before = read_revision(api, name)
    if commit := commit_of(name, before, record):
        if record.tag not in before.tags and not dry_run:
            add_tag(api, name, record, commit)
        say(f"{name} has this state: {record.tag}. Nothing was sent.")
        return 0
    send: Send = partial(send_files, api, name)
    if unknown := sum("UNKNOWN" in line for line in readme.splitlines()):
        say(f"README.md has {unknown:,} lines with UNKNOWN: corpus disclose --form hf")
    if dry_run:
        note_files(files, before, record, lambda _: [])
        say("Nothing was sent.")
        return 0
    if before.commit is None:
        with explained(name):
            api.create_repo(name, repo_type=KIND, private=True, exist_ok=True)
    sent = note_files(files, before, record, send)
    published.refuse_forbidden(corpus.store)  # a takedown may have come meanwhile
    pushed = [PushedFile(path, line.bytes, line.sha256) for path, line in record.files.items()]
    described = croissant.render(msgspec.structs.replace(facts, files=tuple(pushed)))
    sent += send({"README.md": readme.encode(), "croissant.json": described.encode()})
    message = f"{record.tag}: {what} of {', '.join(manifests)}\n{runs_of(manifests)}"
    commit = add_revision(api, name, before, record, sent, message)
    say(f"{name}: {record.tag}, commit {commit}.")
    if before.record and before.record.takedowns < record.takedowns:
        say("Revisions before it may have documents that were taken down since: docs/push.md.")
    return 0


def push_lance(
    path: str, what: What, sources: Sequence[str], tag: str | None, *, is_dry: bool
) -> int:
    """Write a state as a Lance dataset, over that of an earlier push."""
    if is_dry or find_spec("lance") is None:
        raise UsageError(
            "--dry-run goes with hf://owner/name: a dataset of Lance is not sent"
            if is_dry
            else "Lance is written by pylance: pip install 'tokenmill[lance]'"
        )
    import lance
    import pyarrow as pa

    corpus, mark = load_corpus(), {"tokenmill": what}
    manifests = manifests_of(corpus, what, state_to_publish(corpus, tag, sources))
    files = [*corpus_files(corpus.store, what, manifests.values())]
    tables = (file.read().to_arrow() for file in files if file.path.startswith("data/"))
    first = next(tables)
    schema = first.schema.with_metadata(mark)

    def batches() -> Iterator[Any]:
        for table in chain([first], tables):
            if table.schema.names != schema.names:
                raise UsageError(f"The {what} of sources differ in columns: give one --source")
            yield from table.cast(schema).to_batches()

    is_there = Path(path).exists()
    if is_there and b"tokenmill" not in (lance.dataset(path).schema.metadata or {}):
        raise UsageError(f"{path} was not written by `corpus push`. Name a dataset of its own.")
    reader = pa.RecordBatchReader.from_batches(schema, batches())
    made = lance.write_dataset(reader, path, mode="overwrite" if is_there else "create")
    made.cleanup_old_versions(timedelta(0))  # which may have what was taken down since
    say(f"{path}: {made.count_rows():,} rows.")
    return 0


def repository_name(target: str) -> str:
    """Return the repository that a target names."""
    found = HUB_URL.fullmatch(target)
    if found is None or found["pattern"]:
        raise UsageError(
            f"{one_line(target)!r} is no dataset of a hub. Write hf://owner/name, or: iceberg"
        )
    return found["repository"]


def commit_of(name: str, before: Revision, record: Record) -> str | None:
    """Return the commit that has a state; UsageError if a repository holds anything else.

    A push that was killed may have left a commit without a tag.
    """
    if before.record is None and before.paths - GIVEN:
        raise UsageError(
            f"{name} has files that no `corpus push` has written. Name a repository that is not "
            "there: it is created."
        )
    if before.record is not None and before.record.what != record.what:
        raise UsageError(
            f"{name} holds {before.record.what}. Push {record.what} to a repository of their own, "
            f"such as hf://{name}-{record.what}"
        )
    is_newest = before.record is not None and before.record.digest == record.digest
    return before.tags.get(record.tag) or (before.commit if is_newest else None)


def manifests_of(corpus: Corpus, what: What, state: CompleteState) -> dict[str, Manifest[Any, Any]]:
    """Return the manifest of each source that is sent; UsageError if a licence forbids it.

    Decisions have no text, and no licence is asked for.
    """
    deduped = [state.manifests[DEDUPED, name][1] for name in state.sources]
    texts = deduped if what != "decisions" else []
    found = {each.partition: licence_fault(corpus, each) for each in texts}
    if any(found.values()):
        faults = [f"{name}: {fault}" for name, fault in found.items() if fault]
        others = "".join(f" --source {name}" for name, fault in found.items() if not fault)
        raise UsageError(
            f"Not pushed: {'; '.join(faults)}. Correct `license` of the source (docs/push.md "
            "says which are known to allow it), or set `redistribute: true` if you may pass it on"
            + (f"; or push the others:{others}" if others else "")
        )
    return {name: state.manifests[STAGES[what], name][1] for name in state.sources}


def licence_fault(corpus: Corpus, manifest: Manifest[Any, Any]) -> str:
    """Return why texts of a source may not be passed on, as far as anyone has said; else ""."""
    if (allowed := corpus.settings.source(manifest.partition).redistribute) is not None:
        return "" if allowed else "`redistribute: false`"
    counted = Counter[str]()
    for part in manifest.parts:
        found = read_kept(kept_documents(corpus.store, manifest, part), ["license"])["license"]
        counted.update(found.fill_null("").to_list())
    refused = {name: n for name, n in counted.items() if not may_be_passed_on(name)}
    return and_more(
        [
            f"{rows:,} documents "
            + (f"of the licence {one_line(name)!r:.60}" if name else "without a licence")
            for name, rows in sorted(refused.items())
        ]
    )


def facts_of(corpus: Corpus, state: CompleteState) -> Facts:
    """Return the facts for the forms of a revision, about the sources that it has."""
    chosen = tuple(corpus.settings.source(name) for name in state.sources)
    if len(chosen) < len(corpus.settings.sources):  # no phase is of these alone
        settings = corpus.settings.model_copy(update={"sources": chosen, "phases": ()})
        corpus = replace(corpus, settings=settings)
    return gather(corpus, state)


def configs(paths: Sequence[str]) -> list[dict[str, Any]]:
    """Return which files are which split, of all and by source, for the header of the card.

    Without that a reader would take a source named `test` for a split.
    """
    names = ("default", *sorted({path.split("/")[1] for path in paths} - {"default"}))
    folders = {name: "*" if name == "default" else name for name in names}
    return [
        {
            "config_name": name,
            "data_files": [
                {"split": split, "path": f"{top}/{folder}/*.parquet"}
                for top, split in SPLITS.items()
                if any(fnmatch(path, f"{top}/{folder}/*") for path in paths)
            ],
        }
        for name, folder in folders.items()
    ]


def runs_of(manifests: Mapping[str, Manifest[Any, Any]]) -> str:
    """Return a line for each source: its manifest, and the run of Dagster that made it."""
    import dagster as dg  # takes 2 s

    prepare_home()
    lines = []
    with dg.DagsterInstance.get() as instance:
        for name, manifest in manifests.items():
            events = commits_of(instance, manifest.stage, name)
            runs = (each.run_id for each in events if version_of(each) == manifest.fingerprint)
            run = next(runs, "not in the records here")
            lines.append(f"{manifest.stage}[{name}] {manifest.fingerprint}, run {run}")
    return "\n".join(lines)


def note_files(
    files: Sequence[CorpusFile], before: Revision, record: Record, send: Send
) -> list[Any]:
    """Send new files, note all in the record, and print sizes; return what was sent."""
    sent, batch = list[Any](), dict[str, bytes]()
    for file in files:
        line = before.line(file.path, file.digest)
        if line is None:
            batch[file.path] = content = as_parquet(file.read())
            sha256 = hashlib.sha256(content).hexdigest()
            line = FileLine(file.digest, sha256, len(content), file.rows)
        record.files[file.path] = line
        if sum(map(len, batch.values())) > BATCH_BYTES or file is files[-1]:
            sent += send(batch)
            batch = {}
    lines, known = record.files.values(), {*before.sha256.values()}
    new = [line.bytes for line in lines if line.sha256 not in known]
    say(
        f"{record.what}: {sum(line.rows for line in lines):,} rows in {len(lines):,} files of "
        f"{sum(line.bytes for line in lines):,} bytes. New: {len(new):,} files, {sum(new):,} bytes."
    )
    return sent
