"""An estimate held against the build that followed it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from assets.report.sample_intervals import Interval
from assets.stages import used_stages
from pipeline_defs.forecast.estimation import Estimate, SourceEstimate
from resources.corpus import Corpus
from resources.run_reports import read_report
from resources.stage import partition_names
from resources.store.records import Manifest

ALL = "all"


class Compared(NamedTuple):
    """An amount of a source, or of all, as it was estimated and as it is."""

    source: str
    amount: str
    estimated: Interval
    actual: float

    @property
    def error(self) -> float | None:
        """Return the relative error of the value, None where there is nothing."""
        return self.estimated.value / self.actual - 1 if self.actual else None


def compare_with_build(corpus: Corpus, made: Estimate) -> list[Compared]:
    """Compare every amount of an estimate with the newest manifests.

    StoreError if a source is not built. Rules that the sample did not see broken are compared, too:
    their estimate is the limit of what was not seen.
    """
    found: list[Compared] = []
    total: dict[str, float] = {}
    for name, each in made.sources.items():
        actual = actual_amounts(corpus, name)
        total = {key: total.get(key, 0.0) + value for key, value in actual.items()}
        found += [Compared(name, key, each.amounts[key], value) for key, value in actual.items()]
        found += list(compared_rules(corpus, name, each))
    if set(made.sources) == set(corpus.settings.source_names()):
        total |= {"CPU seconds": cpu_seconds(corpus), "disk bytes": float(bytes_on_disk(corpus))}
    found += [Compared(ALL, key, made.total[key], value) for key, value in total.items()]
    return found


def actual_amounts(corpus: Corpus, source: str) -> dict[str, float]:
    """Return what a source has in the newest manifests."""
    raw, filtered, deduped, tokenized = (
        corpus.store.newest(stages[name], source).stats
        for stages in [used_stages(corpus.settings)]
        for name in ("raw", "filtered", "deduped", "tokenized")
    )
    return {
        "documents": raw.rows_kept,
        "text bytes": raw.text_bytes,
        "removed by rules": sum(filtered.rejected.values()),
        "removed as copies": deduped.duplicates,
        "tokens before deduplication": tokenized.tokens * filtered.bytes / max(1, deduped.bytes),
        "documents kept": deduped.rows_kept,
        "tokens": tokenized.tokens,
    }


def compared_rules(corpus: Corpus, source: str, each: SourceEstimate) -> Iterator[Compared]:
    """Yield the rules that a source's documents break."""
    filtered = used_stages(corpus.settings)["filtered"]
    broken = corpus.store.newest(filtered, source).stats.numbers.broken_rules
    for rule in sorted({*broken, *each.rules}):
        estimated = each.rules.get(rule, each.unseen)
        yield Compared(source, f"rule {rule}", estimated, broken.get(rule, 0))


def cpu_seconds(corpus: Corpus) -> float:
    """Return the CPU seconds of the last run of every partition, under this DAGSTER_HOME."""
    return sum(
        read_report(corpus.store.root, stage.name, partition).cpu_seconds
        for stage in used_stages(corpus.settings).values()
        for partition in partition_names(stage, corpus.settings)
    )


def bytes_on_disk(corpus: Corpus) -> int:
    """Return the bytes of the files that the newest manifests name."""
    return sum(
        file.bytes
        for stage in used_stages(corpus.settings).values()
        for partition in partition_names(stage, corpus.settings)
        for manifest in newest_of(corpus, stage.name, partition)
        for part in manifest.parts
        for file in part.files
    )


def newest_of(corpus: Corpus, stage: str, partition: str) -> list[Manifest]:
    """Return the newest manifest of a partition, if it has one."""
    newest = corpus.store.partition(stage, partition).newest_manifest()
    return [] if newest is None else [newest]
