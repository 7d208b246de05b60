"""Digests of what a store holds, to compare it before and after a change of the code.

    python benchmarks/content_digests.py corpus_store > before.json

Prints JSON: per stage and partition the sha256 of the content of each kind of table, array and
record, of every column of a table, and one of all. Left out are fingerprints, names of files, their
order, compression and encoding, and times. Files of the input, which documents name, are content.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

TABLES = {".parquet", ".arrow"}
HEX_NAME = re.compile(r"\b[0-9a-f]{8,64}\b(-[0-9]{4})*")  # a fingerprint, a part's name
Digests = dict[str, str]  # of a file: "" for all of it, and by column


def digest(values: Iterable[str]) -> str:
    """Return the sha256 of strings, as hex digits."""
    return hashlib.sha256("\n".join(values).encode()).hexdigest()


def content_digests(store: Path) -> dict[str, Any]:
    """Return the digests of the newest state of every partition, and one of all."""
    partitions = {
        f"{folder.parent.name}/{folder.name}": partition_digests(folder)
        for folder in sorted(path.parent for path in store.glob("*/*/_manifests"))
    }
    return {"total": digest([json.dumps(partitions, sort_keys=True)]), "partitions": partitions}


def partition_digests(folder: Path) -> dict[str, Any]:
    """Return the digests of a partition by kind of file; those of parts are sorted."""
    manifest = json.loads(max((folder / "_manifests").glob("*.json")).read_bytes())
    found: dict[str, list[Digests]] = defaultdict(list)
    rows: dict[str, int] = defaultdict(int)
    for file in (file for part in manifest["parts"] for file in part["files"]):
        found[file["kind"]].append(file_digests(folder / file["path"]))
        rows[file["kind"]] += file["rows"]
    counts = {key: value for key, value in manifest["stats"].items() if key != "extra"}
    kinds = {kind: {"rows": rows[kind], **joined(found[kind])} for kind in sorted(found)}
    return {"counts": counts, "kinds": kinds}


def joined(parts: list[Digests]) -> dict[str, Any]:
    """Return one digest for each name that the files of a kind have, in no order of the files."""
    names = dict.fromkeys(name for part in parts for name in part)
    every = {name: digest(sorted(part.get(name, "") for part in parts)) for name in names}
    return {"sha256": every.pop(""), "columns": every}


def file_digests(path: Path) -> Digests:
    """Return the digest of a file's content and, of a table, those of its columns."""
    if path.suffix in TABLES:
        table = read_table(path)
        columns = {column.name: column_digest(column) for column in table}
        return {"": digest(f"{name} {each}" for name, each in columns.items()), **columns}
    if path.suffix == ".json":
        record = without_names(json.loads(path.read_bytes()))
        return {"": digest([json.dumps(record, sort_keys=True)])}
    with path.open("rb") as file:
        return {"": hashlib.file_digest(file, "sha256").hexdigest()}


def read_table(path: Path) -> pl.DataFrame:
    """Read a table of Parquet or Arrow; Arrow is a file, or a stream in shards for `datasets`."""
    if path.suffix == ".parquet":
        return pl.read_parquet(path)
    with path.open("rb") as file:
        is_file = file.read(6) == b"ARROW1"
    return pl.read_ipc(path) if is_file else pl.read_ipc_stream(path)


def without_names(value: Any) -> Any:
    """Return JSON with a star for each fingerprint, digest and part's name in a string."""
    if isinstance(value, dict):
        return {key: without_names(each) for key, each in value.items()}
    if isinstance(value, list):
        return [without_names(each) for each in value]
    return HEX_NAME.sub("*", value) if isinstance(value, str) else value


def column_digest(column: pl.Series) -> str:
    """Return the sha256 of a column's type and values, however they are stored."""
    hasher = hashlib.sha256()
    add_values(hasher, column)
    return hasher.hexdigest()


def add_values(hasher: Any, values: pl.Series) -> None:
    """Hash the type, the nulls, the lengths and the values, those of nested types in turn."""
    hasher.update(f"{values.dtype} {len(values)}\n".encode())
    hasher.update(values.is_null().to_numpy().tobytes())
    present = values.drop_nulls()
    if isinstance(values.dtype, pl.Struct):
        for field in values.dtype.fields:
            hasher.update(f"{field.name}\n".encode())
            add_values(hasher, present.struct.field(field.name))
    elif isinstance(values.dtype, pl.List):
        hasher.update(present.list.len().to_numpy().tobytes())
        add_values(hasher, present.filter(present.list.len() > 0).explode())
    elif isinstance(values.dtype, pl.Array):
        add_values(hasher, present.explode())
    elif values.dtype in (pl.String, pl.Binary):
        strings = present.cast(pl.Binary)
        hasher.update(strings.bin.size().to_numpy().tobytes())
        hasher.update(b"".join(strings))
    else:
        hasher.update(present.to_physical().to_numpy().tobytes())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path, help="folder of a store")
    found = content_digests(parser.parse_args().store)
    if not found["partitions"]:
        parser.error("there is no manifest in this folder")
    print(json.dumps(found, indent=1))
