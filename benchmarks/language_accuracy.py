"""How often each language detector is right, for pieces of 50, 200 and 1,000 characters.

    .venv/bin/python benchmarks/language_accuracy.py [folder]

Texts come from the JSONL and Parquet files of the folder, the truth from their field `lang`
(first part of "pt-br"). From each text of the languages with enough of them one piece is cut at a
seeded word start. Prints a Markdown table; documents per second are of CPU time.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from assets.filtered.language.detect_language import detect_language
from resources.settings.filter_steps import LanguageConfig

ROOT = Path(__file__).resolve().parent.parent
LENGTHS = (50, 200, 1_000)
BACKENDS = ("fasttext", "langdetect")
# Written Norwegian has two codes of its own.
SAME = {"nb": "no", "nn": "no"}
# What both backends can answer.
KNOWN = (
    "af ar bg bn ca cs cy da de el en es et fa fi fr gu he hi hr hu id it ja kn ko lt lv mk ml mr"
    " ne nl no pa pl pt ro ru sk sl so sq sv sw ta te th tl tr uk ur vi zh"
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "sample_data/multilingual")
    parser.add_argument("--texts", type=int, default=60, help="most texts of a language")
    parser.add_argument("--at-least", type=int, default=5, help="fewest texts of a language")
    options = parser.parse_args()
    documents = choose(read(options.folder), options.texts, options.at_least)
    print(f"{documents.height:,} texts of {documents['lang'].n_unique()} languages.\n")
    print("| backend | characters | texts | accuracy | worst languages | texts/s |")
    print("|---|---|---|---|---|---|")
    for backend in BACKENDS:
        for length in LENGTHS:
            print(measure(documents, backend, length))


def read(folder: Path) -> pl.DataFrame:
    """Text and lang of all records, lang in the codes of the detectors."""
    frames = [frame for path in sorted(folder.iterdir()) for frame in _read_file(path)]
    code = pl.col("lang").str.split("-").list.first().str.to_lowercase().replace(SAME)
    return pl.concat(frames).with_columns(lang=code).filter(pl.col("lang").is_in(KNOWN.split()))


def _read_file(path: Path) -> Iterator[pl.DataFrame]:
    columns = pl.col("text", "lang").cast(pl.String)
    if path.suffix == ".parquet":
        yield pl.read_parquet(path).select(columns)
    elif ".jsonl" in path.suffixes:
        fields = {"text": pl.String, "lang": pl.String}
        yield pl.read_ndjson(path, schema=fields).select(columns)


def choose(documents: pl.DataFrame, most: int, fewest: int) -> pl.DataFrame:
    """At most so many seeded texts of each language that are long enough, and enough languages."""
    is_long = pl.col("text").str.len_chars() >= LENGTHS[-1]
    return (
        documents.filter(is_long)
        .unique("text", maintain_order=True)
        .sample(fraction=1, shuffle=True, seed=0)
        .group_by("lang", maintain_order=True)
        .head(most)
        .filter(pl.len().over("lang") >= fewest)
    )


def measure(documents: pl.DataFrame, backend: str, length: int) -> str:
    """One row of the table."""
    draw = random.Random(length)
    texts = [cut(text, length, draw) for text in documents["text"]]
    series, config = pl.Series("text", texts), LanguageConfig.model_validate({"backend": backend})
    detect_language(series.head(1), config)  # loads the model
    start = time.process_time()
    found = detect_language(series, config)["lang"].replace(SAME)
    seconds = time.process_time() - start
    is_right = documents.select("lang", right=(found == documents["lang"]).fill_null(False))
    languages = is_right.group_by("lang").agg(pl.col("right").mean()).sort("right", "lang")
    worst = ", ".join(f"{lang} {right:.2f}" for lang, right in languages.head(3).rows())
    accuracy = is_right.filter("right").height / len(texts)
    return (
        f"| {backend} | {length:,} | {len(texts):,} | {accuracy:.3f} | {worst} "
        f"| {len(texts) / seconds:,.0f} |"
    )


def cut(text: str, length: int, draw: random.Random) -> str:
    """`length` characters of `text`, from the first word start at or after a drawn place."""
    place = draw.randint(0, len(text) - length)
    while 0 < place < len(text) - length and not text[place - 1].isspace():
        place += 1
    return text[place : place + length]


if __name__ == "__main__":
    main()
