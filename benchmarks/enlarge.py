"""Make a corpus of any size from real text, or change one as a night's crawl would.

    .venv/bin/python benchmarks/enlarge.py CORPORA OUT --bytes 1000000000
    .venv/bin/python benchmarks/enlarge.py CORPORA OUT --night new

The lines of a source's documents are drawn into new documents, each as long as a real one of its
source and language. One document in twenty repeats an earlier one, and one in twenty repeats it
with a few other lines. OUT gets a folder per source and the pipeline.yaml of `corpus init`; the
same arguments give the same bytes. A night changes OUT in place:

    new         1 % of the corpus's bytes in new documents: a new file of one source
    append      0.1 % of its bytes behind the last line of a file
    remove      one document less, in the middle of a file
    edit        one line of a document in the middle of a file
    source      a new source with 1 % of the corpus's bytes
    threshold   a limit of one filter in pipeline.yaml
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, get_args

import msgspec
import numpy as np
import polars as pl
from corpus_texts import read_texts
from isal import igzip

sys.path.append(str(Path(__file__).resolve().parent.parent))

from pipeline_defs.commands.build.init import CONFIG_NAME, init

Night = Literal["new", "append", "remove", "edit", "source", "threshold"]
FILE_BYTES = 32_000_000
MIN_FILES = 4  # of a source: the night's changes are to find other parts unchanged
EXACT_SHARE, NEAR_SHARE = 0.05, 0.05
CHANGED_SHARE = 0.04  # of a near duplicate's lines
LINE = re.compile(r"[^\n]*\n+|[^\n]+")  # with the empty lines after it: paragraphs stay apart
SENTENCE = re.compile(r".{200,400}?[.!?] +|.+\n*|\n+", re.DOTALL)
LONG_LINE = 600  # characters, beyond which a line is drawn sentence by sentence
STATE = "enlarged.json"
LIMIT = "max_boilerplate"
GROWING = "web"  # the source of new and appended documents


@dataclass(frozen=True)
class Recipe:
    """Arguments that a corpus was made with, and the number of changes since."""

    bytes: int
    seed: int
    nights: int = 0


@dataclass
class Group:
    """Lines and document lengths of one source and language."""

    lang: str | None
    lines: list[str] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)  # in lines


@dataclass
class Drawing:
    """Endless documents of a source: the same ones for the same seed."""

    name: str
    groups: list[Group]
    rng: np.random.Generator
    drawn: list[tuple[int, np.ndarray]] = field(default_factory=list)  # (group, its lines)

    def documents(self) -> Iterator[str]:
        """Yield JSON lines."""
        counts = np.array([len(group.lengths) for group in self.groups])
        shares = np.cumsum(counts / counts.sum())
        label = f"{self.name}-{self.rng.integers(2**48):012x}"
        for number in range(sys.maxsize):
            kind = self.rng.random()
            if self.drawn and kind < EXACT_SHARE + NEAR_SHARE:
                index, lines = self.drawn[self.rng.integers(len(self.drawn))]
                if kind < NEAR_SHARE:
                    lines = self.with_changes(self.groups[index], lines)
            else:
                index = min(int(np.searchsorted(shares, self.rng.random())), len(shares) - 1)
                lines = self.new_lines(self.groups[index])
            self.drawn.append((index, lines))
            yield record_text(f"{label}-{number}", self.groups[index], lines)

    def new_lines(self, group: Group) -> np.ndarray:
        """Draw lines of a group, as many as one of its documents has."""
        length = group.lengths[self.rng.integers(len(group.lengths))]
        return self.rng.integers(len(group.lines), size=length).astype(np.int32)

    def with_changes(self, group: Group, lines: np.ndarray) -> np.ndarray:
        """Return the lines with at least one of them drawn again."""
        changed = lines.copy()
        places = self.rng.integers(len(lines), size=max(1, int(len(lines) * CHANGED_SHARE)))
        changed[places] = self.rng.integers(len(group.lines), size=len(places))
        return changed


def main() -> None:
    """Make a corpus, or change it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", type=Path, help="folder of folders of documents")
    parser.add_argument("out", type=Path)
    parser.add_argument("--bytes", type=int, default=1_000_000_000, help="of text, about")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--night", choices=get_args(Night))
    args = parser.parse_args()
    if args.night:
        print(change(args.corpora, args.out, args.night))
    else:
        enlarge(args.corpora, args.out, Recipe(args.bytes, args.seed))


def enlarge(corpora: Path, out: Path, recipe: Recipe) -> None:
    """Write the sources, pipeline.yaml and the recipe into `out`."""
    if (out / CONFIG_NAME).exists():
        sys.exit(f"{out} holds a corpus already: name another folder, or change it with --night.")
    documents = read_texts(corpora)
    total = documents["text"].str.len_bytes().sum()
    for number, (name, texts) in enumerate(by_source(documents)):
        size = int(recipe.bytes * texts["text"].str.len_bytes().sum() / total)
        rng = np.random.default_rng([recipe.seed, number])
        write_source(out / name, Drawing(name, groups_of(texts), rng).documents(), size)
    init(str(out))
    write_recipe(out, recipe)


