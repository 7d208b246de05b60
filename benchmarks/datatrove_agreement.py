"""Rule by rule: on which documents do Tokenmill and datatrove agree, and how far are the scores?

    pip install -r requirements-bench.lock
    python benchmarks/datatrove_agreement.py [folder of corpora] [--documents 1500] [--show RULE]

Both read the text as Tokenmill normalises it. datatrove's measures are taken with its own functions
and word splitter (spaCy), once per document; each rule is then judged alone, at the same threshold.
Prints a Markdown table: how many documents both, only we, only datatrove reject, and the
correlation of the scores; then what C4QualityFilter and the preset c4-datatrove do to the pages.
--show prints the documents on which the two differ for a rule (`c4`: in the text they leave).
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import numpy as np  # noqa: E402
import polars as pl  # noqa: E402
from corpus_texts import read_texts  # noqa: E402

PRESETS = ["gopher-quality", "gopher-repetition", "fineweb"]
SHOWN = 12  # documents of --show
EXCERPT = 100  # characters of each


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "sample_data")
    parser.add_argument("--documents", type=int, default=1500)
    parser.add_argument("--show", action="append", default=[], metavar="RULE", help="or c4")
    options = parser.parse_args()
    documents = choose(options.folder, options.documents)
    ours = our_decisions(documents, PRESETS)[1]
    theirs = pl.DataFrame([their_scores(text) for text in documents["text"]])
    print_rules(documents, ours, theirs, options.show)
    print_c4(documents, is_shown="c4" in options.show)


def choose(folder: Path, count: int) -> pl.DataFrame:
    """Normalised documents of up to 100 kB, in an order by hash."""
    from assets.filtered.normalize import normalize_text
    from resources.settings.filter_steps import NormalizeConfig

    texts = read_texts(folder)
    texts = texts.with_columns(normalize_text(texts["text"], NormalizeConfig()).alias("text"))
    texts = texts.filter(pl.col("text").str.len_bytes().is_between(1, 100_000)).head(count)
    return pl.DataFrame({"doc_id": [str(i) for i in range(texts.height)]}).hstack(texts)


def our_decisions(documents: pl.DataFrame, presets: list[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(kept, decisions) under the presets and nothing else."""
    from assets.filtered.filter_documents import filter_documents
    from resources.settings.filters import FilterConfig

    given = {"presets": presets, "language": {"backend": "none"}, "rules": {"length": None}}
    return filter_documents(documents, FilterConfig.model_validate(given))


def print_rules(
    documents: pl.DataFrame, ours: pl.DataFrame, theirs: pl.DataFrame, shown: list[str]
) -> None:
    """Print the table of rules, and the documents that are asked for."""
    from assets.filtered.rules.rules import rules_for
    from resources.settings.filters import FilterConfig

    rules = rules_for(FilterConfig.model_validate({"presets": PRESETS}).rules)
    rules = [rule for rule in rules if rule.score in theirs.columns and rule.group != "length"]
    print(f"{documents.height} documents\n")
    print("| rule | both | only ours | only datatrove | neither | correlation of the scores |")
    print("|---|---:|---:|---:|---:|---:|")
    for rule in rules:
        our, their = (frame.select(rule.broken).to_series() for frame in (ours, theirs))
        cells = [our & their, our & ~their, ~our & their, ~our & ~their]
        numbers = " | ".join(str(cell.sum()) for cell in cells)
        related = correlation(ours[rule.score], theirs[rule.score])
        print(f"| {rule.name} | {numbers} | {related:.3f} |")
    for rule in rules:
        if rule.name in shown:
            print_differing(documents, ours, theirs, rule)


def print_differing(
    documents: pl.DataFrame, ours: pl.DataFrame, theirs: pl.DataFrame, rule: Any
) -> None:
    """Print some documents on which the two differ, with both scores."""
    our, their = (frame.select(rule.broken).to_series() for frame in (ours, theirs))
    print(f"\n{rule.name}, threshold {rule.threshold}")
    for row in (our != their).arg_true().head(SHOWN):
        score, other = ours[rule.score][row], theirs[rule.score][row]
        print(f"  ours {score:.3f}, datatrove {other:.3f}: {excerpt(documents, row)}")


def excerpt(documents: pl.DataFrame, row: int) -> str:
    """Source, language and beginning of a document."""
    source, lang, text = documents.select("source", "lang", "text").row(row)
    return f"{source} {lang} {len(text):,} characters {text[:EXCERPT]!r}"


def correlation(ours: pl.Series, theirs: pl.Series) -> float:
    """Pearson's r; 1 if both are constant and equal."""
    if ours.n_unique() == 1 or theirs.n_unique() == 1:
        return 1.0 if ours.cast(pl.Float64).equals(theirs.cast(pl.Float64)) else 0.0
    return float(np.corrcoef(ours.to_numpy(), theirs.to_numpy())[0, 1])


