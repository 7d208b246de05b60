"""substrings: long runs of words that occur elsewhere too, found over all sources.

Five passes, the second and fourth over the hashes with one prefix, the others over one part: find
the picks of each part, those that occur twice, the runs behind them, those that occur elsewhere,
and the spans. Parts of the first four are removed when the manifest is committed.
`repeats/substrings.py` explains why this finds all repeats and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from unicodedata import unidata_version

import msgspec
import polars as pl

from assets.deduped.deduped_records import (
    DUPLICATES,
    SUBSTRINGS,
    ClustersManifest,
    SubstringsNumbers,
    SubstringsProvenance,
    cluster_parts,
)
from assets.deduped.index.band_index import prefix_bits_for
from assets.deduped.repeats.substrings import (
    NUM_LONGEST,
    LongestSpan,
    candidate_runs,
    distinct_runs,
    finding,
    fingerprints,
    located_spans,
    longest_spans,
    numbered,
    repeated_words,
    shared_picks,
    shared_runs,
)
from assets.deduped.repeats.table_files import rows_of_part, tables_with_prefix
from assets.deduped.signed_files import (
    Removals,
    clustered_documents,
    remaining,
    removals_by_part,
    signed_sources,
)
from assets.text.table_rows import count_bytes
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.materialize.excerpts import DocumentText, as_excerpt
from resources.passes import Earlier, Pass, PassFiles, derive_task, file_of, in_passes, list_files
from resources.settings.repeats import SubstringsConfig
from resources.stage import MainTable, Metadata, Stage
from resources.store.mapped_files import read_arrow
from resources.store.published import PublishedFile
from resources.store.records import Manifest, PartRecord, Stats, fingerprint_of, to_json
from resources.tasks import GLOBAL, Plan, Task, tasks_of


@dataclass(frozen=True)
class PartInputs:
    """Inputs of a pass over a filtered part; texts are compared with those of the same salt."""

    source: str
    part: str
    number: int  # in ingest order
    documents: PublishedFile
    removals: Removals
    config: SubstringsConfig
    salt: int

    def read(self) -> pl.DataFrame:
        """Read doc_id and text of the part's remaining documents, in order."""
        return remaining(self.documents, self.removals, ["doc_id", "text"])


@dataclass(frozen=True)
class HashInputs:
    """Inputs of a pass over the hashes with a prefix: the tables of the parts' earlier pass.

    `place` is the prefix and its number of bits.
    """

    place: tuple[int, int]
    config: SubstringsConfig
    parts: PassFiles


@dataclass(frozen=True)
class RunsInputs:
    """Inputs of the third pass over a part: the tables of picks that occur twice."""

    of_part: PartInputs
    twice: PassFiles


@dataclass(frozen=True)
class SpansInputs:
    """Inputs of the last pass over a part: its runs, and the tables of runs found elsewhere."""

    of_part: PartInputs
    runs: PublishedFile
    elsewhere: PassFiles


def find_picks(task: Task[PartInputs]) -> list[PartRecord]:
    """First pass: find the picks of a part's runs."""
    inputs = task.payload
    return publish_tables(
        task, picks=fingerprints(inputs.read()["text"], inputs.config, inputs.salt)
    )


def find_twice(task: Task[HashInputs]) -> list[PartRecord]:
    """Second pass: find the picks with a prefix that occur twice or more."""
    return publish_tables(task, twice=shared_picks(numbered_rows(task.payload)))


def find_runs(task: Task[RunsInputs]) -> list[PartRecord]:
    """Third pass: find the runs of a part whose picks occur twice or more.

    A part without any is not read.
    """
    inputs = task.payload.of_part
    shared = rows_of_part(task.payload.twice, inputs.number)["hash"]
    texts = inputs.read()["text"] if len(shared) else pl.Series(dtype=pl.String)
    runs = candidate_runs(texts, shared, inputs.config, inputs.salt)
    return publish_tables(task, runs=runs, distinct=distinct_runs(runs))


def find_elsewhere(task: Task[HashInputs]) -> list[PartRecord]:
    """Fourth pass: find the runs with a prefix that occur in an earlier part, or in any other."""
    runs = numbered_rows(task.payload)
    return publish_tables(task, elsewhere=shared_runs(runs, task.payload.config.keep_first))