def write_source(folder: Path, documents: Iterator[str], size: int) -> None:
    """Write documents of about `size` bytes as files, every second one compressed."""
    folder.mkdir(parents=True)
    num_files = max(MIN_FILES, round(size / FILE_BYTES))
    for number in range(num_files):
        ending = ".jsonl.gz" if number % 2 else ".jsonl"
        content = take(documents, size // num_files)
        write_file(folder / f"{folder.name}-{number:03d}{ending}", content)


def by_source(documents: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield every source's name and documents, by name."""
    for name in documents["source"].unique().sort():
        yield name, documents.filter(pl.col("source") == name)


def groups_of(texts: pl.DataFrame) -> list[Group]:
    """Cut a source's texts into lines by language."""
    groups: dict[str | None, Group] = {}
    for text, lang in texts.select("text", "lang").iter_rows():
        lines = [piece for line in LINE.findall(text) for piece in pieces_of(line)]
        if lines:
            group = groups.setdefault(lang, Group(lang))
            group.lines += lines
            group.lengths.append(len(lines))
    return list(groups.values())


def pieces_of(line: str) -> list[str]:
    """Cut a long line after sentences: whole paragraphs drawn would make near duplicates."""
    return SENTENCE.findall(line) if len(line) > LONG_LINE else [line]


def record_text(name: str, group: Group, lines: np.ndarray) -> str:
    """Return a document as a line of JSON."""
    text = "".join([group.lines[line] for line in lines.tolist()])
    record = {"id": name, "text": text}
    if group.lang is not None:
        record["lang"] = group.lang
    return msgspec.json.encode(record).decode() + "\n"


def take(documents: Iterator[str], size: int) -> bytes:
    """Return documents that together have about `size` bytes."""
    taken: list[bytes] = []
    left = size
    while left > 0:
        taken.append(next(documents).encode())
        left -= len(taken[-1])
    return b"".join(taken)


def change(corpora: Path, out: Path, night: Night) -> str:
    """Change a corpus in place; return a sentence about it."""
    recipe = Recipe(**msgspec.json.decode((out / STATE).read_bytes()))
    recipe = Recipe(recipe.bytes, recipe.seed, recipe.nights + 1)
    if night == "threshold":
        said = change_threshold(out / CONFIG_NAME)
    elif night in ("remove", "edit"):
        said = change_document(middle_file(out), night)
    else:
        said = add_documents(corpora, out, night, recipe)
    write_recipe(out, recipe)
    return said


def add_documents(corpora: Path, out: Path, night: Night, recipe: Recipe) -> str:
    """Add new documents as a file, at the end of a file, or as a source."""
    texts = read_texts(corpora).filter(pl.col("source") == GROWING)
    rng = np.random.default_rng([recipe.seed, recipe.nights, 1])
    documents = Drawing(GROWING, groups_of(texts), rng).documents()
    content = take(documents, recipe.bytes // (1000 if night == "append" else 100))
    match night:
        case "append":
            file = sorted((out / GROWING).glob("*.jsonl"))[0]
            write_file(file, file.read_bytes() + content)
        case "source":
            name = f"source-{recipe.nights}"
            file = out / name / f"{name}.jsonl"
            write_file(file, content)
            add_source(out / CONFIG_NAME, name)
        case _:
            file = out / GROWING / f"{GROWING}-new-{recipe.nights:03d}.jsonl.gz"
            write_file(file, content)
    return f"{file}: {len(content):,} bytes of new documents"


def middle_file(out: Path) -> Path:
    """Return the middle file of the growing source."""
    files = sorted((out / GROWING).iterdir())
    return files[len(files) // 2]


def change_document(file: Path, night: Night) -> str:
    """Remove a document in the middle of a file, or change its text."""
    lines = read_file(file).splitlines(keepends=True)
    middle = len(lines) // 2
    record = msgspec.json.decode(lines[middle], type=dict[str, str])
    if night == "remove":
        del lines[middle]
    else:
        edited = record | {"text": "One line of this document was edited.\n" + record["text"]}
        lines[middle] = msgspec.json.encode(edited) + b"\n"
    write_file(file, b"".join(lines))
    return f"{file}: {night} {record['id']}"


def add_source(config: Path, name: str) -> None:
    """Name a source in pipeline.yaml, as the last one."""
    head, filters, tail = config.read_text().partition("\nfilters:\n")
    source = f"  - name: {name}\n    where: {name}/\n    id_field: id\n"
    config.write_text(head + source + filters + tail)


def change_threshold(config: Path) -> str:
    """Lower a rule's limit by a hundredth."""
    text = config.read_text()
    found = re.search(rf"{LIMIT}: ([0-9.]+)", text)
    new = f"{float(found[1]) - 0.01:.2f}" if found else "0.25"
    if found:
        text = text.replace(found[0], f"{LIMIT}: {new}")
    else:
        rules = f"  rules:\n    page: {{{LIMIT}: {new}}}\n"
        text = text.replace("\nfilters:\n", "\nfilters:\n" + rules)
    config.write_text(text)
    return f"{config}: filters.rules.page.{LIMIT} = {new}"


def read_file(file: Path) -> bytes:
    """Return a file's content, decompressed."""
    content = file.read_bytes()
    return gzip.decompress(content) if file.suffix == ".gz" else content


def write_file(file: Path, content: bytes) -> None:
    """Write a file, compressed if its name ends on .gz; its folder is made."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(igzip.compress(content, 1, mtime=0) if file.suffix == ".gz" else content)


def write_recipe(out: Path, recipe: Recipe) -> None:
    """Keep the arguments and the number of changes."""
    (out / STATE).write_bytes(msgspec.json.encode(asdict(recipe)))


if __name__ == "__main__":
    main()
