"""What the tests share: a small corpus on disk, and a run over it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import yaml

SMALL_CORPUS = Path(__file__).parent / "small_corpus.yaml"
TALE = "the river of that town and its bridge have seen with every spring a flood to be proud"
WORDS = TALE.split()
Build = Callable[..., Any]


def sentence(number: int, words: int = 30) -> str:
    """A sentence that no other number gives: common words, and the number here and there."""
    picked = [WORDS[(number * 7 + i * (number % 5 + 1)) % len(WORDS)] for i in range(words)]
    marked = [f"{word} {number}{'abcdefgh'[i % 8]}" for i, word in enumerate(picked)]
    return " ".join(marked) + "."


SHARED_TEXT = sentence(20, 40)  # in both sources


def write_jsonl(path: Path, records: Sequence[dict[str, Any] | str]) -> Path:
    """Write records (or raw lines) as JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
    return path


def write_corpus(folder: Path, **changes: Any) -> Path:
    """Two sources of forty documents, one shared by both, and a config with `changes` laid over."""
    prose = [{"text": sentence(i, 20 + i), "n": i} for i in range(40)]
    notes = [{"text": sentence(100 + i, 10 + i % 9)} for i in range(40)] + [{"text": SHARED_TEXT}]
    write_jsonl(folder / "input/prose/a.jsonl", prose[:25])
    write_jsonl(folder / "input/prose/b.jsonl", prose[25:])
    write_jsonl(folder / "input/notes/n.jsonl", notes)
    config = yaml.safe_load(SMALL_CORPUS.read_text()) | changes
    path = folder / "pipeline.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return path


def open_corpus(config: Path, store: Path | None = None) -> Any:
    """The corpus of a config file."""
    from resources.corpus import Corpus
    from resources.settings.pipeline import load_settings
    from resources.store.store import Store

    return Corpus(load_settings(config), config, Store(store or config.parent / "store"))


def published(corpus: Any, source: str = "prose", kind: str = "documents") -> pl.DataFrame:
    """The newest documents of `raw`, or its quarantine, in the order of its parts."""
    manifest = corpus.store.newest("raw", source)
    files = [file for part in manifest.parts if (file := part.file(kind))]
    return pl.concat([pl.read_parquet(corpus.store.file_of(manifest, f).checked()) for f in files])


def deduped(corpus: Any, source: str, *columns: str) -> list[pl.DataFrame]:
    """Columns, all if none is named, of the documents that `deduped` keeps, part by part."""
    from assets.deduped.document_files import kept_documents, read_kept
    from assets.raw.raw_records import DOCUMENT_COLUMNS

    manifest = corpus.store.newest("deduped", source)
    files = [kept_documents(corpus.store, manifest, part) for part in manifest.parts]
    return [read_kept(each, columns or list(DOCUMENT_COLUMNS)) for each in files]


def hashes(store: Path) -> dict[str, str]:
    """sha256 of every file of a store but previews, which follow from the others."""
    files = (path for path in sorted(store.rglob("*")) if path.is_file())
    files = (path for path in files if "_previews" not in path.parts)
    return {
        str(path.relative_to(store)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


Night = dict[str, list[dict[str, Any]] | None]  # what is written to each file; None: it is deleted


def edited_text(number: int, edits: int = 0) -> str:
    """A text of 60 words that no other number gives; `edits` replaces words at its end."""
    words = sentence(number, 60).split()
    return " ".join([*words[: len(words) - edits], *(f"edit{number}x{i}" for i in range(edits))])


def records(*texts: str) -> list[dict[str, Any]]:
    return [{"text": each} for each in texts]


def play(corpus: Any, night: Night) -> None:
    """Write and delete the input files of a night."""
    for name, content in night.items():
        path = corpus.config.parent / "input" / name
        if content is None:
            path.unlink()
        else:
            write_jsonl(path, content)
