"""`corpus states tag NAME`: name the state of the corpus: it stays, and can be trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter

from assets.mixed.phase_source_files import forbidden_shards
from assets.sharded.sharded_records import SHARDED
from corpus_loader.places.files import is_tag_name
from corpus_loader.places.stage_names import MIXED, RAW
from pipeline_defs.commands.answers import answer
from pipeline_defs.commands.terminal import Json, alone_on, say
from pipeline_defs.load_corpus import load_corpus
from resources.errors import UsageError
from resources.store.named_states import (
    NamedManifest,
    Tag,
    create,
    delete,
    read_tags,
    tag_path,
    wait_for_sweepers,
)
from resources.store.store import Partition, Store, StoreError
from resources.takedowns import forbidden_documents

# `partitions` counts the manifests that a tag names; `phases` are those it can be trained on.
TAGS: dict[str, Any] = {"name": pl.String, "partitions": pl.Int64, "phases": pl.List(pl.String)}


def tag(
    name: Annotated[str | None, Parameter(help="Name of the tag.")] = None,
    /,
    *,
    delete_: Annotated[
        bool, Parameter(name="--delete", help="Delete the tag; its state goes when it is old.")
    ] = False,
    list_: Annotated[bool, Parameter(name="--list", help="List all tags.")] = False,
    json: Json = False,
) -> int:
    """Tag the newest state of the corpus, delete a tag, or list all."""
    store = load_corpus().store
    if list_ or name is None:
        if name is not None or delete_:
            raise UsageError("--list takes no NAME, and --delete needs one.")
        list_tags(store, is_json=json)
    elif delete_:
        delete_tag(store, name)
    else:
        with alone_on(store.root, "corpus states tag"):
            made = make_tag(store, name)
        say(f"{name} names {len(made.manifests):,} manifests, {phases_text(made)}.")
    return 0


def make_tag(store: Store, name: str) -> Tag:
    """Tag the newest manifest of every partition; what it names stays from here on.

    The file comes first: a clean-up that begins after it sees it, one that began before is waited
    for. If that has removed a manifest meanwhile, the tag is deleted again.
    """
    check_name(name)
    partitions = list(store.partitions())
    if not partitions:
        raise StoreError(f"Nothing is built yet in {store}. Run: corpus build")
    refuse_forbidden(store, partitions)
    manifests = tuple(
        NamedManifest(each.stage, each.name, number, each.read_manifest(number).fingerprint)
        for each in partitions
        for number in each.manifest_numbers()[-1:]
    )
    path = tag_path(store.root, name)
    if not create(path, Tag(name, manifests)):
        raise UsageError(
            f"The tag {name!r} names another state already. Take another name, or delete it first: "
            f"corpus states tag {name} --delete"
        )
    if gone := wait_for_sweepers(store.root, manifests):
        delete(path)
        first = gone[0]
        raise StoreError(
            f"{first.stage}[{first.partition}] manifest {first.number} was removed while the tag "
            "was made: a run has committed newer ones. No tag was made: run the command again."
        )
    return Tag(name, manifests)


def refuse_forbidden(store: Store, partitions: Sequence[Partition]) -> None:
    """Raise StoreError if the newest state of a source has documents that were taken down."""
    for folder in partitions:
        manifest = folder.newest_manifest() if folder.stage in (RAW, SHARDED.name) else None
        if manifest is None:
            continue
        of_shards = folder.stage == SHARDED.name
        gate = forbidden_shards if of_shards else forbidden_documents
        if found := gate(store, manifest):
            raise StoreError(
                f"{folder.stage}[{folder.name}] has {found}. No tag was made: run `corpus build` "
                "first."
            )


def check_name(name: str) -> None:
    """Raise UsageError unless a text may name a tag."""
    if not is_tag_name(name):
        raise UsageError(
            f"{name!r:.80} is no name of a tag: it begins with a letter, has up to 64 letters, "
            "digits, '.', '_' and '-', and does not look like the fingerprint of a mixture. Take "
            "one such as v1."
        )


def delete_tag(store: Store, name: str) -> None:
    """Delete a tag, also one whose file is damaged."""
    check_name(name)
    if not delete(tag_path(store.root, name)):
        there = ", ".join(read_tags(store.root)) or "none"
        raise UsageError(f"There is no tag {name!r}; there are: {there}.")
    say(f"Deleted {name}. `corpus states gc` lists what nothing names any more.")


def list_tags(store: Store, *, is_json: bool) -> None:
    """Print all tags."""
    tags = read_tags(store.root).values()
    rows = [(tag.name, len(tag.manifests), phases_of(tag)) for tag in tags]
    nothing = f"No tag in {store}. Make one: corpus states tag v1"
    answer("tags", pl.DataFrame(rows, TAGS, orient="row"), nothing, json=is_json)


def phases_of(tag: Tag) -> tuple[str, ...]:
    """Return the phases that a tag has a mixture of."""
    return tuple(each.partition for each in tag.manifests if each.stage == MIXED)


def phases_text(tag: Tag) -> str:
    """Return the phases of a tag for a sentence."""
    phases = phases_of(tag)
    return f"phases {', '.join(phases)}" if phases else "no phase: nothing is mixed yet"