def their_scores(text: str) -> dict[str, Any]:
    """datatrove's measures under the names of our scores."""
    from datatrove.pipeline.filters.gopher_quality_filter import STOP_WORDS
    from datatrove.pipeline.filters.gopher_repetition_filter import find_duplicates
    from datatrove.utils.text import PUNCTUATION_SET, TERMINAL_PUNCTUATION, split_into_words

    words = split_into_words(text, "eng")
    real = [word for word in words if any(mark not in PUNCTUATION_SET for mark in word)]
    total = max(1, len(words))
    lines = text.splitlines() or [""]
    filled = [line for line in text.split("\n") if line.strip()] or [""]
    paragraphs = find_duplicates(blocks := re.split(r"\n{2,}", text.strip()))
    repeated = find_duplicates(runs := re.split(r"\n+", text))
    return {
        "word_count": len(real),
        "mean_word_length": float(np.mean([len(word) for word in real])) if real else 0.0,
        "hash_ratio": text.count("#") / total,
        "ellipsis_ratio": (text.count("...") + text.count("…")) / total,
        "bullet_line_share": share(lines, lambda s: s.lstrip().startswith(("•", "-"))),
        "ellipsis_line_share": share(lines, lambda s: s.rstrip().endswith(("...", "…"))),
        "alphabetic_word_share": share(words, lambda s: any(map(str.isalpha, s))),
        "stop_word_count": len(set(STOP_WORDS) & set(words)),
        "duplicate_paragraph_share": paragraphs[0] / len(blocks),
        "duplicate_paragraph_char_share": paragraphs[1] / len(text),
        "duplicate_line_share": repeated[0] / len(runs),
        "duplicate_line_char_share": repeated[1] / len(text),
        "terminal_line_share": share(filled, lambda s: s.endswith(tuple(TERMINAL_PUNCTUATION))),
        "short_line_share": share(filled, lambda s: len(s) <= 30),
        "duplicate_char_share": find_duplicates(filled)[1] / max(1, len(text.replace("\n", ""))),
        "list_ratio": text.count("\n") / total,
        **their_ngram_shares(words, len(text)),
    }


def their_ngram_shares(words: list[str], num_characters: int) -> dict[str, float]:
    """datatrove's shares of word n-grams."""
    from datatrove.pipeline.filters.gopher_repetition_filter import (
        find_all_duplicate,
        find_top_duplicate,
        get_n_grams,
    )

    tops = {n: get_n_grams(words, n) for n in (2, 3, 4)}
    return {
        f"top_{n}_gram_char_share": find_top_duplicate(grams) / num_characters if grams else 0.0
        for n, grams in tops.items()
    } | {
        f"duplicate_{n}_gram_char_share": find_all_duplicate(words, n) / num_characters
        for n in range(5, 11)
    }


def share(items: list[str], test: Callable[[str], bool]) -> float:
    """Share of the items that pass a test."""
    return sum(map(test, items)) / max(1, len(items))


def print_c4(documents: pl.DataFrame, *, is_shown: bool) -> None:
    """Print how often the verdict on a page, and the text it is left with, are the same."""
    kept, decisions = our_decisions(documents, ["c4-datatrove"])
    ours = {row["doc_id"]: row["text"] for row in kept.iter_rows(named=True)}
    their = list(their_pages(documents["text"]))
    reasons = decisions["reasons"].list.first().fill_null("kept")
    pairs = Counter(zip(reasons, (reason for reason, _ in their), strict=True))
    print("\n| page: ours | datatrove | documents |\n|---|---|---:|")
    for (our_reason, reason), count in pairs.most_common():
        print(f"| {our_reason} | {reason} | {count} |")
    both = [
        (row, ours[row], text)
        for row, (reason, text) in zip(documents["doc_id"], their, strict=True)
        if reason == "kept" and row in ours
    ]
    different = [each for each in both if each[1] != each[2]]
    print(f"\nof {len(both)} pages that both keep, {len(both) - len(different)} have the same text")
    for row, our_text, text in different[:SHOWN] if is_shown else ():
        lines = set(our_text.split("\n")) ^ set(text.split("\n"))
        print(f"  {excerpt(documents, int(row))}\n    {sorted(lines)[:4]!r:.400}")


def their_pages(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(reason or "kept", text left) by datatrove's C4QualityFilter as shipped."""
    from datatrove.data import Document
    from datatrove.pipeline.filters import C4QualityFilter

    judge = C4QualityFilter()
    for text in texts:
        page = Document(text=text, id="")
        verdict = judge.filter(page)
        yield ("kept" if verdict is True else verdict[1]), page.text


if __name__ == "__main__":
    main()
