"""What a phase is made of, as `mixed` wrote it: its sources, their shards, what names its order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import PurePosixPath
from typing import Any

from corpus_loader.epochs import SourceShape
from corpus_loader.errors import CorpusError
from corpus_loader.files import DIGITS, Files
from corpus_loader.order import PhaseOrder

VERSION = 1
KIND = "mixture"  # of the file, in the manifest


@dataclass(frozen=True)
class FlatFile:
    """One file of a shard: its suffix is the key under which the shard has it."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Shard:
    """A shard: `path` is relative to the store, without the suffix of its files."""

    path: str
    rows: int
    files: Mapping[str, FlatFile]


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


def find_mixture(files: Files, phase: str, data: str | None = None) -> Mixture:
    """The newest mixture of a phase, or the newest with the fingerprint `data`.

    CorpusError says which phases and fingerprints there are, and what to run.
    """
    known = files.names("mixed")
    if known and phase not in known:
        raise CorpusError(f"no phase {phase!r} here; there are: {', '.join(known)}")
    found = []
    for mixture in mixtures(files, phase):
        if data in (None, mixture.fingerprint):
            return mixture
        found.append(mixture.fingerprint)
    raise CorpusError(
        f"no mixture of phase {phase!r} has the fingerprint {data}; there are, the newest first: "
        f"{', '.join(dict.fromkeys(found))}. Older ones were collected: raise `keep_manifests` "
        "before you mix anew, or start without the state."
    )


def mixtures(files: Files, phase: str) -> Iterator[Mixture]:
    """The mixtures of a phase that are there, the newest first; CorpusError if there is none."""
    folder = f"mixed/{phase}"
    newest = files.newest(f"{folder}/_manifests")
    if newest is None:
        raise CorpusError(
            f"mixed[{phase}] is not materialized (looked for {folder}/_manifests/*.json). "
            "Materialize `mixed` first: run the job `mix_corpus`."
        )
    for number in range(int(PurePosixPath(newest).stem), 0, -1):  # old ones go from the lowest up
        manifest = f"{folder}/_manifests/{number:0{DIGITS}d}.json"
        try:
            content = files.read(manifest)
        except FileNotFoundError:
            return
        yield read_mixture(files, folder, manifest, content)


def read_mixture(files: Files, folder: str, manifest: str, content: bytes) -> Mixture:
    """The mixture that a manifest names; CorpusError if it names none, or a damaged one."""
    try:
        files_of = [part["files"] for part in json.loads(content)["parts"]]
        written = [file for each in files_of for file in each if file["kind"] == KIND]
    except (KeyError, TypeError, ValueError) as error:
        raise CorpusError(
            f"{manifest} is not a manifest ({type(error).__name__}: {error}). `corpus verify "
            "--repair` writes it again."
        ) from error
    if not written:
        raise CorpusError(
            f"{manifest} names no mixture: it was written by an older Tokenmill. Run the job "
            "`mix_corpus` again."
        )
    path = f"{folder}/{written[0]['path']}"
    try:
        mixture = files.read(path)
        if hashlib.sha256(mixture).hexdigest() != written[0]["sha256"]:
            raise ValueError("its sha256 is not the manifest's")
        return parse_mixture(mixture)
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
        suffix: FlatFile(file["bytes"], file["sha256"]) for suffix, file in shard["files"].items()
    }
    return Shard(shard["path"], shard["rows"], files)
