"""CPU seconds and disk of a build, of amounts that are estimated."""

from __future__ import annotations

from typing import NamedTuple

from assets.report.sample_intervals import Interval
from assets.stages import used_stages
from assets.tokenized.tokenized_records import TOKENIZER
from pipeline_defs.forecast.costs import MEASURED, cpu_per_mb
from resources.corpus import Corpus

# CPU seconds of a stage's first calls in a new process: loading of kernels and libraries. Of builds
# of 30, 97 and 168 MB on two cores, beyond what grows with the text.
FIRST_SECONDS = {
    "raw": 0.3,
    "filtered": 2.4,
    "signatures": 0.4,
    "duplicates": 0.5,
    "tokenizer": 1.0,
    "tokenized": 0.5,
    "bucketed": 1.2,
    "sharded": 1.3,
}
TRAINING_SECONDS = 0.36  # a MB of the sample that a tokenizer is trained on
BEFORE_DEDUP = {"raw", "filtered"}
CPU_SPREAD = 1.6  # between two builds on a machine that does other work, too
CPU_SPREAD_ELSEWHERE = 2.0  # where no run of this store has measured the machine
LEAST_SAMPLE_BYTES = 4e6  # below, a sample measures the overhead of calls
DISK_SPREAD = 1.15
SIGNATURE_BYTES = 60  # of a row besides its values: id, hash, lengths
KEY_BYTES = 12
INDEX_BYTES = 16
CLUSTER_BYTES = 12
TOKENIZER_BYTES = 80  # per entry of the vocabulary: JSON, and the vocabulary of each source
DOCUMENT_BYTES = 30  # of a document in the tables of tokenized and bucketed
PACKED = {"parquet": 0.75}  # of the bytes of the ids, in shards of a format; others do not compress


class Volume(NamedTuple):
    """What flows through a build: documents read; bytes read, kept by rules, and left; tokens."""

    documents: float
    text: Interval
    kept: Interval
    left: Interval
    tokens: Interval


class DiskRates(NamedTuple):
    """Bytes on disk per byte of text, and of decisions a document; values and keys a document."""

    stored: float
    decisions: float
    values: int
    keys: int


def speed_of(seconds: float, text_bytes: float) -> float:
    """Return how much longer the rules took on a sample than on the machine of `MEASURED`."""
    if text_bytes < LEAST_SAMPLE_BYTES:
        return 1.0
    return max(0.2, seconds / (text_bytes / 1e6 * MEASURED["filtered"]))


def total_seconds(corpus: Corpus, volume: Volume, speed: float) -> Interval:
    """Return the CPU seconds of all stages: of the last runs on this store, or as once measured."""
    seconds = [0.0, 0.0, 0.0]
    is_measured = True
    for name, stage in used_stages(corpus.settings).items():
        rate, is_known = cpu_per_mb(corpus, stage)
        if name == TOKENIZER.name and not is_known:
            rate = TRAINING_SECONDS
        is_measured = is_measured and (is_known or name not in FIRST_SECONDS)
        first = 0.0 if is_known else FIRST_SECONDS.get(name, 0.0)
        text = volume.text if name in BEFORE_DEDUP else volume.left
        for place, amount in enumerate((text.value, text.low, text.high)):
            if name == TOKENIZER.name:
                amount = min(amount, corpus.settings.tokenizer.sample_bytes)
            seconds[place] += first + amount / 1e6 * rate * (1.0 if is_known else speed)
    spread = CPU_SPREAD if is_measured else CPU_SPREAD_ELSEWHERE
    return Interval(seconds[0], seconds[1] / spread, seconds[2] * spread)


def disk_bytes(corpus: Corpus, volume: Volume, rates: DiskRates) -> Interval:
    """Return the bytes of the files of the newest manifests."""
    settings = corpus.settings
    width = 2 if settings.tokenizer.vocab_size <= 1 << 16 else 4
    copies = 2 + sum(PACKED.get(name, 1.0) for name in settings.shards.formats)
    row = rates.decisions + SIGNATURE_BYTES + 4 * rates.values + DOCUMENT_BYTES + CLUSTER_BYTES
    row += rates.keys * (KEY_BYTES + INDEX_BYTES)

    def total(text: float, kept: float, left: float, tokens: float) -> float:
        tables = rates.stored * (text + kept + left)
        vocabulary = TOKENIZER_BYTES * settings.tokenizer.vocab_size
        return tables + row * volume.documents + width * copies * tokens + vocabulary

    amounts = volume.text, volume.kept, volume.left, volume.tokens
    return Interval(
        total(*(each.value for each in amounts)),
        total(*(each.low for each in amounts)) / DISK_SPREAD,
        total(*(each.high for each in amounts)) * DISK_SPREAD,
    )
