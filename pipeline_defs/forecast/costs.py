"""CPU seconds and disk of a build: as the last runs here had, else as once measured."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from assets.filtered.filtered_records import FILTERED
from assets.raw.raw_records import RAW
from assets.report.sample_intervals import Interval
from assets.stages import BY_NAME, used_stages
from assets.tokenized.tokenized_records import TOKENIZER
from resources.corpus import Corpus
from resources.run_reports import read_report
from resources.stage import Stage, partition_names

LEAST_MB = 1.0  # of text computed, below which a run measures its overhead
TRAINING_SECONDS = 0.36  # a MB of the sample that a tokenizer is trained on
BEFORE_DEDUP = {RAW.name, FILTERED.name}
CPU_SPREAD = 1.6  # between two builds on a machine that does other work, too
CPU_SPREAD_ELSEWHERE = 2.0  # where no run of this store has measured the machine
LEAST_SAMPLE_BYTES = 4e6  # below, a sample measures the overhead of calls
DISK_SPREAD = 1.15
TOKENIZER_BYTES = 80  # per entry of the vocabulary: JSON, and the vocabulary of each source
PACKED = {"parquet": 0.75}  # of the bytes of the ids, in shards of a format; others do not compress


def cpu_per_mb(corpus: Corpus, stage: Stage[Any, Any]) -> tuple[float, bool]:
    """Return CPU seconds per MB of text, and whether the last runs on this store gave them."""
    seconds, megabytes = 0.0, 0.0
    for partition in partition_names(stage, corpus.settings):
        report = read_report(corpus.store.root, stage.name, partition)
        if not isinstance(report.mb_per_second, msgspec.UnsetType):
            seconds += report.cpu_seconds
            megabytes += report.mb_per_second * report.seconds
    if megabytes < LEAST_MB:
        return stage.outlook.cpu_per_mb, False
    return seconds / megabytes, True


class Volume(NamedTuple):
    """Amounts of a build: bytes of text read, and left by deduplication; tokens."""

    text: Interval
    left: Interval
    tokens: Interval


def speed_of(seconds: float, text_bytes: float) -> float:
    """Return how much longer the rules took on a sample than where their cost was measured."""
    if text_bytes < LEAST_SAMPLE_BYTES:
        return 1.0
    return max(0.2, seconds / (text_bytes / 1e6 * BY_NAME[FILTERED.name].outlook.cpu_per_mb))


def total_seconds(corpus: Corpus, volume: Volume, speed: float) -> Interval:
    """Return the CPU seconds of all stages: of the last runs on this store, or as once measured."""
    seconds = [0.0, 0.0, 0.0]
    is_measured = True
    for name, stage in used_stages(corpus.settings).items():
        rate, is_known = cpu_per_mb(corpus, stage)
        if name == TOKENIZER.name and not is_known:
            rate = TRAINING_SECONDS
        is_measured = is_measured and (is_known or not stage.outlook.first_seconds)
        first = 0.0 if is_known else stage.outlook.first_seconds
        text = volume.text if name in BEFORE_DEDUP else volume.left
        for place, amount in enumerate(limits_of(text)):
            if name == TOKENIZER.name:
                amount = min(amount, corpus.settings.tokenizer.sample_bytes)
            seconds[place] += first + amount / 1e6 * rate * (1.0 if is_known else speed)
    spread = CPU_SPREAD if is_measured else CPU_SPREAD_ELSEWHERE
    return Interval(seconds[0], seconds[1] / spread, seconds[2] * spread)


def disk_bytes(corpus: Corpus, volume: Volume, rate: float) -> Interval:
    """Return the bytes of the files of the newest manifests.

    `rate`: those of the stages up to `deduped`, per byte of text read. Tokens and shards have
    the bytes of their ids, in each format.
    """
    settings = corpus.settings
    width = 2 if settings.tokenizer.vocab_size <= 1 << 16 else 4
    copies = width * (2 + sum(PACKED.get(name, 1.0) for name in settings.shards.formats))
    vocabulary = TOKENIZER_BYTES * settings.tokenizer.vocab_size
    value, low, high = (
        rate * text + copies * tokens + vocabulary
        for text, tokens in zip(limits_of(volume.text), limits_of(volume.tokens), strict=True)
    )
    return Interval(value, low / DISK_SPREAD, high * DISK_SPREAD)


def limits_of(found: Interval) -> tuple[float, float, float]:
    """Return an amount with its limits."""
    return found.value, found.low, found.high
