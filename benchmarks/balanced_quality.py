"""Clean text that the filters reject, by cell, and planted junk that they reject, by kind.

    python benchmarks/balanced_quality.py /data/corpora [--preset balanced]
    python benchmarks/balanced_quality.py /data/corpora --config pipeline.yaml
    python benchmarks/balanced_quality.py /data/corpora --tune --show "truncated pages"
    python benchmarks/balanced_quality.py /data/corpora --show "web en <500" --fraction 0.2

The folder has one subfolder per source. The clean table has the share of documents that are
rejected per source, language and length (cells of 100 documents or more), worst first, and the
rules that reject them. Documents that were read and judged to be junk (--reject-list, one `id
reason` a line) count apart. The junk table has the share of planted junk that is rejected
(planted_junk.py), under the filters of web pages and with no language declared: with --tune from
the pages and families for tuning, without it from those kept aside.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import_module("pipeline_defs")  # what it tells Polars' allocator must come before polars

import polars as pl  # noqa: E402
from planted_junk import FAMILIES, KINDS, Page, plant  # noqa: E402

from assets.filtered.filter_documents import NO_FILES, filter_documents  # noqa: E402
from assets.raw.places.find_inputs import find_inputs  # noqa: E402
from assets.raw.readers.read_chunks import plan_slices, read_chunks  # noqa: E402
from resources.settings.filtering.filters import FilterConfig  # noqa: E402
from resources.settings.filtering.presets import DOMAINS  # noqa: E402
from resources.settings.full_source import Source  # noqa: E402
from resources.settings.pipeline import Settings, load_settings  # noqa: E402

SOURCES = ("reference", "multilingual", "code", "science", "books", "web")
JUNK_IS_ON = "web"  # source whose filters judge the planted junk
CLASSES = {"<500": 500, "500-2000": 2_000, "2000-20000": 20_000, ">20000": None}
LEAST_DOCUMENTS = 100  # of a cell
GOAL = 0.05
BATCH_BYTES = 16 << 20
RULES_SHOWN = 4
EXCERPT = 400  # characters of each end of a document


class Options(argparse.Namespace):
    """Arguments of the command line."""

    folder: Path
    preset: str
    config: Path | None
    tune: bool
    only: str | None
    sources: tuple[str, ...]
    fraction: float
    count: int
    seed: int
    show: str | None
    shown: int
    reject_list: Path


def main() -> None:
    """Filter the corpora and the planted junk, and print both tables."""
    options = parse()
    settings = settings_of(options)
    documents = {name: read_source(options, settings, name) for name in SOURCES}
    if options.only != "junk":
        junk_ids = read_list(options.reject_list)
        frames = [
            judge_source(sampled(documents[name], options.fraction), settings.filters_for(name))
            for name in options.sources
            if documents[name].height
        ]
        print_clean(pl.concat(frames), junk_ids, options)
    if options.only != "clean":
        pages = pages_of(pl.concat(documents.values()))
        print_junk(judge_junk(pages, settings.filters_for(JUNK_IS_ON), options), options)


def parse() -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="a subfolder per source")
    parser.add_argument("--preset", default="balanced", help="judges every source, in its domain")
    parser.add_argument("--config", type=Path, help="pipeline.yaml to judge with, by source name")
    parser.add_argument(
        "--tune", action="store_true", help="junk for tuning, not the one kept aside"
    )
    parser.add_argument("--only", choices=("clean", "junk"))
    parser.add_argument("--sources", type=lambda text: tuple(text.split(",")), default=SOURCES)
    parser.add_argument("--fraction", type=float, default=1.0, help="of the clean documents")
    parser.add_argument("--count", type=int, default=1000, help="junk documents of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--show",
        help="examples: rejected documents of a cell ('web en <500'; a part is enough), or junk of "
        f"a kind that is kept ({', '.join(KINDS)})",
    )
    parser.add_argument("--shown", type=int, default=20, help="number of examples")
    parser.add_argument(
        "--reject-list", type=Path, default=Path(__file__).with_name("junk_in_corpora.txt")
    )
    return parser.parse_args(namespace=Options())


def settings_of(options: Options) -> Settings:
    """Return the settings of --config, or of the preset in the domain of each source."""
    if options.config:
        return load_settings(options.config)
    sources = [
        {"name": name, "where": "*", "domain": name if name in DOMAINS else "general"}
        for name in SOURCES
    ]
    return Settings.model_validate(
        {
            "store": "unused",
            "sources": sources,
            "filters": {"presets": [options.preset]},
            "phases": [{"name": "all", "weights": dict.fromkeys(SOURCES, 1)}],
        }
    )


def read_source(options: Options, settings: Settings, name: str) -> pl.DataFrame:
    """Read the documents of one source: the columns of `raw`, and `name` to tell them by.

    lang is the record's or else the one that the settings declare; own_lang is the record's.
    """
    folder = options.folder / name
    places = [str(path) for path in (f"{folder}/*", f"{folder}/*/*")]
    source = Source.model_validate(
        {"name": name, "where": places, "id_field": "id", "allow_no_files": True}
    )
    inputs = find_inputs(source, ROOT, ROOT / "unused/downloads")
    chunks = [
        chunk.documents
        for file in inputs.files
        for file_slice in plan_slices(file, 1 << 30)
        for chunk in read_chunks(file, file_slice, source, 1 << 30)
    ]
    origin = pl.col("origin").struct
    place = pl.format("{}:{}", origin.field("file").str.split("/").list.last(), origin.field("row"))
    documents = pl.concat(chunks).with_columns(
        pl.coalesce("id", "url", place).alias("name"),
        pl.when(pl.col("lang") != "und").then("lang").alias("own_lang"),
    )
    declared = pl.lit(settings.source(name).language, pl.String)
    return documents.with_columns(lang=pl.coalesce("own_lang", declared))


def sampled(documents: pl.DataFrame, fraction: float) -> pl.DataFrame:
    """Return a share of the documents, the same in every run."""
    digits = documents["doc_id"].str.slice(0, 7).str.to_integer(base=16)
    return documents.filter(digits < fraction * 16**7)


def judge_source(documents: pl.DataFrame, config: FilterConfig) -> pl.DataFrame:
    """Filter documents a bounded number of bytes at a time: name, lang, text, reasons ..."""
    parts = [
        batch.select("source", "name", "own_lang", "text").hstack(
            filter_documents(batch, config, NO_FILES)[1].select("reasons", "detected_lang")
        )
        for batch in batches(documents)
    ]
    return pl.concat(parts).with_columns(lang=pl.coalesce("own_lang", "detected_lang", pl.lit("-")))


def batches(documents: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield documents in order, about BATCH_BYTES of text at a time."""
    number = documents["text"].str.len_bytes().cast(pl.Int64).cum_sum() // BATCH_BYTES
    yield from documents.with_columns(number.alias("batch")).partition_by(
        "batch", include_key=False, maintain_order=True
    )


