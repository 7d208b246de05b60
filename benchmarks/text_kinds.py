"""Good texts of each kind that `balanced` keeps, and pages that only say why there is no page.

    python benchmarks/text_kinds.py /data/corpora [--tune] [--count 40] [--logs /usr/share/doc]
    python benchmarks/text_kinds.py /data/corpora --show formulas --shown 5

Both are made with a seed from the half of the pages that is kept aside (good_kinds.py,
notices.yaml), or with --tune from the half that the models are trained on. --logs adds the real
changelogs below a folder, cut at 1,200 characters. The domain is `general`, no language is
declared. In the second table the texts are notices; in the first `prose` is about such notices.
"""

from __future__ import annotations

import argparse
import gzip
import random
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import_module("pipeline_defs")  # what it tells Polars' allocator must come before polars

import polars as pl  # noqa: E402
from corpus_texts import read_texts  # noqa: E402
from good_kinds import NOTICES, WORDS, GoodText, good_texts  # noqa: E402
from training_junk import notice_of  # noqa: E402

from assets.filtered.filter_documents import NO_FILES, filter_documents  # noqa: E402
from resources.settings.pipeline import Settings  # noqa: E402

LENGTHS = (600, 1_200, 3_000)  # characters, between these classes
CLASSES = ("<600", "600-1200", "1200-3000", ">3000")
LOG_LENGTH = 1_200
NOTICES_A_KIND = 20  # of each language


def main() -> None:
    """Print both tables, and texts of a kind that are judged wrongly."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="a subfolder per source")
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--count", type=int, default=40, help="good texts of a kind and language")
    parser.add_argument("--logs", type=Path, help="folder of changelogs")
    parser.add_argument("--show", help="kind of which wrongly judged texts are printed")
    parser.add_argument("--shown", type=int, default=5)
    options = parser.parse_args()
    documents = read_texts(options.folder)
    rows = documents.select("text", pl.col("lang").fill_null("-"), "source").rows()
    good = [*good_texts(rows, options.count, seed=0, is_tuning=options.tune)]
    good += logs_in(options.logs) if options.logs else []
    print("| kept | " + " | ".join(CLASSES) + " | all |\n|---" + "|---:" * 5 + "|")
    print_shares(judge(good), is_junk=False)
    print("\n| rejected | " + " | ".join(sorted(WORDS.changes)) + " | all |")
    print("|---" + "|---:" * (len(WORDS.changes) + 1) + "|")
    junk = [*notice_texts(is_tuning=options.tune)]
    print_shares(judge(junk), is_junk=True)
    if options.show:
        for judged, is_junk in ((judge(good), False), (judge(junk), True)):
            wrong = judged.filter(kind=options.show, is_rejected=not is_junk)
            for row in wrong.sample(min(options.shown, len(wrong)), seed=1).iter_rows(named=True):
                print("=" * 80, row["family"], row["lang"], row["reasons"], row["text"], sep="\n")


def logs_in(folder: Path) -> Iterator[GoodText]:
    """Yield the beginnings of the changelogs below a folder."""
    for path in sorted(folder.glob("*/changelog*.gz")):
        text = gzip.decompress(path.read_bytes()).decode(errors="replace")[:LOG_LENGTH]
        if len(text) == LOG_LENGTH:
            yield GoodText(text, "real log", "real log", "en")


def notice_texts(*, is_tuning: bool) -> Iterator[GoodText]:
    """Yield notices of each kind and language."""
    for lang in sorted(WORDS.changes):
        for kind, own in NOTICES.items():
            if lang in own:
                for number in range(NOTICES_A_KIND):
                    drawn = random.Random(f"{lang}/{kind}/{number}/{is_tuning}")
                    text = notice_of(drawn, kind, lang, is_tuning=is_tuning)
                    yield GoodText(text, kind, kind, lang)


def judge(texts: Sequence[GoodText]) -> pl.DataFrame:
    """Filter texts: those of GoodText, reasons, is_rejected."""
    source = {"name": "s", "where": "*"}
    settings = Settings.model_validate(
        {
            "store": "unused",
            "sources": [source],
            "filters": {"presets": ["balanced"]},
            "phases": [{"name": "all", "weights": {"s": 1}}],
        }
    )
    given = pl.DataFrame(texts, orient="row", schema=list(GoodText._fields))
    documents = pl.DataFrame(
        {
            "doc_id": [f"{number:032x}" for number in range(len(given))],
            "source": "s",
            "text": given["text"],
            "lang": "und",
            "meta": "{}",
            "url": pl.Series([None] * len(given), dtype=pl.String),
        }
    )
    reasons = filter_documents(documents, settings.filters_for("s"), NO_FILES)[1]["reasons"]
    return given.with_columns(reasons, is_rejected=reasons.list.len() > 0)


def print_shares(judged: pl.DataFrame, *, is_junk: bool) -> None:
    """Print a row for each kind, with a column for each length, or language of junk."""
    length = pl.col("text").str.len_chars()
    classed = pl.lit(CLASSES[-1])
    for name, limit in reversed([*zip(CLASSES, LENGTHS, strict=False)]):
        classed = pl.when(length < limit).then(pl.lit(name)).otherwise(classed)
    is_right = pl.col("is_rejected") if is_junk else ~pl.col("is_rejected")
    column = pl.col("lang") if is_junk else classed
    judged = judged.with_columns(is_right=is_right, column=column)
    columns = sorted(WORDS.changes) if is_junk else CLASSES
    for (kind,), own in judged.group_by("kind", maintain_order=True):
        cells = [own.filter(column=name)["is_right"] for name in columns]
        shares = [f"{cell.sum()}/{len(cell)}" if len(cell) else "" for cell in cells]
        print(f"| {kind} | {' | '.join(shares)} | {own['is_right'].mean():.1%} |")
        if not is_junk:
            reasons = own["reasons"].explode().drop_nulls().value_counts(sort=True).head(4).rows()
            print("  ", reasons)


if __name__ == "__main__":
    main()
