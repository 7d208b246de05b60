"""How much of an evaluation item is found in documents: cut, changed, and in other forms.

    python benchmarks/contamination_recall.py FOLDER SET... [--items 2000] [--seed 1]

FOLDER holds the corpora; a SET is a known one (gsm8k) or the keys of one as JSON:
'{"name": "quiz", "where": "quiz.jsonl", "fields": ["question", "choices"]}'.
Each item is planted between 150 words of a document before it and 150 after it: a run of so many
of its words (*share*); whole, with so many words replaced by words of documents (*changed*); and
whole, in another form. A document counts as found if it is contaminated by that item. False alarms
are documents of the corpora as they are that are contaminated by any item: read what is printed of
them, since a corpus may hold an item. Prints tables in Markdown; CPU seconds of one core.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ.setdefault("POLARS_MAX_THREADS", "1")
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import_module("pipeline_defs")  # what it tells Polars' allocator must come before polars

import msgspec  # noqa: E402
import polars as pl  # noqa: E402
from corpus_texts import read_texts  # noqa: E402

from assets.deduped.decontamination.contamination import (  # noqa: E402
    find_contamination,
    is_contaminated,
)
from assets.deduped.decontamination.evaluation_files import (  # noqa: E402
    find_evaluation_files,
    read_items,
)
from assets.deduped.decontamination.evaluation_index import (  # noqa: E402
    EvaluationIndex,
    build_index,
)
from resources.settings.decontamination import DecontaminationConfig  # noqa: E402

SETTINGS: dict[str, dict[str, Any]] = {
    "default: 5-words, 0.4": {},
    "8-words, 0.5 (Tulu 3)": {"ngram": "8-words", "min_share": 0.5},
    "13-words, any (GPT-3)": {"ngram": "13-words", "min_share": 0},
}
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
CHANGED = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
LENGTHS = (8, 16, 32, 64, 10**6)  # words of items
PART = 2000  # documents looked at together
Edit = Callable[[list[str], random.Random, list[str]], list[str]]


def cut(share: float) -> Edit:
    """Keep a run of the words of an item."""

    def edit(words: list[str], draw: random.Random, _: list[str]) -> list[str]:
        kept = max(1, round(share * len(words)))
        start = draw.randrange(len(words) - kept + 1)
        return words[start : start + kept]

    return edit


def change(share: float) -> Edit:
    """Replace words of an item by other words."""

    def edit(words: list[str], draw: random.Random, others: list[str]) -> list[str]:
        places = set(draw.sample(range(len(words)), round(share * len(words))))
        return [draw.choice(others) if i in places else word for i, word in enumerate(words)]

    return edit


def wide(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if c.isascii() and c.isalnum() else c for c in text)


def every(step: int, form: Callable[[str], str]) -> Callable[[str], str]:
    """Change every n-th word of at least six letters."""

    def edit(text: str) -> str:
        words = text.split(" ")
        long = [i for i, word in enumerate(words) if len(word) > 5 and word.isalpha()]
        for i in long[::step]:
            words[i] = form(words[i])
        return " ".join(words)

    return edit


def labelled(label: str) -> Callable[[str], str]:
    """Begin each line after the first one with a label."""

    def edit(text: str) -> str:
        question, *choices = text.split("\n")
        lines = [label.format("ABCDEFGHIJ"[i % 10], i + 1) + line for i, line in enumerate(choices)]
        return "\n".join([question, *lines])

    return edit


FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "upper case": str.upper,
    "full width": wide,
    "tags within words": every(2, lambda word: f"{word[:2]}<b>{word[2:]}</b>"),
    "soft hyphens": every(1, lambda word: f"{word[:3]}\u00ad{word[3:]}"),
    "hyphens at line ends": every(3, lambda word: f"{word[:3]}-\n{word[3:]}"),
    "choices as A.": labelled("{0}. "),
    "choices as 1)": labelled("{1}) "),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sets = [msgspec.json.decode(each) if each.startswith("{") else each for each in options.sets]
    files = find_evaluation_files(
        DecontaminationConfig.model_validate({"sets": sets}), Path.cwd(), Path.cwd() / ".downloads"
    )
    items, _ = read_items(files)
    num_words = items["text"].str.split(" ").list.len()
    items = items.filter(num_words >= LENGTHS[0])
    items = items.sample(min(options.items, items.height), seed=options.seed)
    corpus = read_texts(options.folder)["text"]
    print(f"{items.height:,} items, {len(corpus):,} documents\n")
    draw = random.Random(options.seed)
    planted = {
        **{f"{share:.0%} of it": plant(items, cut(share), corpus, draw) for share in SHARES},
        **{f"{share:.0%} changed": plant(items, change(share), corpus, draw) for share in CHANGED},
        **{name: pl.Series(map(form, items["text"])) for name, form in FORMS.items()},
    }
    found = {name: measure(items, planted, corpus, keys) for name, keys in SETTINGS.items()}
    print(f"| documents with | {' | '.join(found)} |\n|---|{'---:|' * len(found)}")
    for case in planted:
        print(
            f"| {case} | {' | '.join(f'{100 * hit[case].mean():.1f}' for hit in found.values())} |"
        )
    print(f"\n| words of an item | items | {' | '.join(('50% of it', '10% changed'))} |")
    print("|---|---:|---:|---:|")
    num_words, ours = items["text"].str.split(" ").list.len(), next(iter(found.values()))
    for least, most in itertools.pairwise(LENGTHS):
        of_length = (num_words >= least) & (num_words < most)
        both = (100 * ours[case].filter(of_length).mean() for case in ("50% of it", "10% changed"))
        print(f"| {least} and more | {of_length.sum()} | {' | '.join(f'{x:.1f}' for x in both)} |")


def plant(items: pl.DataFrame, edit: Edit, corpus: pl.Series, draw: random.Random) -> pl.Series:
    """Return a document for each item, String, with what an edit makes of it in the middle."""
    others = " ".join(corpus.head(300)).split()
    texts = []
    for text in items["text"]:
        at = draw.randrange(len(others) - 300)
        around = others[at : at + 300]
        texts.append(" ".join([*around[:150], *edit(text.split(), draw, others), *around[150:]]))
    return pl.Series(texts)


def measure(
    items: pl.DataFrame, planted: dict[str, pl.Series], corpus: pl.Series, keys: dict[str, Any]
) -> dict[str, pl.Series]:
    """Return which items are found in each case, Boolean; print false alarms and the time."""
    named = {"sets": [{"name": "named", "where": "x"}], **keys}
    config = DecontaminationConfig.model_validate(named)
    numbered = items.with_columns(item=pl.int_range(pl.len()).cast(pl.String))
    index = build_index(numbered, config.ngram, config.min_item_words)
    search(corpus[:10], index, config)
    start = time.process_time()
    parts = (corpus[i : i + PART] for i in range(0, len(corpus), PART))
    hits = pl.concat(
        search(part, index, config).with_columns(part=pl.lit(number))
        for number, part in enumerate(parts)
    )
    seconds = time.process_time() - start
    enough = hits.filter("is_enough")
    num_like, num_enough = (each.n_unique(["part", "doc_id"]) for each in (hits, enough))
    print(
        f"{config.ngram.size}-words, min_share {config.min_share}: {num_enough} documents of "
        f"{len(corpus):,} are contaminated, {num_like - num_enough} partly like an item; "
        f"{seconds:.2f} CPU s"
    )
    for share, passage in enough.select("item_share", "passage").rows()[:5]:
        print(f"    {share:.0%}: {passage[:120]!r}")
    found = {}
    for case, texts in planted.items():
        own = search(texts, index, config).filter(
            pl.col("is_enough") & (pl.col("doc_id") == pl.col("item"))
        )
        found[case] = numbered["item"].is_in(own["item"].implode())
    print()
    return found


def search(texts: pl.Series, index: EvaluationIndex, config: DecontaminationConfig) -> pl.DataFrame:
    """Return the hits of texts, which are named by their places."""
    ids = pl.int_range(len(texts), eager=True).cast(pl.String)
    documents = pl.DataFrame({"doc_id": ids, "text": texts})
    return find_contamination(documents, index, config).with_columns(
        is_enough=is_contaminated(config)
    )


if __name__ == "__main__":
    main()
