"""Seconds of CPU that a stage takes for a MB of text: as last run here, else as once measured."""

from __future__ import annotations

from typing import Any

import msgspec

from resources.corpus import Corpus
from resources.run_reports import read_report
from resources.stage import Stage, partition_names

# CPU seconds a MB of real text on two cores, see docs/performance.md.
MEASURED = {
    "raw": 0.007,
    "filtered": 0.017,
    "signatures": 0.004,
    "band_index": 0.0004,
    "duplicates": 0.005,
    "deduped": 0.0004,
    "tokenizer": 0.0056,
    "tokenized": 0.0105,
    "held_out": 0.0005,
    "leakage": 0.03,
    "bucketed": 0.0007,
    "sharded": 0.0063,
    "mixed": 0.0003,
}
OTHERS = 0.01
LEAST_MB = 1.0  # of text computed, below which a run measures its overhead


def cpu_per_mb(corpus: Corpus, stage: Stage[Any, Any]) -> tuple[float, bool]:
    """Return CPU seconds per MB of text, and whether the last runs on this store gave them."""
    seconds, megabytes = 0.0, 0.0
    for partition in partition_names(stage, corpus.settings):
        report = read_report(corpus.store.root, stage.name, partition)
        if not isinstance(report.mb_per_second, msgspec.UnsetType):
            seconds += report.cpu_seconds
            megabytes += report.mb_per_second * report.seconds
    if megabytes < LEAST_MB:
        return MEASURED.get(stage.name, OTHERS), False
    return seconds / megabytes, True
