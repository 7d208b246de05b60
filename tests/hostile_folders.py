"""Folders that are not what a user thinks: how to make each, and what `corpus try` says of it."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import socket
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from builders import sentence, write_jsonl

Maker = Callable[[Path], None]
TEXTS = [sentence(i, 60 + i % 9) for i in range(12)]
RECORDS = [{"text": text, "id": i} for i, text in enumerate(TEXTS)]
NOISE = random.Random(0).randbytes(4000)
PNG = b"\x89PNG\r\n\x1a\n" + NOISE
PDF = b"%PDF-1.7\n" + NOISE
GERMAN = (
    "Der Fluss stieg zweimal, und die Leute verließen ihre Häuser am Ufer für längere Zeit. " * 9
)
WARC = b"WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 2\r\n\r\nab\r\n\r\n"
BYTES = "".join(TEXTS[:3]).encode()
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 12\n"


def holding(**files: bytes | str) -> Maker:
    """Make a folder with files; `__` in a name is a dot."""

    def make(folder: Path) -> None:
        for name, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            (folder / name.replace("__", ".")).write_bytes(data)

    return make


def lines(records: list[Any]) -> str:
    """JSON lines."""
    return "".join(f"{json.dumps(record)}\n" for record in records)


def zipped(**members: bytes) -> bytes:
    """A zip archive."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "."), data)
    return content.getvalue()


