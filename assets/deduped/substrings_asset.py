"""substrings: long runs of words that stand elsewhere too, found over all sources.

Five passes, the second and fourth over the hashes with one prefix, the others over one part: picks,
which of them occur twice, the runs behind those, which of these stand elsewhere, spans. What the
first four write is removed when the manifest is there. `transforms/substring_runs.py` says why that
finds all repeats and nothing else.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from unicodedata import unidata_version

import msgspec

from assets.deduped.clusters.removal_files import removals_by_part
from assets.deduped.duplicates_asset import DUPLICATES
from assets.deduped.repeats.substring_files import (
    find_elsewhere,
    find_picks,
    find_runs,
    find_spans,
    find_twice,
)
from assets.deduped.repeats.substrings import substrings_markdown
from assets.filtered.asset import FILTERED
from resources.corpus import Corpus
from resources.settings.repeats import SubstringsConfig
from resources.stage import Stage
from resources.store.records import Manifest, fingerprint_of, required_file
from resources.tasks import (
    GLOBAL,
    SIMULTANEOUS,
    Outcome,
    Plan,
    Task,
    Work,
    run_tasks,
    within_memory,
)

NOT_CONFIGURED = "Not configured: pipeline.yaml has no `dedup.substrings`, so nothing was cut."
FINDING = {"min_words", "within", "keep_first"}  # what spans depend on; the rest is for cutting
# A prefix takes 0.23 bytes a byte of real text (0.03 GB of 128 MB), 3.1 if all of its runs repeat.
MEMORY_PER_TEXT_BYTE = 4
MAX_PREFIX_BITS = 12

Spec = dict[str, Any]


def finding(config: SubstringsConfig | None) -> dict[str, Any]:
    """What spans depend on besides documents, as the manifest has it; {} if not configured."""
    return {} if config is None else config.model_dump(mode="json", include=FINDING)


def plan_substrings(corpus: Corpus, partition: str) -> Plan:
    """The tasks of the last pass, one per filtered part in ingest order; each depends on all."""
    config = corpus.settings.dedup.substrings
    if config is None:
        return Plan([], finding(config))
    clusters = corpus.store.newest("duplicates", GLOBAL)
    texts = [corpus.store.newest("filtered", name) for name in corpus.settings.source_names()]
    specs = list(part_specs(corpus, texts, clusters, config))
    everything = fingerprint_of(
        SUBSTRINGS.name,
        SUBSTRINGS.code_version,
        finding(config),
        unidata_version,
        [spec["identity"] for spec in specs],
    )
    tasks = [
        Task(
            root=corpus.store.root,
            stage=SUBSTRINGS.name,
            partition=partition,
            name=f"spans-{number:05d}",
            fingerprint=fingerprint_of(everything, number),
            work_bytes=spec["text_bytes"],
            payload={**spec, "number": number},
        )
        for number, spec in enumerate(specs)
    ]
    about = {
        "filtered": [manifest.fingerprint for manifest in texts],
        "duplicates": clusters.fingerprint,
    }
    return Plan(tasks, finding(config), about)


def part_specs(
    corpus: Corpus, texts: Sequence[Manifest], clusters: Manifest, config: SubstringsConfig
) -> Iterator[Spec]:
    """What the passes must know of each part, in ingest order: that of `clusters`."""
    documents = {(m.partition, part.name): (m, part) for m in texts for part in m.parts}
    removals = {m.partition: removals_by_part(corpus, m.partition) for m in texts}
    for record in clusters.parts:
        if "part" not in record.stats.numbers:
            continue
        source, name = record.stats.numbers["source"], record.stats.numbers["part"]
        manifest, part = documents[source, name]
        removed = removals[source][name]
        yield {
            "source": source,
            "part": name,
            "path": corpus.store.path_of(manifest, required_file(manifest, part, "documents")),
            "removals": removed,
            "text_bytes": part.stats.text_bytes,
            "identity": (source, name, part.fingerprint, removed.identity),
            "config": config,
            "salt": int(fingerprint_of(source)[:16], 16) if config.within == "source" else 0,
        }


def run_passes(corpus: Corpus, tasks: list[Task], work: Work) -> list[Outcome]:
    """Run the passes one after the other, if there is a part whose spans are missing."""
    missing = sum(task.published() is None for task in tasks)
    seconds = 0.0
    if missing:
        bounded = within_memory(corpus)
        prefixes = prefix_tasks(tasks, corpus.settings.dedup.memory_bytes)
        picks = plan_pass("picks", tasks)
        twice = plan_pass("twice", prefixes, picks=published_by(picks))
        runs = plan_pass("runs", tasks, twice=published_by(twice))
        elsewhere = plan_pass("elsewhere", prefixes, runs=published_by(runs))
        for workers, to_do, find in (
            (corpus, picks, find_picks),
            (bounded, twice, find_twice),
            (corpus, runs, find_runs),
            (bounded, elsewhere, find_elsewhere),
        ):
            seconds += sum(outcome.seconds for outcome in run_tasks(workers, to_do, find))
        tasks = [
            replace(
                task, payload={**task.payload, "runs": own, "elsewhere": published_by(elsewhere)}
            )
            for task, own in zip(tasks, published_by(runs), strict=True)
        ]
    return [
        outcome
        if outcome.is_reused
        else replace(outcome, seconds=outcome.seconds + seconds / missing)
        for outcome in run_tasks(corpus, tasks, work)
    ]


def prefix_tasks(tasks: list[Task], memory_bytes: int) -> list[Task]:
    """What passes over prefixes begin with: all of them together depend on all parts."""
    bits = prefix_bits(sum(task.payload["text_bytes"] for task in tasks), memory_bytes)
    config = tasks[0].payload["config"]
    return [
        replace(
            tasks[0],
            fingerprint=fingerprint_of(tasks[0].fingerprint, bits, prefix),
            work_bytes=0,
            payload={"place": (prefix, bits), "config": config},
        )
        for prefix in range(1 << bits)
    ]


def prefix_bits(text_bytes: int, memory_bytes: int) -> int:
    """Bits of the hashes that tell prefixes apart, so that SIMULTANEOUS of them fit the memory."""
    most = memory_bytes // (SIMULTANEOUS * MEMORY_PER_TEXT_BYTE)
    return min(MAX_PREFIX_BITS, (text_bytes // most).bit_length())


def plan_pass(name: str, tasks: list[Task], **inputs: Any) -> list[Task]:
    """A task of the pass for each of `tasks`, numbered; `inputs` are for all of them."""
    return [
        replace(
            task,
            name=f"{name}-{number:05d}",
            fingerprint=fingerprint_of(task.fingerprint, name),
            payload={**task.payload, **inputs},
        )
        for number, task in enumerate(tasks)
    ]


def published_by(tasks: list[Task]) -> list[Task]:
    """Tasks as later ones name them: with their own inputs, pickles would grow with every pass."""
    return [replace(task, payload={}) for task in tasks]


def describe_spans(corpus: Corpus, manifest: Manifest) -> Mapping[str, Any]:
    """How much repeats, and where the longest spans begin, as Markdown."""
    if not manifest.parts:
        return {"report": NOT_CONFIGURED}
    longest = []
    for part in manifest.parts:
        path = corpus.store.path_of(manifest, required_file(manifest, part, "longest"))
        longest += msgspec.json.decode(path.read_bytes(), type=list[dict[str, Any]])
    stats = manifest.stats
    return {"report": substrings_markdown(stats.numbers, stats.text_bytes, longest)}


SUBSTRINGS = Stage(
    name="substrings",
    code_version="1",
    description="Spans of documents that repeat long runs of words; none without "
    "`dedup.substrings`.",
    partitions="none",
    after=(FILTERED, DUPLICATES),
    kinds=frozenset({"numba", "parquet"}),
    provenance=dict,
    numbers=dict,
    plan=plan_substrings,
    work=find_spans,
    run=run_passes,
    describe=describe_spans,
)
