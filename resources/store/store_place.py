"""`store` and `scratch` of pipeline.yaml: where the corpus is, and copies of its files."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from corpus_loader.places.object_stores import OBJECT_STORES
from corpus_loader.places.urls import Url
from resources.store.scratch import default_scratch, open_scratch


class ScratchConfig(BaseModel):
    """Copies of files of a store that is on an object store, on each machine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: str | None = Field(
        default=None,
        min_length=1,
        description="folder of the copies, at the same path on every machine; null: "
        "$TOKENMILL_SCRATCH, or a folder in the user's cache",
    )
    bytes: int = Field(
        default=64 << 30,
        ge=1 << 20,
        description="bytes of copies that are kept; those that were not used for longest go first",
    )


def is_url(store: str) -> bool:
    """Return whether a store is named by a URL, and not by a folder."""
    return "://" in store


def check_store(store: str) -> str:
    """Return the store as it was given; ValueError for a URL that is no place of a store."""
    if not is_url(store):
        return store
    parts = Url(store)
    if parts.user or parts.query:
        raise ValueError(
            "a store's URL has no user and no query: credentials come from the environment "
            "(AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL) or from the "
            "machine's role"
        )
    if parts.scheme not in OBJECT_STORES or not parts.host or ".." in parts.path.split("/"):
        raise ValueError(
            f"{store!r} is no store. Give a folder, or s3://bucket/prefix (gs:// and az://, too)"
        )
    return store


def absolute(store: str) -> str:
    """Return a store with its folder relative to the working folder."""
    return store if is_url(store) else str(Path(store).absolute())


def root_of(store: str, config: Path, scratch: ScratchConfig) -> Path:
    """Return the root of a store: its folder, or the scratch of its URL.

    Folders are relative to that of the config file.
    """
    if not is_url(store):
        return (config.parent / store).resolve()
    place = default_scratch() if scratch.folder is None else config.parent / scratch.folder
    return open_scratch(check_store(store), place.absolute(), scratch.bytes)
