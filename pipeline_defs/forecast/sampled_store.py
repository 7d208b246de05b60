"""A store of a sample: documents of small ranges of each source, taken through the stages.

What `sample_source` draws is published as `raw` of a store in a temporary folder. The stages up to
`deduped` then run on it as they do in a build.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from assets.deduped.document_files import kept_documents, read_kept
from assets.filtered.asset import needs_classifier
from assets.raw.places.find_inputs import find_inputs
from assets.raw.places.sampling.drawn_blocks import SourceSample
from assets.raw.places.sampling.sample_source import sample_source, sizes_only
from assets.raw.raw_records import RAW, RawNumbers, RawProvenance
from assets.stages import ancestors, used_stages
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.dagster_home import HOME_VARIABLE
from resources.materialize.materialization import publish_partitions
from resources.settings.filtering.presets import lay_over
from resources.source_faults import SourceFaults
from resources.stage import partition_names
from resources.store.records import Manifest, Stats
from resources.store.store import PartWriter, Store
from resources.tasks import GLOBAL

LAST = stage_names.DEDUPED
PART = "sample"


@dataclass
class Sampled:
    """The sample of a source, and what the stages made of it.

    documents   a row each: block, doc_id, text_bytes; after the stages also kept, reasons, and
                `text`, of those that the rules keep
    copies      the removed ones: source of the survivor, size of the cluster
    """

    sample: SourceSample
    documents: pl.DataFrame
    notes: list[str]
    copies: pl.DataFrame


@dataclass(frozen=True)
class SampledStore:
    """Samples by source; text, bytes of files and CPU seconds of the rules on it."""

    sources: Mapping[str, Sampled]
    text_bytes: int
    file_bytes: int
    filter_seconds: float


def build_sample(
    corpus: Corpus, sources: Sequence[str], share: float, seed: int, folder: Path
) -> SampledStore:
    """Draw a sample of some sources, and take it through the stages in a folder."""
    sampled, notes = sampled_corpus(corpus, sources, folder)
    found: dict[str, Sampled] = {}
    for name in sources:
        config = corpus.settings.source(name)
        base, downloads = corpus.config.parent, corpus.downloads
        inputs = find_inputs(config, base, downloads, sizes_only, needs_copies=False)
        number = corpus.settings.source_names().index(name)
        sample = sample_source(inputs.files, config, share, np.random.default_rng([seed, number]))
        if sample.unread:
            notes[name].append(
                f"{len(sample.unread):,} files are not sampled ({sample.unread[0]}, ...): they "
                "count as the others do"
            )
        raw = sample.table()
        ids = [f"{number:08x}{row:024x}" for row in range(raw.height)]
        raw = raw.with_columns(doc_id=pl.Series(ids, dtype=pl.String))
        publish_raw(sampled, name, raw.drop("block"))
        documents = raw.select("block", "doc_id", text_bytes=pl.col("text").str.len_bytes())
        found[name] = Sampled(sample, documents, notes[name], pl.DataFrame())
    seconds = run_stages(sampled)
    copies = removed_copies(sampled)
    for name, each in found.items():
        each.documents = each.documents.join(results(sampled, name), "doc_id", "left")
        each.copies = copies.filter(pl.col("source") == name)
    text_bytes = sum(int(each.documents["text_bytes"].sum()) for each in found.values())
    return SampledStore(found, text_bytes, bytes_on_disk(sampled), seconds)


def sampled_corpus(
    corpus: Corpus, sources: Sequence[str], folder: Path
) -> tuple[Corpus, dict[str, list[str]]]:
    """Return a corpus with an empty store; and notes, by source, on what is left out of it."""
    notes: dict[str, list[str]] = {name: [] for name in sources}
    configs = []
    for name in sources:
        config = corpus.settings.source(name)
        if needs_classifier(corpus.settings.filters_for(name)):
            without = lay_over(config.filters, {"rules": {"quality": None}})
            config = config.model_copy(update={"filters": without})
            notes[name].append(
                "rules.quality is not estimated: its classifier is trained in the build"
            )
        configs.append(config)
    engine = corpus.settings.engine.model_copy(update={"kind": "in_process"})
    changes = {"sources": tuple(configs), "classifier": None, "engine": engine}
    settings = corpus.settings.model_copy(update=changes)
    return replace(corpus, settings=settings, store=Store(folder / "store")), notes


def publish_raw(sampled: Corpus, source: str, documents: pl.DataFrame) -> None:
    """Publish drawn documents as `raw` of a source."""
    folder = sampled.store.partition(RAW.name, source)
    text_bytes = int(documents["text"].str.len_bytes().sum())
    stats = Stats(
        rows_in=documents.height,
        rows_kept=documents.height,
        bytes=text_bytes,
        text_bytes=text_bytes,
        numbers=RawNumbers(),
    )
    with folder.writing(1):
        writer = PartWriter(folder, PART, f"{0:032x}", sampled.settings.compression)
        writer.write_parquet("documents", documents)
        parts, fingerprint = (writer.publish(stats),), f"{0:032x}"
        about = RawProvenance()
        manifest = Manifest(
            RAW.name, source, fingerprint, RAW.code_version, {}, parts, stats, about
        )
        folder.commit(manifest)


def run_stages(sampled: Corpus) -> float:
    """Run the stages after `raw` up to the last; return the CPU seconds of `filtered`."""
    used = used_stages(sampled.settings)
    wanted = ({LAST} | ancestors(used[LAST])) - {RAW.name}
    seconds = 0.0
    for name in (name for name in used if name in wanted):
        stage = replace(used[name], describe=None)  # no one sees its pictures
        for call in stage.warm_up(sampled) if stage.warm_up else ():
            call()  # loads, or compiles, the kernels
        begun = time.process_time()
        names = partition_names(stage, sampled.settings)
        with records_in(sampled.store.root.parent):
            publish_partitions(sampled, stage, names, SourceFaults(stops=True))
        seconds = time.process_time() - begun if name == stage_names.FILTERED else seconds
    return seconds


@contextmanager
def records_in(folder: Path) -> Iterator[None]:
    """Keep the records of runs in a folder: nobody asks for those of a sample."""
    before = os.environ.get(HOME_VARIABLE, "")  # "" is no folder
    os.environ[HOME_VARIABLE] = str(folder / "records")
    try:
        yield
    finally:
        os.environ[HOME_VARIABLE] = before


def results(sampled: Corpus, source: str) -> pl.DataFrame:
    """Return what the rules made of documents: doc_id, kept, reasons, language, text if kept."""
    manifest = sampled.store.newest(stage_names.FILTERED, source)
    [part] = manifest.parts
    decisions = pl.read_parquet(sampled.store.part_file(manifest, part, "decisions").checked())
    texts = read_kept(kept_documents(sampled.store, manifest, part), ["doc_id", "text"])
    decisions = decisions.select("doc_id", "kept", "reasons", "detected_lang")
    return decisions.join(texts, "doc_id", "left", maintain_order="left")


def removed_copies(sampled: Corpus) -> pl.DataFrame:
    """Return the copies that are removed: source, kept_source, cluster_size."""
    manifest = sampled.store.newest(stage_names.DUPLICATES, GLOBAL)
    schema = {"source": pl.String, "kept_source": pl.String, "cluster_size": pl.Int64}
    found = [pl.DataFrame(schema=schema)]
    for part in manifest.parts:
        if part.file("clusters"):
            clusters = pl.read_parquet(
                sampled.store.part_file(manifest, part, "clusters").checked()
            )
            named = clusters.filter(pl.col("method").is_not_null()).with_columns(
                source=pl.lit(part.stats.numbers["source"])
            )
            found.append(named.select(pl.col(name).cast(dtype) for name, dtype in schema.items()))
    return pl.concat(found)


def bytes_on_disk(corpus: Corpus) -> int:
    """Return the bytes of the files that the newest manifests name."""
    manifests = (
        corpus.store.partition(stage.name, partition).newest_manifest()
        for stage in used_stages(corpus.settings).values()
        for partition in partition_names(stage, corpus.settings)
    )
    parts = (part for manifest in manifests if manifest for part in manifest.parts)
    return sum(file.bytes for part in parts for file in part.files)
