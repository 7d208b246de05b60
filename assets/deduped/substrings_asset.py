"""substrings: long runs of words that occur elsewhere too, found over all sources.

Parts exchange hashes in two rounds: the picks of each part, and those that occur twice; the runs
behind these, and those that several parts have. Then the spans of each part are found. What was
exchanged is removed when the manifest is committed.
`repeats/substrings.py` explains why this finds all repeats and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import unidata_version

import msgspec
import polars as pl

from assets.deduped.deduped_records import (
    DUPLICATES,
    SUBSTRINGS,
    SubstringsNumbers,
    SubstringsProvenance,
    cluster_parts,
)
from assets.deduped.repeats.substrings import (
    NUM_LONGEST,
    LongestSpan,
    candidate_runs,
    distinct_runs,
    finding,
    fingerprints,
    located_spans,
    longest_spans,
    repeated_words,
    runs_elsewhere,
    shared_picks,
    shared_runs,
)
from assets.deduped.signed_files import (
    RemainingPart,
    clustered_documents,
    remaining_parts,
    signed_sources,
)
from assets.text.table_rows import count_bytes
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.exchange import Made, OfPart, OfPrefix, Round, exchange
from resources.materialize.excerpts import DocumentText, as_excerpt
from resources.passes import derive_task
from resources.settings.repeats import SubstringsConfig
from resources.stage import MainTable, Metadata, Stage
from resources.store.records import Manifest, PartRecord, Stats, fingerprint_of, to_json
from resources.tasks import GLOBAL, Plan, Task, tasks_of


@dataclass(frozen=True)
class PartInputs:
    """Inputs of a part; its texts are compared with those of the same salt."""

    part: RemainingPart
    config: SubstringsConfig
    salt: int


def find_picks(part: OfPart[PartInputs]) -> Made:
    """First round: find the picks of a part's runs."""
    inputs = part.inputs
    return Made({"picks": fingerprints(inputs.part.read()["text"], inputs.config, inputs.salt)})


def find_twice(hashes: OfPrefix[None]) -> Made:
    """First round: find the picks with a prefix that occur twice or more."""
    return Made({"picks": shared_picks(pl.concat(hashes.tables("picks")))})


def find_runs(part: OfPart[PartInputs]) -> Made:
    """Second round: find the runs of a part whose picks occur twice or more.

    A part without any is not read.
    """
    inputs, shared = part.inputs, part.look_up("picks")["hash"]
    texts = inputs.part.read()["text"] if len(shared) else pl.Series(dtype=pl.String)
    runs = candidate_runs(texts, shared, inputs.config, inputs.salt)
    return Made({"runs": runs, "distinct": distinct_runs(runs)})


def find_shared(hashes: OfPrefix[None]) -> Made:
    """Second round: find the runs with a prefix that several parts have."""
    return Made({"distinct": shared_runs(list(hashes.tables("distinct")))})


def find_spans(task: Task[OfPart[PartInputs]]) -> list[PartRecord]:
    """Last pass: find the spans of a part, as bytes of its documents."""
    part, inputs = task.payload, task.payload.inputs
    documents = inputs.part.read()
    shared = part.look_up("distinct")
    elsewhere = runs_elsewhere(shared, part.number, inputs.config.keep_first)
    spans = located_spans(documents, repeated_words(part.read("runs"), elsewhere, inputs.config))
    writer = task.writer()
    writer.write_parquet("spans", spans)
    writer.write_text("longest", "json", to_json(longest_spans(documents, spans)).decode())
    rows, text_bytes = documents.height, count_bytes(documents["text"])
    numbers = SubstringsNumbers(
        source=inputs.part.source,
        part=inputs.part.name,
        spans_id=fingerprint_of(spans.rows()),
        spans=spans.height,
        span_words=int(spans["num_words"].sum()),
        span_bytes=int((spans["stop"] - spans["start"]).sum()),
        cut_documents=spans["doc_id"].n_unique(),
    )
    stats = Stats(rows, rows, bytes=text_bytes, text_bytes=text_bytes, numbers=numbers)
    return [writer.publish(stats)]


SPAN_COLUMNS = {
    "doc_id": "the document",
    "start": "first byte of the span in the document's text",
    "stop": "byte after its last one",
    "num_words": "words in the span",
}
SPANS = "spans-"  # what the names of parts begin with
SubstringsManifest = Manifest[SubstringsProvenance, SubstringsNumbers]


def plan_substrings(corpus: Corpus, partition: str) -> Plan:
    """Plan the tasks of the last pass, one per filtered part in ingest order; each needs all."""
    config = corpus.settings.dedup.substrings
    assert config is not None, "the stage is used with `dedup.substrings` only"
    clusters = corpus.store.newest(DUPLICATES, GLOBAL)
    sources = signed_sources(corpus)
    texts = [clustered_documents(corpus, signed.partition) for signed in sources.manifests]
    parts = {(part.source, part.name): part for m in texts for part in remaining_parts(corpus, m)}
    in_order = [parts[each.stats.numbers.key] for each in cluster_parts(clusters)]
    identities = [(p.source, p.name, p.fingerprint, p.removals.identity) for p in in_order]
    make = tasks_of(corpus, SUBSTRINGS, partition)
    whole = make.task("spans", (finding(config), unidata_version, identities), None, work_bytes=0)
    tasks = []
    for number, part in enumerate(in_order):
        salt = int(fingerprint_of(part.source)[:16], 16) if config.within == "source" else 0
        inputs, name = PartInputs(part, config, salt), f"{SPANS}{number:05d}"
        tasks.append(derive_task(whole, name, [number], inputs, part.text_bytes))
    filtered = [manifest.fingerprint for manifest in texts]
    provenance = SubstringsProvenance(filtered, clusters.fingerprint)
    return Plan(tasks, finding(config), provenance, sources.left_out)


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
    for path in corpus.store.checked_files(manifest, manifest.parts, "longest"):
        longest += msgspec.json.decode(path.read_bytes(), type=list[LongestSpan])
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
    run=exchange(
        SUBSTRINGS,
        Round("picks-", find_picks, "twice-", find_twice),
        Round("runs-", find_runs, "elsewhere-", find_shared),
        last=(SPANS, find_spans),
    ),
    describe=describe_spans,
)
