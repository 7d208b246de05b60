"""A small mixed corpus on disk, written with numpy and the standard library alone."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from corpus_loader import CorpusLoader, LoaderOptions
from corpus_loader.mixture import WITH_WEIGHTS_AT
from corpus_loader.seal import sealed
from corpus_loader.split import Split

END = 0  # the end-of-document id, which also fills rows up
Row = Sequence[Sequence[int]]  # the documents of a row, as token ids
DTYPE_CODES = {"uint16": 8, "uint32": 4}


@dataclass(frozen=True)
class Step:
    """A step of one rank: its positions, those of them that are not repeated, the cursor after."""

    positions: list[int]
    own: list[int]
    cursor: int


def steps_of(split: Split, cursor: int, skip: int = 0, every: int = 1) -> list[Step]:
    """The steps from a cursor to the end of its epoch, one by one."""
    steps = split.steps(cursor, range(skip, split.steps_left(cursor), every))
    positions, stops = steps.positions.tolist(), accumulate(steps.sizes)
    return [
        Step(positions[stop - size : stop], positions[stop - size : stop - repeated], after)
        for size, after, repeated, stop in zip(*steps[1:], stops, strict=True)
    ]


def write_phase(store: Path, sources: dict[str, list[list[Row]]], /, **changes: Any) -> Path:
    """A store with one phase: per source its shards, per shard its rows; an epoch of each.

    `changes` are laid over the mixture; rows are filled up to sequence_length (8), None: not.
    """
    mixture: dict[str, Any] = {
        "version": 1,
        "phase": "general",
        "seed": 0,
        "batch_samples": 4,
        "window_shards": None,
        "sequence_length": 8,
        "token_dtype": "uint16",
        "tokenizer_fingerprint": "0" * 64,
        "vocab_size": 60_000,
        "end_of_document_id": END,
        "warnings": [],
    } | changes
    described = [describe_source(store, name, shards, mixture) for name, shards in sources.items()]
    mixture = {"sources": described} | mixture
    samples = sum(source["samples"] for source in mixture["sources"])
    mixture = {"epoch_samples": samples, "fingerprint": fingerprint(mixture)} | mixture
    publish(store, mixture)
    return store


def describe_source(
    store: Path, name: str, shards: list[list[Row]], mixture: dict[str, Any]
) -> dict[str, Any]:
    """Write a source's shards; its entry in the mixture."""
    split = "validation-" if mixture.get("is_validation") else ""
    stem = f"sharded/{name}/{split}megatron-0123abcd/shard"
    written = [
        write_shard(store, f"{stem}-{number:05d}", rows, mixture)
        for number, rows in enumerate(shards)
    ]
    rows = sum(shard["rows"] for shard in written)
    return {"name": name, "samples": rows, "rows": rows, "shards": written}


def write_shard(store: Path, path: str, rows: list[Row], mixture: dict[str, Any]) -> dict[str, Any]:
    """Write .bin, .idx and .spans; the shard's entry in the mixture."""
    (store / path).parent.mkdir(parents=True, exist_ok=True)
    length = mixture["sequence_length"]
    tokens = [[token for document in row for token in document] for row in rows]
    stored = [row + [END] * ((length or 0) - len(row)) for row in tokens]
    flat = np.array([token for row in stored for token in row], mixture["token_dtype"])
    contents = {
        "bin": flat.tobytes(),
        "idx": index_bytes([len(row) for row in stored], mixture["token_dtype"]),
        "spans": spans_bytes(path, rows),
    }
    for suffix, content in contents.items():
        (store / f"{path}.{suffix}").write_bytes(content)
    files = {
        suffix: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for suffix, content in contents.items()
    }
    num_tokens = sum(len(row) for row in tokens)
    return {"path": path, "rows": len(rows), "tokens": num_tokens, "bucket": "all", "files": files}


def index_bytes(lengths: list[int], token_dtype: str) -> bytes:
    """Megatron's .idx: a document per row."""
    header = b"MMIDIDX\0\0" + struct.pack(
        "<QBQQ", 1, DTYPE_CODES[token_dtype], len(lengths), len(lengths) + 1
    )
    pointers = np.cumsum([0, *lengths])[:-1] * np.dtype(token_dtype).itemsize
    documents = np.arange(len(lengths) + 1)
    return (
        header
        + np.array(lengths, "<i4").tobytes()
        + pointers.astype("<i8").tobytes()
        + documents.astype("<i8").tobytes()
    )


