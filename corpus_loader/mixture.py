"""What a phase is made of, as `mixed` wrote it: its sources, their shards, what names its order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from corpus_loader.files import CorpusError, Files
from corpus_loader.order import PhaseOrder, SourceShape

VERSION = 1
KIND = "mixture"  # of the file, in the manifest


@dataclass(frozen=True)
class ShardFile:
    """One file of a shard: its suffix is the key under which the shard has it."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Shard:
    """A shard: `path` is relative to the store, without the suffix of its files."""

    path: str
    rows: int
    files: Mapping[str, ShardFile]


@dataclass(frozen=True)
class MixtureSource:
    """A source of a phase: `samples` rows are drawn from the rows of its shards."""

    name: str
    samples: int
    shards: tuple[Shard, ...]


@dataclass(frozen=True)
class Mixture:
    """A phase. `sequence_length` is the stored length of a row, None if rows differ."""

    phase: str
    seed: int
    epoch_samples: int
    batch_samples: int
    window_shards: int | None
    sequence_length: int | None
    token_dtype: str
    tokenizer_fingerprint: str
    vocab_size: int
    end_of_document_id: int
    fingerprint: str
    sources: tuple[MixtureSource, ...]

    def order(self, seed: int) -> PhaseOrder:
        """The order of the phase's samples."""
        shapes = [
            SourceShape(source.name, source.samples, tuple(shard.rows for shard in source.shards))
            for source in self.sources
        ]
        return PhaseOrder(seed, self.batch_samples, self.window_shards, tuple(shapes))


def find_mixture(files: Files, phase: str) -> Mixture:
    """The newest mixture of a phase; CorpusError says which phases there are, and what to run."""
    folder = f"mixed/{phase}"
    known = files.names("mixed")
    if known and phase not in known:
        raise CorpusError(f"no phase {phase!r} here; there are: {', '.join(known)}")
    manifest = files.newest(f"{folder}/_manifests")
    if manifest is None:
        raise CorpusError(
            f"mixed[{phase}] is not materialized (looked for {folder}/_manifests/*.json). "
            "Materialize `mixed` first: run the job `mix_corpus`."
        )
    parts = json.loads(files.read(manifest))["parts"]
    written = [file["path"] for part in parts for file in part["files"] if file["kind"] == KIND]
    if not written:
        raise CorpusError(
            f"{manifest} names no mixture: it was written by an older Tokenmill. Run the job "
            "`mix_corpus` again."
        )
    path = f"{folder}/{written[0]}"
    try:
        return parse_mixture(files.read(path))
    except (KeyError, TypeError, ValueError, FileNotFoundError) as error:
        raise CorpusError(
            f"{path} is not a mixture ({type(error).__name__}: {error}). `corpus verify --repair` "
            "writes it again."
        ) from error


def parse_mixture(content: bytes) -> Mixture:
    """Read mixture.json; sources of which nothing is drawn are left out."""
    found = json.loads(content)
    if found["version"] > VERSION:
        raise CorpusError(
            f"the mixture of phase {found['phase']!r} has version {found['version']}, this "
            f"corpus_loader reads up to {VERSION}. Install the Tokenmill that wrote it, or a newer."
        )
    sources = [parse_source(source) for source in found["sources"] if source["samples"]]
    keys = [field.name for field in fields(Mixture) if field.name != "sources"]
    return Mixture(**{key: found[key] for key in keys}, sources=tuple(sources))


def parse_source(source: Mapping[str, Any]) -> MixtureSource:
    """One entry of `sources`."""
    return MixtureSource(
        name=source["name"],
        samples=source["samples"],
        shards=tuple(parse_shard(shard) for shard in source["shards"]),
    )


def parse_shard(shard: Mapping[str, Any]) -> Shard:
    """One entry of `shards`; CorpusError if it has no flat token file."""
    missing = {"bin", "idx", "spans"} - set(shard["files"])
    if missing:
        raise CorpusError(
            f"shard {shard['path']} has no flat token files ({', '.join(sorted(missing))}), which "
            "the loader reads. Add megatron to `shards.formats` in pipeline.yaml, then build "
            "`sharded` and `mixed` again."
        )
    files = {
        suffix: ShardFile(file["bytes"], file["sha256"]) for suffix, file in shard["files"].items()
    }
    return Shard(shard["path"], shard["rows"], files)