def tarred(**members: bytes) -> bytes:
    """A tar.gz archive."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, data in members.items():
            about = tarfile.TarInfo(name.replace("__", "."))
            about.size = len(data)
            archive.addfile(about, io.BytesIO(data))
    return content.getvalue()


def parquet(**columns: list[Any]) -> bytes:
    """A Parquet file."""
    content = io.BytesIO()
    pl.DataFrame(columns).write_parquet(content)
    return content.getvalue()


def a_store(folder: Path) -> None:
    for stage in ("raw", "filtered"):
        partition = folder / "store" / stage / "web"
        (partition / "_manifests").mkdir(parents=True)
        (partition / "_manifests/1.json").write_text("{}")
        (partition / "part-0.documents.parquet").write_bytes(parquet(text=TEXTS))


def closed_folder(folder: Path) -> None:
    holding(a__txt=TEXTS[0])(folder)
    folder.chmod(0)


def closed_file(folder: Path) -> None:
    holding(a__jsonl=lines(RECORDS))(folder)
    (folder / "a.jsonl").chmod(0)


def many_files(folder: Path) -> None:
    for number in range(5000):
        (folder / f"{number:05}.txt").touch()


def many_pictures(folder: Path) -> None:
    for number in range(3000):
        (folder / f"{number:05}.png").touch()


def deep(folder: Path) -> None:
    below = folder.joinpath(*["d"] * 300)
    below.mkdir(parents=True)
    write_jsonl(below / "a.jsonl", RECORDS)


def deeper_than_a_path(folder: Path) -> None:
    here = os.getcwd()
    os.chdir(folder)
    for _ in range(30):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    Path("a.txt").write_text(TEXTS[0])
    os.chdir(here)


def a_fifo(folder: Path) -> None:
    os.mkfifo(folder / "pipe.jsonl")


def a_socket(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = os.getcwd()
        os.chdir(folder)
        made.bind("s.txt")
        os.chdir(here)


def link(target: str) -> Maker:
    return lambda folder: (folder / "a.txt").symlink_to(target)


def a_loop(folder: Path) -> None:
    (folder / "loop").symlink_to(".")


def other_bytes_in_a_name(folder: Path) -> None:
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.txt")).write_text(TEXTS[0])


def a_database(folder: Path) -> None:
    with sqlite3.connect(folder / "notes.db") as database:
        database.execute("create table notes (text)")


def a_checkout(folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / ".git/config.txt").write_text("hidden")
    holding(setup__py="print(1)\n", Makefile="all:\n")(folder)


GZ = gzip.compress(lines(RECORDS).encode(), mtime=0)
REFUSED: dict[str, tuple[Maker, str]] = {
    "pdfs": (holding(a__pdf=PDF, b__pdf=PDF, c__PDF=PDF), "3 files (no reader for .pdf)."),
    "images": (holding(a__png=PNG, b__jpg=PNG), "1 file (no reader for .png)"),
    "word": (holding(a__docx=zipped(x=b"x"), b__epub=zipped(x=b"x")), "(no reader for .docx)"),
    "a database": (a_database, "1 file (no reader for .db)."),
    "a checkout": (a_checkout, "1 file (no reader for .py)."),
    "latin-1": (
        holding(a__txt=GERMAN.encode("latin-1")),
        "UTF-8: byte 0xdf at character 45). Conv",
    ),
    "utf-16": (
        holding(a__txt=GERMAN.encode("utf-16")),
        "is UTF-16: convert it with iconv -f UTF-16",
    ),
    "binary named .txt": (
        holding(a__txt=NOISE),
        "a.txt (not valid UTF-8: byte 0xcd at character 0)",
    ),
    "picture named .txt": (
        holding(a__txt=PNG),
        "a.txt (not valid UTF-8: byte 0x89 at character 0)",
    ),
    "empty": (holding(), "no file to read matches own/. Formats: .jsonl"),
    "empty files": (
        holding(a__txt="", b__jsonl="", c__json="", d__csv=""),
        "record: all are empty.",
    ),
    "hidden files": (holding(__a__txt=TEXTS[0]), "no file to read matches own/. Formats: "),
    "a readme": (holding(README__md="# Notes\n"), "1 file (README.md, which is about its folder)."),
    "a store": (a_store, "4 files (published by another build, in store)."),
    "closed folder": (closed_folder, "1 folder (that cannot be listed (Permission denied))."),
    "closed file": (closed_file, "own/a.jsonl (Permission denied). Ask for the right to read it."),
    "many files": (
        many_files,
        "2,000 files (txt) without one record: all are empty. Left out: 1 folder",
    ),
    "many pictures": (many_pictures, "1 folder (with more entries than are looked at)."),
    "deeper than a path": (deeper_than_a_path, "(that cannot be listed (File name too long))."),
    "a fifo": (a_fifo, "1 file (a FIFO, not a regular file)."),
    "a socket": (a_socket, "1 file (a socket, not a regular file)."),
    "dangling link": (link("nowhere.txt"), "1 file (a broken link)."),
    "link to itself": (link("a.txt"), "1 file (a broken link)."),
    "link to a device": (link("/dev/zero"), "1 file (a link that leaves the folder: "),
    "a loop of folders": (a_loop, "no file to read matches own/."),
    "name in other bytes": (
        other_bytes_in_a_name,
        "1 file (its name is not UTF-8: rename the file).",
    ),
    "controls in a name": (
        holding(**{"\x1b[31m\n__txt": NOISE}),
        "own/␛[31m␊.txt (not valid UTF-8",
    ),
    "no gz": (
        holding(a__jsonl__gz=lines(RECORDS)),
        "this is plain JSON: remove .gz from the file's name).",
    ),
    "bomb": (
        holding(a__txt__gz=gzip.compress(bytes(70_000_000))),
        "above max_record_bytes=67,108,864)",
    ),
    "zip of pictures": (holding(a__zip=zipped(a__png=PNG)), "1 file (zip) without one record."),
    "no zip": (holding(a__zip=NOISE), "zip archive cannot be opened: File is not a zip file). Get"),
    "no tar": (
        holding(a__tar=NOISE),
        "a.tar (no valid tar header at this place). Get the archive again",
    ),
    "warc without pages": (holding(a__warc=WARC), "1 file (warc) without one record."),
    "parquet without text": (
        holding(a__parquet=parquet(n=[1])),
        "holds text in most records (fields: n)",
    ),
    "parquet without rows": (
        holding(a__parquet=parquet(text=[])),
        "1 file (parquet) without one record.",
    ),
    "cut parquet": (
        holding(a__parquet=parquet(text=TEXTS)[:300]),
        "or this is not a parquet file.). Get",
    ),
    "lfs pointer": (
        holding(a__parquet=LFS),
        "this is a Git LFS pointer: run `git lfs pull` in the",
    ),
    "no arrow": (
        holding(a__arrow=NOISE),
        "Arrow stream is broken at byte 0: no message begins there). Get",
    ),
    "json object": (
        holding(a__json=json.dumps({"rows": 3})),
        "text in most records (fields: rows)",
    ),
    "error page": (
        holding(a__json="<!doctype html><html><body>404</body></html>"),
        "is an HTML page: get",
    ),
    "only bad lines": (
        holding(a__jsonl="no\njson\n"),
        "1 file (jsonl) without one record: own/a.jsonl",
    ),
    "deep json": (
        holding(a__jsonl="[" * 100_000 + "\n"),
        "nested more than 200 levels deep). Flatten",
    ),
    "no text": (
        holding(a__jsonl=lines([{"n": i} for i in range(9)])),
        "text in most records (fields: n)",
    ),
    "empty texts": (
        holding(a__jsonl=lines([{"text": ""}] * 9)),
        "text in most records (fields: text)",
    ),
    "one giant text": (
        holding(a__txt="x" * 70_000_000),
        "line has 70,000,000 bytes, above max_record_",
    ),
    "csv of numbers": (
        holding(a__csv="a,b\n" + "1,2\n" * 9),
        "text in most records (fields: a, b)",
    ),
    "csv without rows": (holding(a__csv="text,n\n"), "1 file (csv) without one record."),
}
READ: dict[str, tuple[Maker, str]] = {
    "pdfs beside text": (
        holding(a__pdf=PDF, b__txt=TEXTS[0]),
        "left out: 1 file (no reader for .pdf)",
    ),
    "utf-8 with a mark": (
        holding(a__txt=GERMAN.encode("utf-8-sig")),
        "own: 1 file (txt), language de",
    ),
    "nul bytes": (holding(a__txt=TEXTS[0] + "\0\0\0" + TEXTS[1]), "own: 1 file (txt), "),
    "only nul bytes": (
        holding(a__txt=b"\0" * 5000),
        "own: 1 file (txt), language unknown",
    ),
    "blank files": (
        holding(a__txt=" \n\n ", b__md="\n"),
        "own: 2 files (md, txt), text in `text`, language unknown",
    ),
    "splits for tests": (
        holding(test__jsonl=lines(RECORDS)),
        "own: 1 file (jsonl), text in `text`",
    ),
    "deep": (deep, "own: 1 file (jsonl), text in `text`, ids in `id`, language en"),
    "cut gz": (
        holding(a__jsonl__gz=GZ[: len(GZ) // 2]),
        "a.jsonl.gz (gz stream is broken near byte 966",
    ),
    "zip": (
        holding(a__zip=zipped(a__txt=BYTES, b__txt=BYTES)),
        "own: 1 file (zip), text in `text`",
    ),
    "tar": (holding(a__tar__gz=tarred(a__txt=BYTES)), "own: 1 file (tar), text in `text`"),
    "json array": (
        holding(a__json=json.dumps(RECORDS)),
        "own: 1 file (json), text in `text`, ids in",
    ),
    "cut json": (holding(a__json=json.dumps(RECORDS)[:-20]), "JSON is broken: Unterminated string"),
    "a bad line": (
        holding(a__jsonl=lines(RECORDS) + "{no\n"),
        "cannot be read: own/a.jsonl (JSON is malf",
    ),
    "one giant line": (
        holding(a__jsonl=json.dumps({"text": TEXTS[0] * 9000})),
        "own: 1 file (jsonl)",
    ),
    "csv": (holding(a__csv=f'text,n\n"{TEXTS[0]}",1\n' * 9), "own: 1 file (csv), text in `text`"),
    "copies": (
        holding(a__jsonl=lines([{"text": GERMAN}] * 9)),
        "own: 1 file (jsonl), text in `text`",
    ),
}
