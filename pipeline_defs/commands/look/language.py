"""`corpus language check`: our language labels against langdetect's, on a sample of the corpus.

The sample is the documents whose hash under the seed is lowest, so it is the same in every run, and
langdetect is seeded. Languages of one family count as equal: both detectors confuse them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl
import xxhash
from cyclopts import Parameter

from assets.filtered.language.detect_language import detect_language, family_of, plain_language
from pipeline_defs.commands.published_documents import filtered_manifests, path_of, raw_manifest
from pipeline_defs.commands.terminal import Positive, say
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.settings.filtering.filter_steps import LanguageConfig
from resources.store.records import Manifest, PartRecord

SHOWN = 20  # differences that are printed
AS_LANGDETECT = LanguageConfig(backend="langdetect", max_code_score=None)


def check(
    *,
    sample: Annotated[Positive, Parameter(help="Number of documents.")] = 5000,
    seed: Annotated[int, Parameter(help="Another seed gives other documents.")] = 0,
    at_least: Annotated[float, Parameter(help="Exit code 1 below this agreement.")] = 0.9,
    file: Annotated[Path | None, Parameter(help="Write all differences to this CSV file.")] = None,
) -> int:
    """Compare the labels, and name the differences."""
    documents = sampled(load_corpus(), sample, seed)
    if documents.is_empty():
        raise UsageError("no document has a language to check: run `corpus build` first.")
    compared = compare(documents)
    agreement = float(compared["equal"].mean() or 0)  # type: ignore[arg-type]
    say(
        f"{documents.height:,} documents, {compared.height:,} with a language by both detectors; "
        f"agreement {agreement:.1%}"
    )
    by_language = compared.group_by("ours").agg(pl.len(), pl.col("equal").mean())
    for lang, count, equal in by_language.sort("len", "ours", descending=[True, False]).iter_rows():
        say(f"  {lang}: {equal:.1%} of {count:,}")
    differences = compared.filter(~pl.col("equal")).drop("equal")
    for row in differences.head(SHOWN).iter_rows(named=True):
        right = f", {row['likely_right']} is likely right" if row["likely_right"] else ""
        say(
            f"  {row['source']} {row['doc_id']}: {row['ours']} here, {row['langdetect']} by "
            f"langdetect (declared: {row['declared'] or '-'}){right}"
        )
    if file is not None:
        differences.write_csv(file)
        say(f"Wrote {differences.height:,} differences to {file}")
    elif differences.height > SHOWN:
        say(f"  and {differences.height - SHOWN:,} more: --file FILE writes all")
    return 0 if agreement >= at_least else 1


def compare(documents: pl.DataFrame) -> pl.DataFrame:
    """Return source, doc_id, ours, langdetect, declared, likely_right and equal.

    `documents` has source, doc_id, text, ours and declared (String); those without a language by
    one of the two are left out. likely_right names the detector whose family is the declared one.
    """
    theirs = plain_language(detect_language(documents["text"], AS_LANGDETECT)["lang"])
    named = documents.with_columns(langdetect=theirs).filter(
        pl.col("ours").is_not_null() & pl.col("langdetect").is_not_null()
    )
    ours, other = family_of(named["ours"]), family_of(named["langdetect"])
    declared = family_of(plain_language(named["declared"]))
    right = (
        pl.when(ours == declared)
        .then(pl.lit("ours"))
        .when(other == declared)
        .then(pl.lit("langdetect"))
        .when(declared.is_not_null())
        .then(pl.lit("neither"))
    )
    return named.drop("text").with_columns(
        equal=ours == other, likely_right=pl.when(ours != other).then(right)
    )


def sampled(corpus: Corpus, size: int, seed: int) -> pl.DataFrame:
    """Return source, doc_id, text, ours and declared of the sample, in the order of its hashes."""
    chosen: list[pl.DataFrame] = []
    for manifest in filtered_manifests(corpus):
        raw = raw_manifest(corpus, manifest)
        parts = {part.name: part for part in raw.parts}
        for part in manifest.parts:
            chosen.append(lowest(corpus, (manifest, part), (raw, parts[part.name]), (size, seed)))
            chosen = [pl.concat(chosen).sort("key", "doc_id").head(size)]  # memory: one sample
    return pl.concat(chosen).drop("key") if chosen else pl.DataFrame()


def lowest(
    corpus: Corpus,
    filtered: tuple[Manifest, PartRecord],
    raw: tuple[Manifest, PartRecord],
    choice: tuple[int, int],
) -> pl.DataFrame:
    """Return the kept documents of a part whose hashes are lowest, with both languages."""
    size, seed = choice
    kept = pl.read_parquet(path_of(corpus, *filtered, "documents"), columns=["doc_id", "text"])
    keys = [xxhash.xxh3_64_intdigest(name.encode(), seed % 2**64) for name in kept["doc_id"]]
    kept = kept.with_columns(key=pl.Series(keys, dtype=pl.UInt64)).sort("key", "doc_id").head(size)
    labels = pl.read_parquet(
        path_of(corpus, *filtered, "decisions"), columns=["doc_id", "detected_lang"]
    )
    declared = pl.read_parquet(path_of(corpus, *raw, "documents"), columns=["doc_id", "lang"])
    joined = kept.join(labels, "doc_id", "left").join(declared, "doc_id", "left")
    return joined.select(
        pl.lit(filtered[0].partition).alias("source"),
        "doc_id",
        "text",
        ours="detected_lang",
        declared="lang",
        key="key",
    )