def find_spans(task: Task[SpansInputs]) -> list[PartRecord]:
    """Last pass: find the spans of a part, as bytes of its documents."""
    inputs = task.payload.of_part
    documents = inputs.read()
    elsewhere = rows_of_part(task.payload.elsewhere, inputs.number)
    words = repeated_words(read_arrow(task.payload.runs.checked()), elsewhere, inputs.config)
    spans = located_spans(documents, words)
    writer = task.writer()
    writer.write_parquet("spans", spans)
    writer.write_text("longest", "json", to_json(longest_spans(documents, spans)).decode())
    rows, text_bytes = documents.height, count_bytes(documents["text"])
    numbers = SubstringsNumbers(
        source=inputs.source,
        part=inputs.part,
        spans_id=fingerprint_of(spans.rows()),
        spans=spans.height,
        span_words=int(spans["num_words"].sum()),
        span_bytes=int((spans["stop"] - spans["start"]).sum()),
        cut_documents=spans["doc_id"].n_unique(),
    )
    stats = Stats(rows, rows, bytes=text_bytes, text_bytes=text_bytes, numbers=numbers)
    return [writer.publish(stats)]


def publish_tables(task: Task, **tables: pl.DataFrame) -> list[PartRecord]:
    """Publish tables that a later pass maps into memory."""
    writer = task.writer()
    for kind, table in tables.items():
        writer.write_arrow(kind, table)
    return [writer.publish(Stats())]


def numbered_rows(inputs: HashInputs) -> pl.DataFrame:
    """Return the rows with the prefix of all parts, with the number of each one's part."""
    return numbered(list(tables_with_prefix(inputs.parts, inputs.place)))


SPAN_COLUMNS = {
    "doc_id": "the document",
    "start": "first byte of the span in the document's text",
    "stop": "byte after its last one",
    "num_words": "words in the span",
}
# A prefix takes 0.23 bytes a byte of real text (0.03 GB of 128 MB), 3.1 if all of its runs repeat.
MEMORY_PER_TEXT_BYTE = 4


SubstringsManifest = Manifest[SubstringsProvenance, SubstringsNumbers]


def plan_substrings(corpus: Corpus, partition: str) -> Plan:
    """Plan the tasks of the last pass, one per filtered part in ingest order; each needs all."""
    config = corpus.settings.dedup.substrings
    assert config is not None, "the stage is used with `dedup.substrings` only"
    clusters = corpus.store.newest(DUPLICATES, GLOBAL)
    sources = signed_sources(corpus)
    texts = [clustered_documents(corpus, signed.partition) for signed in sources.manifests]
    parts = list(plan_parts(corpus, texts, clusters, config))
    identities = [identity for _, identity, _ in parts]
    make = tasks_of(corpus, SUBSTRINGS, partition)
    made_of = (finding(config), unidata_version, identities)
    whole = make.task("spans", made_of, None, work_bytes=0)
    tasks = [
        derive_task(whole, numbered_name("spans", inputs), [inputs.number], inputs, text_bytes)
        for inputs, _, text_bytes in parts
    ]
    filtered = [manifest.fingerprint for manifest in texts]
    provenance = SubstringsProvenance(filtered, clusters.fingerprint)
    return Plan(tasks, finding(config), provenance, sources.left_out)


def plan_parts(
    corpus: Corpus,
    texts: Sequence[Manifest[Any, Any]],
    clusters: ClustersManifest,
    config: SubstringsConfig,
) -> Iterator[tuple[PartInputs, Sequence[object], int]]:
    """Yield inputs, identity and text bytes of each part, in ingest order: that of `clusters`."""
    documents = {(m.partition, part.name): (m, part) for m in texts for part in m.parts}
    removals = {m.partition: removals_by_part(corpus, m.partition) for m in texts}
    for number, clusters_part in enumerate(cluster_parts(clusters)):
        source, name = clusters_part.stats.numbers.key
        manifest, part = documents[source, name]
        removed = removals[source][name]
        inputs = PartInputs(
            source=source,
            part=name,
            number=number,
            documents=corpus.store.part_file(manifest, part, "documents"),
            removals=removed,
            config=config,
            salt=int(fingerprint_of(source)[:16], 16) if config.within == "source" else 0,
        )
        yield inputs, (source, name, part.fingerprint, removed.identity), part.stats.text_bytes


def numbered_name(name: str, inputs: PartInputs) -> str:
    """Return the name of a part of a pass over the filtered parts."""
    return f"{name}-{inputs.number:05d}"


def plan_picks(_: Corpus, tasks: list[Task[PartInputs]], __: Earlier) -> list[Task[PartInputs]]:
    """Plan the first pass: one task per part."""
    return [
        derive_task(task, numbered_name("picks", task.payload), ["picks"], task.payload)
        for task in tasks
    ]


def plan_twice(
    corpus: Corpus, tasks: list[Task[PartInputs]], earlier: Earlier
) -> list[Task[HashInputs]]:
    """Plan the second pass: one task per prefix of the hash."""
    (picks,) = earlier
    return hash_tasks(corpus, tasks, "twice", list_files(picks, "picks"))


