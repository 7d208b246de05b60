"""Tables of what is published, for queries: manifests of a state, and the trained documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from msgspec.structs import astuple

from assets.bucketed.bucketed_records import BUCKETED
from assets.deduped.deduped_records import DEDUPED
from assets.filtered.filtered_records import FILTERED
from assets.mixed.complete_state_files import CompleteState
from assets.mixed.mixed_records import MIXED
from assets.raw.raw_records import RAW
from assets.sharded.sharded_records import SHARDED
from assets.tokenized.tokenized_records import TOKENIZED
from pipeline_defs.commands.share.trained_documents import Window, documents_table, windows_of
from pipeline_defs.record_fates import complete_chain, source_cuts, source_fates
from resources.corpus import Corpus
from resources.settings.buckets import VALIDATION
from resources.store.records import Manifest, StageRecords
from resources.store.store import typed

STAGES: tuple[StageRecords[Any, Any], ...] = (RAW, FILTERED, DEDUPED, TOKENIZED, BUCKETED, SHARDED)
TABLES = {
    "fates": "source, fate, stage, reason, documents, tokens: what became of the records of a "
    "source, from the counts in its manifests; every record is in one row",
    "cuts": "source, cut, amount: what was cut out of documents, from these counts",
    "contaminated": "source, evaluation_set, documents: `stats.extra.contaminated` of deduped",
    "mix": "phase, source, tokens, epochs: `parts[0].stats.extra.mix` of mixed, as realised",
    "documents": "source, domain, license, language, is_code, documents, bytes, tokens: of the "
    "documents in training shards: those in the sequences of bucketed that are not held out. "
    "domain: registrable domain of `url` (publicsuffixlist), of crawled sources only; is_code: the "
    "source's `domain` is code",
}
Key = tuple[str, str]  # stage and partition
Manifests = Mapping[Key, Manifest[Any, Any]]


def published_manifests(corpus: Corpus, state: CompleteState) -> tuple[Manifests, dict[Key, str]]:
    """Return the manifests of a state that tables are made of, and their paths in the store."""
    manifests: dict[Key, Manifest[Any, Any]] = {}
    paths: dict[Key, str] = {}
    wanted = [(stage, name) for name in state.sources for stage in STAGES]
    wanted += [(MIXED, name) for name in corpus.settings.phase_names() if name != VALIDATION]
    for stage, name in wanted:
        if found := state.manifests.get((stage.name, name)):
            manifests[stage.name, name] = typed(found[1], stage)
            path = corpus.store.partition(stage.name, name).manifest_path(found[0])
            paths[stage.name, name] = str(path.relative_to(corpus.store.root))
    return manifests, paths


def tables_of(corpus: Corpus, manifests: Manifests) -> dict[str, pl.DataFrame]:
    """Return the tables of TABLES."""
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES if name != "documents"}
    windows: list[Window] = []
    for source in corpus.settings.source_names():
        of_source = {stage: each for (stage, name), each in manifests.items() if name == source}
        rows["fates"] += map(astuple, source_fates(source, of_source))
        rows["cuts"] += ((source, *cut) for cut in source_cuts(of_source).items())
        windows += windows_of(corpus, source, complete_chain(of_source))
    for (stage, name), manifest in manifests.items():
        if stage == DEDUPED.name:
            hits = manifest.stats.numbers.contaminated or {}
            rows["contaminated"] += ((name, each, n) for each, n in hits.items())
        if stage == MIXED.name:
            mix = manifest.parts[0].stats.numbers.mix.items()
            rows["mix"] += ((name, each, of.realised_tokens, of.epochs) for each, of in mix)
    tables = {name: as_table(name, of) for name, of in rows.items()}
    return tables | {"documents": documents_table(corpus, windows)}


def as_table(name: str, rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    """Return rows as the table of that name, with the type of each column also without rows."""
    columns = TABLES[name].partition(":")[0].split(", ")
    texts = ("phase", "source", "fate", "stage", "reason", "evaluation_set", "cut")
    types: dict[str, pl.DataType] = dict.fromkeys(texts, pl.String())
    types |= {"epochs": pl.Float64()}
    schema = {column: types.get(column, pl.Int64()) for column in columns}
    return pl.DataFrame(rows, schema=schema, orient="row")
