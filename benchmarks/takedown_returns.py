"""Texts that were taken down and come back: which are blocked, and which others are, wrongly.

    python benchmarks/takedown_returns.py CORPORA [REQUESTS]

Half of the documents are in the store, the others come later. Requests are made of documents of the
first half, without passages that five others of it have. A later document that is blocked, and has
less than half of the word 5-grams of the text for which it is, counts as blocked wrongly. Then each
text comes back in several forms.
"""

from __future__ import annotations

import html
import json
import random
import re
import sys
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import polars as pl
from corpus_texts import read_texts

from assets.text.marks import (
    COMMON_PERCENT,
    LEAST_RUNS,
    MARK_BYTES,
    RUN_BYTES,
    Copies,
    copied_rows,
    copies_of,
    digest,
    find_passages,
    find_runs,
    find_texts,
    marks_of,
    passage_marks,
    run_marks,
    single,
    text_marks,
)

COMMON = 5
WORD = re.compile(r"\w+")
MENU = "Home | About | Contact\nSign in\n\n{}\n\nAll rights reserved. Imprint"
AROUND = "As somebody wrote elsewhere, at some length, and not without effect. " * 40
LENGTHS = 400, 5_000  # characters of the texts that come back


def shuffled(text: str) -> str:
    """Return the sentences of a text in another order."""
    sentences = re.split(r"(?<=[.!?])\s+|\n+", text)
    random.Random(1).shuffle(sentences)
    return "\n".join(sentences)


def hyphenated(text: str) -> str:
    """Return lines of 72 characters, of which the last word is cut if it is long."""
    lines, line = list[str](), ""
    for word in text.split():
        if len(line) + len(word) > 72 and word.isalpha() and word.islower() and len(word) > 5:
            lines.append(f"{line}{word[:3]}-")
            line = f"{word[3:]} "
            continue
        if len(line) + len(word) > 72:
            lines.append(line)
            line = ""
        line += f"{word} "
    return "\n".join([*lines, line])


def numbered(text: str) -> str:
    """Return lines of 72 characters, with numbers."""
    lines = textwrap.wrap(text, 72)
    return "\n".join(f"{number:4}  {line}" for number, line in enumerate(lines, 1))


FORMS: dict[str, Callable[[str], str]] = {
    "between the lines of a menu": MENU.format,
    "whole in a longer document": lambda text: f"{AROUND}\n\n{text}\n\n{AROUND}",
    "white space and case changed": lambda text: "\n".join(text.upper().split()),
    "NFD": lambda text: unicodedata.normalize("NFD", text),
    "NFKC": lambda text: unicodedata.normalize("NFKC", text),
    "soft hyphens": lambda text: re.sub(r"(\w{3})(?=\w{2})", "\\1\u00ad", text),
    "entities": lambda text: html.escape(text).encode("ascii", "xmlcharrefreplace").decode(),
    "JSON escapes": json.dumps,
    "hyphenated lines": hyphenated,
    "line numbers": numbered,
    "sentences shuffled": shuffled,
    "every 25th word changed": lambda text: " ".join(
        "other" if place % 25 == 12 else word for place, word in enumerate(text.split())
    ),
    "every 50th word changed": lambda text: " ".join(
        "other" if place % 50 == 25 else word for place, word in enumerate(text.split())
    ),
    "the first 80 %": lambda text: text[: 8 * len(text) // 10],
    "the first half": lambda text: text[: len(text) // 2],
    "the second half": lambda text: text[len(text) // 2 :],
    "every 10th word changed": lambda text: " ".join(
        "other" if place % 10 == 5 else word for place, word in enumerate(text.split())
    ),
}


def grams(text: str) -> set[tuple[str, ...]]:
    """Return the different 5-grams of a text's words; all words of a shorter text."""
    words = WORD.findall(text.lower())
    return {tuple(words[i : i + 5]) for i in range(max(1, len(words) - 4))}


def requests(store: pl.Series, rows: list[int]) -> tuple[pl.Series, Copies, Copies]:
    """Return the texts of some documents, and their passages and runs that are no forms."""
    texts = store.gather(rows)
    passages, runs = passage_marks(texts), run_marks(texts)
    itself = {found.row for found in find_texts(store, marks_of(enumerate(text_marks(texts))))}
    found = [
        *find_passages(store, marks_of(enumerate(passages))),
        *find_runs(store, marks_of(enumerate(runs), RUN_BYTES)),
    ]
    others = {(each.row, each.digest) for each in found if each.row not in itself}
    counts = Counter(content for _, content in others)

    def own(marks: bytes, size: int) -> bytes:
        return b"".join(m for m in single(marks, size) if counts[digest(m)] < COMMON)

    enough = LEAST_RUNS * RUN_BYTES
    of_runs = [own(each, RUN_BYTES) for each in runs]
    return (
        texts,
        copies_of(enumerate(own(each, MARK_BYTES) for each in passages)),
        copies_of(
            ((n, each) for n, each in enumerate(of_runs) if len(each) >= enough),
            RUN_BYTES,
            COMMON_PERCENT,
        ),
    )


def blocked(texts: pl.Series, copies: Copies, runs: Copies) -> dict[int, set[int]]:
    """Return the requests by which each of some texts is blocked."""
    found = copied_rows(find_passages(texts, copies.marks), copies)
    for row, owners in copied_rows(find_runs(texts, runs.marks), runs).items():
        found.setdefault(row, set()).update(owners)
    return found


def main(folder: Path, count: int) -> None:
    """Print both tables."""
    texts = read_texts(folder)["text"]
    half = len(texts) // 2
    store, later = texts[:half], texts[half:]
    lengths = store.str.len_chars()
    fitting = lengths.is_between(*LENGTHS).arg_true().to_list()
    asked, copies, runs = requests(store, sorted(random.Random(1).sample(fitting, count)))
    found = blocked(later, copies, runs)
    wrong = sum(
        max(len(grams(asked[n]) & grams(later[row])) / len(grams(asked[n])) for n in owners) < 0.5
        for row, owners in found.items()
    )
    print(
        f"{count:,} requests, {len(later):,} later documents: {len(found):,} are blocked, {wrong} "
        f"of them wrongly ({wrong / len(later):.3%})"
    )
    owners = sorted({*copies.owners, *runs.owners})
    print(f"{len(owners):,} requests have passages of their own. Of their texts are blocked:")
    for name, form in FORMS.items():
        back = pl.Series([form(asked[number]) for number in owners])
        hits = blocked(back, copies, runs)
        num = sum(number in hits.get(row, ()) for row, number in enumerate(owners))
        print(f"| {name} | {num / len(owners):.1%} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 500)