def plan_runs(_: Corpus, tasks: list[Task[PartInputs]], earlier: Earlier) -> list[Task[RunsInputs]]:
    """Plan the third pass: one task per part."""
    twice = list_files(earlier[-1], "twice")
    return [
        derive_task(
            task, numbered_name("runs", task.payload), ["runs"], RunsInputs(task.payload, twice)
        )
        for task in tasks
    ]


def plan_elsewhere(
    corpus: Corpus, tasks: list[Task[PartInputs]], earlier: Earlier
) -> list[Task[HashInputs]]:
    """Plan the fourth pass: one task per prefix of the hash."""
    return hash_tasks(corpus, tasks, "elsewhere", list_files(earlier[-1], "distinct"))


def plan_spans(_: Corpus, tasks: list[Task], earlier: Earlier) -> list[Task]:
    """Plan the last pass: the stage's own tasks, with the runs of their parts if any is missing."""
    *_others, runs, elsewhere = earlier
    if not runs:
        return tasks
    everywhere = list_files(elsewhere, "elsewhere")
    return [
        replace(task, payload=SpansInputs(task.payload, file_of(own, "runs"), everywhere))
        for task, own in zip(tasks, runs, strict=True)
    ]


def hash_tasks(
    corpus: Corpus, tasks: list[Task[PartInputs]], name: str, parts: PassFiles
) -> list[Task[HashInputs]]:
    """Make the tasks of a pass over prefixes; all of them together depend on all parts."""
    text_bytes = sum(task.work_bytes for task in tasks)
    bits = prefix_bits_for(text_bytes * MEMORY_PER_TEXT_BYTE, corpus.settings.dedup.memory_bytes)
    made = []
    for prefix in range(1 << bits):
        inputs = HashInputs((prefix, bits), tasks[0].payload.config, parts)
        of_prefix = derive_task(tasks[0], name, [bits, prefix], inputs, 0)
        made.append(derive_task(of_prefix, f"{name}-{prefix:05d}", [name], inputs))
    return made


def substrings_markdown(
    numbers: SubstringsNumbers, text_bytes: int, longest: Sequence[LongestSpan]
) -> str:
    """Report the spans in so many bytes of text, and the longest of all parts, as Markdown."""
    lines = [
        f"**{numbers.spans:,} repeated spans** of {numbers.span_words:,} words in "
        f"{numbers.cut_documents:,} documents: {numbers.span_bytes:,} bytes, "
        f"{numbers.span_bytes / max(1, text_bytes):.2%} of the text.",
        "",
        "| words | spans of that length | document | begins |",
        "| ---: | ---: | --- | --- |",
    ]
    by_length: dict[int, list[LongestSpan]] = {}
    for span in longest:
        by_length.setdefault(span.words, []).append(span)
    for num_words in sorted(by_length, reverse=True)[:NUM_LONGEST]:
        first, times = by_length[num_words][0], sum(span.times for span in by_length[num_words])
        begins = as_excerpt(first.excerpt)
        lines.append(f"| {num_words:,} | {times:,} | {first.doc_id} | {begins} |")
    return "\n".join(lines)


def describe_spans(corpus: Corpus, manifest: SubstringsManifest) -> Metadata:
    """Describe how much repeats, and show the longest spans, as Markdown."""
    longest: list[LongestSpan] = []
    for part in manifest.parts:
        file = corpus.store.part_file(manifest, part, "longest")
        longest += msgspec.json.decode(file.checked().read_bytes(), type=list[LongestSpan])
    stats = manifest.stats
    markdown = substrings_markdown(stats.numbers, stats.text_bytes, longest)
    return {"longest_spans": DocumentText(markdown)}


STAGE = Stage(
    *SUBSTRINGS.fields(),
    description="Spans of documents that repeat long runs of words.",
    group="deduplicate",
    partitions="none",
    after=(stage_names.FILTERED, stage_names.DUPLICATES),
    kinds=frozenset({"numba", "parquet"}),
    settings=lambda settings: finding(settings.dedup.substrings),
    plan=plan_substrings,
    work=find_spans,
    is_used=lambda settings: settings.dedup.substrings is not None,
    main_table=MainTable("spans", SPAN_COLUMNS),
    run=in_passes(
        Pass(find_picks, plan_picks, is_kept=False),
        Pass(find_twice, plan_twice, shares_memory=True, is_kept=False),
        Pass(find_runs, plan_runs, is_kept=False),
        Pass(find_elsewhere, plan_elsewhere, shares_memory=True, is_kept=False),
        Pass(find_spans, plan_spans),
    ),
    describe=describe_spans,
)