def spans_bytes(path: str, rows: list[Row]) -> bytes:
    """The .spans file: document k of row r is a piece from token 10 k + r on; see doc_id."""
    spans = [(r, k, len(document)) for r, row in enumerate(rows) for k, document in enumerate(row)]
    first = np.cumsum([0, *(len(row) for row in rows)])
    return (
        b"TMSPANS1"
        + struct.pack("<QQ", len(rows), len(spans))
        + first.astype("<u8").tobytes()
        + np.array([10 * k + r for r, k, _ in spans], "<u4").tobytes()
        + np.array([length for _, _, length in spans], "<u4").tobytes()
        + b"".join(doc_id(path, r, k) for r, k, _ in spans)
    )


def doc_id(path: str, row: int, document: int) -> bytes:
    """The id of a document of a row of a shard."""
    return hashlib.md5(f"{path} {row} {document}".encode()).digest()


def fingerprint(value: Any) -> str:
    """32 hex digits that stand for a value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def publish(store: Path, mixture: dict[str, Any], number: int = 1) -> None:
    """Write the mixture, and a manifest that names it."""
    folder = store / "mixed" / mixture["phase"]
    (folder / "_manifests").mkdir(parents=True, exist_ok=True)
    name = f"mixture-{number}.json"
    content = json.dumps(mixture).encode()
    (folder / name).write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    parts = [{"name": "mixture", "files": [{"kind": "mixture", "path": name, "sha256": sha256}]}]
    content = sealed(json.dumps({"parts": parts}).encode() + b"\n")
    (folder / "_manifests" / f"{number:08d}.json").write_bytes(content)


def held_out(store: Path, sources: dict[str, list[list[Row]]]) -> Path:
    """The same store with rows that are held out of training, as validation."""
    return write_phase(
        store, sources, phase="validation", version=WITH_WEIGHTS_AT, is_validation=True
    )


def remove_rows(
    store: Path, removed: dict[str, dict[int, list[int]]], phase: str = "general", number: int = 2
) -> Path:
    """Publish the mixture again without some rows of shards: by source, by number of the shard."""
    mixture = json.loads((store / f"mixed/{phase}/mixture-1.json").read_text())
    for source in mixture["sources"]:
        content = b""
        for shard, rows in sorted(removed.get(source["name"], {}).items()):
            listed = {"removed": len(rows), "removed_from": len(content) // 4}
            source["shards"][shard] |= listed
            content += np.array(rows, "<u4").tobytes()
        if content:
            path = f"sharded/{source['name']}/removed-0123abcd.rows"
            (store / path).write_bytes(content)
            sha256 = hashlib.sha256(content).hexdigest()
            source["removed"] = {"path": path, "bytes": len(content), "sha256": sha256}
            source["rows"] -= len(content) // 4
            source["samples"] = source["rows"]
    samples = sum(source["samples"] for source in mixture["sources"])
    mixture |= {"version": 2, "epoch_samples": samples}
    publish(store, mixture | {"fingerprint": fingerprint(mixture)}, number)
    return store


def numbered_rows(first: int, count: int, length: int = 8) -> list[Row]:
    """Rows of one document each, all of whose tokens are the row's number, from `first` on."""
    return [[[number] * length] for number in range(first, first + count)]


def two_sources(store: Path, **changes: Any) -> Path:
    """37 numbered rows: books 1 to 23 in two shards, web 101 to 114 in three."""
    books = [numbered_rows(1, 16), numbered_rows(17, 7)]
    web = [numbered_rows(101, 5), numbered_rows(106, 5), numbered_rows(111, 4)]
    return write_phase(store, {"books": books, "web": web}, **changes)


def every_sample(
    path: str | Path, *split: Any, options: LoaderOptions | None = None, **rest: Any
) -> CorpusLoader:
    """A loader that leaves nothing out at the end of an epoch."""
    short = replace(options or LoaderOptions(), drop_last=False)
    return CorpusLoader(path, *split, options=short, **rest)
