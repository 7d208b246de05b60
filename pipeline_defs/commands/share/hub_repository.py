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
from functools import cached_property
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


def without_xet() -> None:
    """Switch off what is not tested, before `huggingface_hub` is imported and reads it."""
    os.environ.setdefault("HF_HUB_DISABLE_XET", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")


@dataclass(frozen=True)
class HubRepository:
    """The dataset repository `owner/name`."""

    name: str

    @cached_property
    def api(self) -> HfApi:
        """The hub's client."""
        from huggingface_hub import HfApi

        return HfApi(endpoint(), token=hub_token() or False)

    def read(self) -> Revision:
        """Return the state of `main`; an empty one if there is no repository."""
        from huggingface_hub import RepoFile
        from huggingface_hub.errors import RepositoryNotFoundError

        with self.explained():
            try:
                refs = self.api.list_repo_refs(self.name, repo_type=KIND)
            except RepositoryNotFoundError:
                return Revision()
            tags = {each.name: each.target_commit for each in refs.tags}
            [head] = [each.target_commit for each in refs.branches if each.name == "main"]
            tree = self.api.list_repo_tree(self.name, recursive=True, revision=head, repo_type=KIND)
            files = {each.path: each.lfs for each in tree if isinstance(each, RepoFile)}
            record = self.read_record(head) if RECORD in files else None
        hashes = {path: lfs.sha256 for path, lfs in files.items() if lfs}
        return Revision(head, frozenset(files), hashes, tags, record)

    def read_record(self, commit: str) -> Record:
        """Read the record of a commit."""
        with TemporaryDirectory() as folder:
            path = self.api.hf_hub_download(
                self.name, RECORD, revision=commit, repo_type=KIND, local_dir=folder
            )
            return msgspec.json.decode(Path(path).read_bytes(), type=Record)

    def create(self) -> None:
        """Create the repository, which only its owner sees."""
        with self.explained():
            self.api.create_repo(self.name, repo_type=KIND, private=True, exist_ok=True)

    def send(self, files: Mapping[str, bytes]) -> list[CommitOperationAdd]:
        """Send files, but for content that the hub has; return what a commit needs of them."""
        from huggingface_hub import CommitOperationAdd

        added = [CommitOperationAdd(path, content) for path, content in files.items()]
        with self.explained():
            self.api.preupload_lfs_files(self.name, added, repo_type=KIND)
        return added

    def commit(
        self,
        sent: Sequence[CommitOperationAdd],
        texts: Mapping[str, bytes],
        before: Revision,
        record: Record,
        message: str,
    ) -> str:
        """Commit what was sent and small files, unless `main` has moved; return the commit."""
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        had, small = (
            before.record.files if before.record else {},
            {**texts, RECORD: to_json(record)},
        )
        added = [CommitOperationAdd(path, content) for path, content in small.items()]
        gone = [CommitOperationDelete(path) for path in had if path not in record.files]
        title, _, description = message.partition("\n\n")
        with self.explained():
            return self.api.create_commit(
                self.name,
                [*sent, *added, *gone],
                commit_message=title,
                commit_description=description,
                repo_type=KIND,
                parent_commit=before.commit,
            ).oid

    def tag(self, name: str, commit: str) -> None:
        """Name a commit."""
        with self.explained():
            self.api.create_tag(self.name, tag=name, revision=commit, repo_type=KIND, exist_ok=True)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn an error of the hub's client into one that says what to do."""
        try:
            yield
        except Exception as error:
            reason = " ".join(str(error.__cause__ or error).split())
            raise StoreError(
                f"{self.name} at {endpoint()}: {redacted(reason)}. Check the network, HF_ENDPOINT "
                "and that HF_TOKEN may write there, then push again: what was sent is there."
            ) from error
