"""Datasets of the hub in formats that the package `datasets` reads for us."""

from __future__ import annotations

import gzip
import io
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from builders import Build, hashes, open_corpus, sentence, write_corpus
from command_line import until
from format_folders import peer
from hub_server import Hub, hub_server
from many_runs import begin_raw, exit_codes

ENGINE = {"steps": "in_process", "kind": "in_process", "workers": 1}
TOKEN = "hf_" + "secret" * 5


def fasta(*numbers: int, lines: int = 1) -> bytes:
    """A FASTA file with a sequence per number."""
    return "".join(f">s{n} about {n}\n" + f"ACGT{n}\n" * lines for n in numbers).encode()


def hdf5(*numbers: int) -> bytes:
    """An HDF5 file with a text per number."""
    import h5py

    out = io.BytesIO()
    with h5py.File(out, "w") as file:
        texts = [sentence(n) for n in numbers]
        file.create_dataset("text", data=texts, dtype=h5py.string_dtype(), chunks=(100,))
        file.create_dataset("n", data=[*numbers])
    return out.getvalue()


FASTQ = b"@r1 a read\nACGT\n+\nIIII\n@r2\nGG\n+\nII\n"
GENBANK = b"""LOCUS       AB1   4 bp    DNA     linear   BCT 01-JAN-2000
DEFINITION  A locus.
ACCESSION   AB1
ORIGIN
        1 acgt
//
"""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub without repositories."""
    peer("datasets")
    peer("h5py")
    with hub_server(monkeypatch) as found:
        yield found


def write(folder: Path, part_bytes: int = 4096, **more: Any) -> Path:
    """Write a corpus, one of whose sources is on the hub."""
    folder.mkdir(exist_ok=True)
    prose = {"name": "prose", "where": "hf://acme/bio", **more}
    notes = {"name": "notes", "where": "input/notes/*"}
    return write_corpus(folder, sources=[prose, notes], engine=ENGINE, part_bytes=part_bytes)


def built(build: Build, config: Path) -> Any:
    corpus = open_corpus(config)
    build(corpus, "raw")
    return corpus


def table(corpus: Any, kind: str = "documents") -> pl.DataFrame:
    manifest = corpus.store.newest("raw", "prose")
    files = [f for p in manifest.parts for f in p.files if f.kind == kind]
    return pl.concat([pl.read_parquet(corpus.store.root / "raw/prose" / f.path) for f in files])


@pytest.mark.parametrize(
    ("name", "content", "field", "texts", "meta"),
    [
        ("a.fa", fasta(1, 2, lines=2), "sequence", ["ACGT1ACGT1", "ACGT2ACGT2"], '{"id":"s1","description":"about 1"}'),
        ("a.fna.gz", gzip.compress(fasta(1)), "sequence", ["ACGT1"], '{"id":"s1","description":"about 1"}'),
        ("a.fastq", FASTQ, "sequence", ["ACGT", "GG"], '{"id":"r1","description":"a read","quality":"IIII"}'),
        ("a.xml", "<a>\n é</a>".encode(), "text", ["<a>\n é</a>"], "{}"),
    ],
)
def test_rows_become_documents(name, content, field, texts, meta, hub: Hub, tmp_path: Path, build: Build) -> None:
    hub.add("acme/bio", {f"data/{name}": content, "README.md": b"# Bio"})
    documents = table(built(build, write(tmp_path, text_field=field)))
    assert documents["text"].to_list() == texts
    print(documents["meta"].to_list())
    print(documents["origin"].to_list())
    print(documents["meta"][0])

def test_more(hub,tmp_path,build):
    hub.add("acme/bio", {"data/x.gb": GENBANK})
    d = table(built(build, write(tmp_path, text_field="sequence")))
    print(d.to_dicts())
    hub.add("acme/bio", {"data/x.h5": hdf5(*range(300)), "data/y.h5":hdf5(*range(300,500))})
    c=built(build, write(tmp_path/"b"))
    d = table(c)
    assert d["text"].to_list()==[sentence(n) for n in range(500)]
    print(d.head(2).to_dicts())
    for p in c.store.newest("raw","prose").parts: print(p.name, p.stats)
    print(hub.served(), len(hdf5(*range(300)))+len(hdf5(*range(300,500))))
    for r in hub.requests: print(r)