def read_list(path: Path) -> list[str]:
    """Return the ids of a reject list; its lines are `id reason`."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]


def print_clean(judged: pl.DataFrame, junk_ids: list[str], options: Options) -> None:
    """Print the table of cells, worst first, and the total."""
    length = pl.col("text").str.len_chars()
    label = pl.lit(">20000")
    for name, limit in reversed(list(CLASSES.items())):
        if limit is not None:
            label = pl.when(length < limit).then(pl.lit(name)).otherwise(label)
    judged = judged.with_columns(
        cell=pl.format("{} {} {}", "source", "lang", label),
        is_rejected=pl.col("reasons").list.len() > 0,
    )
    is_junk = judged["name"].is_in(junk_ids)
    left_out, judged = judged.filter(is_junk), judged.filter(~is_junk)
    cells = judged.group_by("cell").agg(
        pl.len().alias("documents"), pl.col("is_rejected").mean().alias("share"), "reasons"
    )
    cells = cells.filter(pl.col("documents") >= LEAST_DOCUMENTS * options.fraction)
    cells = cells.sort("share", "cell", descending=[True, False])
    print("| cell | documents | rejected | rules |\n|---|---:|---:|---|")
    for cell, documents, share, reasons in cells.iter_rows():
        rules = "; ".join(
            f"{rule} {count / documents:.1%}" for rule, count in count_rules(reasons)[:RULES_SHOWN]
        )
        print(f"| {cell} | {documents:,} | {share:.1%} | {rules} |")
    over = cells.filter(pl.col("share") > GOAL).height
    print(
        f"\n{over} of {cells.height} cells above {GOAL:.0%}; {judged['is_rejected'].mean():.1%} of "
        f"{judged.height:,} documents rejected. Judged to be junk by reading: {left_out.height} "
        f"documents, {left_out['is_rejected'].sum()} rejected."
    )
    by_origin(judged)
    if options.show:
        is_shown = judged["cell"].str.contains(options.show, literal=True) & judged["is_rejected"]
        print_examples(judged.filter(is_shown).rename({"cell": "label"}), options)


def by_origin(judged: pl.DataFrame) -> None:
    """Print the share rejected per collection, where the ids name one."""
    origin = pl.format("{} {}", "source", pl.col("name").str.extract(r"^([\w.-]+):"))
    shares = judged.group_by(origin.alias("origin")).agg(
        pl.len().alias("documents"), pl.col("is_rejected").mean().alias("share")
    )
    shares = shares.filter(pl.col("documents") >= LEAST_DOCUMENTS, pl.col("share") > GOAL)
    print(f"\ncollections above {GOAL:.0%}:")
    for name, documents, share in shares.sort("share", descending=True).iter_rows():
        print(f"  {name}: {share:.1%} of {documents:,}")


def count_rules(reasons: list[list[str]]) -> list[tuple[str, int]]:
    """Count the documents that break each rule, the most frequent first."""
    counts: dict[str, int] = {}
    for rules in reasons:
        for rule in rules:
            counts[rule] = counts.get(rule, 0) + 1
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def pages_of(documents: pl.DataFrame) -> list[Page]:
    """Return the real pages that junk is made from: no code."""
    chosen = documents.filter(pl.col("source") != "code").select("text", "own_lang")
    return [Page(text, lang or "en") for text, lang in chosen.iter_rows()]


def judge_junk(pages: list[Page], config: FilterConfig, options: Options) -> pl.DataFrame:
    """Plant junk of every kind and filter it: kind, family, text, reasons, is_rejected."""
    planted = [
        junk
        for kind in KINDS
        for junk in plant(kind, pages, options.count, options.seed, is_tuning=options.tune)
    ]
    documents = pl.DataFrame(
        {
            "doc_id": [f"{number:08d}" for number in range(len(planted))],
            "text": [junk.text for junk in planted],
            "kind": [junk.family.kind for junk in planted],
            "family": [junk.family.name for junk in planted],
        }
    ).with_columns(pl.lit(None, pl.String).alias("lang"))
    decisions = pl.concat(filter_documents(b, config, NO_FILES)[1] for b in batches(documents))
    return documents.hstack(decisions.select("reasons", (~pl.col("kept")).alias("is_rejected")))


def print_junk(judged: pl.DataFrame, options: Options) -> None:
    """Print the share rejected per kind, by which rules, and per family."""
    half = "for tuning" if options.tune else "kept aside"
    print(f"\nplanted junk, {half}\n\n| kind | documents | rejected | rules |\n|---|---:|---:|---|")
    for kind in KINDS:
        mine = judged.filter(pl.col("kind") == kind)
        rules = "; ".join(
            f"{rule} {count / mine.height:.0%}"
            for rule, count in count_rules(mine["reasons"].to_list())[: 2 * RULES_SHOWN]
        )
        print(f"| {kind} | {mine.height:,} | {mine['is_rejected'].mean():.1%} | {rules} |")
    print("\n| kind | family | documents | rejected |\n|---|---|---:|---:|")
    aside = {family.name for family in FAMILIES if family.is_kept_aside}
    shares = judged.group_by("kind", "family").agg(pl.len(), pl.col("is_rejected").mean())
    for kind, family, documents, share in shares.sort("kind", "is_rejected").iter_rows():
        mark = " (template kept aside)" if family in aside else ""
        print(f"| {kind} | {family}{mark} | {documents} | {share:.1%} |")
    if options.show in KINDS:
        kept = judged.filter(~pl.col("is_rejected"), pl.col("kind") == options.show)
        print_examples(kept.rename({"family": "label", "doc_id": "name"}), options)


def print_examples(documents: pl.DataFrame, options: Options) -> None:
    """Print the beginnings and ends of some documents, drawn with the seed."""
    chosen = documents.sample(min(options.shown, documents.height), seed=options.seed)
    for name, label, text, reasons in chosen.select("name", "label", "text", "reasons").iter_rows():
        print(f"\n=== {name} [{label}] {len(text):,} characters: {', '.join(reasons) or 'kept'}")
        short = len(text) <= 2 * EXCERPT
        print(text if short else f"{text[:EXCERPT]}\n [...]\n{text[-EXCERPT:]}")


if __name__ == "__main__":
    main()
