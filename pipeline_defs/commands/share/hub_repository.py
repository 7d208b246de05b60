"""A dataset repository of the Hugging Face hub that revisions are pushed to.

A revision is a commit on `main`, and a tag with the digest of what it holds. Files are sent first,
as LFS objects that are named by their sha256, and one commit names them: what a killed push has
sent is there for the next. tokenmill.json says what each file was made of, so that files which stay
are not even written again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

from assets.raw.places.hub_files import endpoint, hub_token
from corpus_loader.places.url_secrets import redacted
from resources.store.records import StoreError, to_json

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, HfApi

RECORD = "tokenmill.json"
KIND = "dataset"


class FileLine(msgspec.Struct, frozen=True):
    """A file of a revision: digest of what its rows are made of, sha256 of its bytes, sizes."""

    digest: str
    sha256: str
    bytes: int
    rows: int


class Record(msgspec.Struct, frozen=True):
    """What a revision holds: `digest` is of all that decides it, `files` are those of Parquet.

    manifests are fingerprints by source; takedowns is the number of requests that were obeyed.
    """

    what: str
    digest: str
    manifests: dict[str, str]
    takedowns: int
    files: dict[str, FileLine]

    @property
    def tag(self) -> str:
        """Name of the tag of the revision."""
        return f"tokenmill-{self.digest[:16]}"


@dataclass(frozen=True)
class Revision:
    """State of `main`: commit (None without a repository), files, those of LFS, tags, record."""

    commit: str | None = None
    paths: frozenset[str] = frozenset()
    sha256: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    record: Record | None = None

    def line(self, path: str, digest: str) -> FileLine | None:
        """Return the line of a file that is there and was made of the same, else None."""
        line = self.record.files.get(path) if self.record else None
        is_there = line and line.digest == digest and line.sha256 == self.sha256.get(path)
        return line if is_there else None


def hub_client() -> HfApi:
    """Return the hub's client, without Xet, which is not tested."""
    os.environ.setdefault("HF_HUB_DISABLE_XET", "1")  # both are read when it is imported
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    from huggingface_hub import HfApi

    return HfApi(endpoint(), token=hub_token() or False)


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Turn an error of the hub's client into one that says what to do."""
    try:
        yield
    except Exception as error:
        reason = " ".join(str(error.__cause__ or error).split())
        raise StoreError(
            f"{name} at {redacted(f'{endpoint()}: {reason}')}. Check the network, HF_ENDPOINT and "
            "that HF_TOKEN may write there, then push again: what was sent is there."
        ) from error


def read_revision(api: HfApi, name: str) -> Revision:
    """Return the state of `main`; an empty one if there is no repository."""
    from huggingface_hub import RepoFile
    from huggingface_hub.errors import RepositoryNotFoundError

    with explained(name), TemporaryDirectory() as folder:
        try:
            refs = api.list_repo_refs(name, repo_type=KIND)
        except RepositoryNotFoundError:
            return Revision()
        [head] = [each.target_commit for each in refs.branches if each.name == "main"]
        tree = api.list_repo_tree(name, recursive=True, revision=head, repo_type=KIND)
        files = {each.path: each.lfs for each in tree if isinstance(each, RepoFile)}
        record = None
        if RECORD in files:
            path = api.hf_hub_download(
                name, RECORD, revision=head, repo_type=KIND, local_dir=folder
            )
            record = msgspec.json.decode(Path(path).read_bytes(), type=Record)
    hashes = {path: lfs.sha256 for path, lfs in files.items() if lfs}
    tags = {each.name: each.target_commit for each in refs.tags}
    return Revision(head, frozenset(files), hashes, tags, record)


def send_files(api: HfApi, name: str, files: Mapping[str, bytes]) -> list[CommitOperationAdd]:
    """Send files, but for content that the hub has; return what a commit needs of them."""
    from huggingface_hub import CommitOperationAdd

    added = [CommitOperationAdd(path, content) for path, content in files.items()]
    with explained(name):
        api.preupload_lfs_files(name, added, repo_type=KIND)
    return added


def add_revision(
    api: HfApi,
    name: str,
    before: Revision,
    record: Record,
    files: Sequence[CommitOperationAdd],
    message: str,
) -> str:
    """Commit files and their record, unless `main` has moved, and tag it; return the commit."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    had = before.record.files if before.record else {}
    gone = [CommitOperationDelete(path) for path in had if path not in record.files]
    title, _, description = message.partition("\n")
    with explained(name):
        commit = api.create_commit(
            name,
            [*files, CommitOperationAdd(RECORD, to_json(record)), *gone],
            commit_message=title,
            commit_description=description,
            repo_type=KIND,
            parent_commit=before.commit,
        ).oid
    add_tag(api, name, record, commit)
    return commit


def add_tag(api: HfApi, name: str, record: Record, commit: str) -> None:
    """Name a commit by the digest of its record."""
    with explained(name):
        api.create_tag(name, tag=record.tag, revision=commit, repo_type=KIND, exist_ok=True)
