"""Count how often the intervals of `corpus estimate` hold what a build then gives.

    .venv/bin/python benchmarks/estimate_coverage.py CONFIG [CONFIG ...] --runs 20 --share 0.01

Each CONFIG is the pipeline.yaml of a corpus that is built. The estimates know nothing of the build:
they get an empty store and an empty DAGSTER_HOME. Of each quantity the table has the share of
estimates (by source and in all) whose interval holds the actual value, the median of the error, and
the median width of the interval, as a share of the actual value.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

sys.path.append(str(Path(__file__).resolve().parent.parent))

from assets.report.sample_intervals import Interval
from assets.stages import used_stages
from pipeline_defs.forecast.estimation import Estimate, SourceEstimate
from pipeline_defs.forecast.estimation import estimate_corpus as estimate
from pipeline_defs.forecast.sampled_store import bytes_on_disk
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.dagster_home import HOME_VARIABLE
from resources.run_reports import read_report
from resources.settings.pipeline import CONFIG_VARIABLE
from resources.stage import partition_names
from resources.store.store import Store

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


def main() -> None:
    """Estimate corpora with one seed after the other, and print how often that was right."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("configs", type=Path, nargs="+")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--share", type=float, default=0.01)
    args = parser.parse_args()
    for config in args.configs:
        print_coverage(config, args.runs, args.share)


def print_coverage(config: Path, runs: int, share: float) -> None:
    """Print the table of one corpus."""
    os.environ[CONFIG_VARIABLE] = str(config)
    built = load_corpus()
    found: dict[str, list[Compared]] = defaultdict(list)
    read = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(runs):
            made = estimate_alone(built, folder, share, seed)
            sources = made.sources.values()
            read.append(sum(s.read_bytes for s in sources) / sum(s.all_bytes for s in sources))
            for each in compare_with_build(built, made):
                of = "all" if each.source == "all" else "a source"
                kind = "rules, each" if each.amount.startswith("rule ") else each.amount
                found[f"{kind}, {of}"].append(each)
    print(f"{config.parent.name}: {runs} estimates, {median(read):.2%} of the bytes read")
    for name, rows in sorted(found.items()):
        held = sum(each.estimated.holds(each.actual) for each in rows) / len(rows)
        errors = [abs(each.error) for each in rows if each.error is not None]
        widths = [(r.estimated.high - r.estimated.low) / r.actual for r in rows if r.actual]
        numbers = f"{median(errors):8.1%} {median(widths):8.0%}" if errors else ""
        print(f"  {name:32} {len(rows):5} {held:8.1%} {numbers}")


def estimate_alone(built: Corpus, folder: str, share: float, seed: int):  # type: ignore[no-untyped-def]
    """Estimate without the store and the records of the build."""
    home = os.environ.get(HOME_VARIABLE)
    os.environ[HOME_VARIABLE] = folder
    try:
        corpus = replace(built, store=Store(Path(folder) / "store"))
        return estimate(corpus, corpus.settings.source_names(), share, seed)
    finally:
        os.environ.pop(HOME_VARIABLE)
        if home is not None:
            os.environ[HOME_VARIABLE] = home


if __name__ == "__main__":
    main()
