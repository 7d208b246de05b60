"""Count the tokens of sources for a phase, in the last stage that each has reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assets.deduped.deduped_records import DEDUPED
from assets.mixed.phase_source_files import phase_source
from assets.mixed.samples import SourceRows
from assets.sharded.sharded_records import SHARDED
from assets.tokenized.tokenized_records import TOKENIZED
from resources.corpus import Corpus
from resources.settings.buckets import BucketConfig
from resources.settings.phases import PhaseConfig
from resources.store.records import Manifest

COUNTED_IN = (SHARDED, TOKENIZED, DEDUPED)  # the last stage first
BYTES_PER_TOKEN = 4.0  # of English with 32,000 tokens 4.3, of code 3.2; where nothing is tokenized


@dataclass(frozen=True)
class Available:
    """Tokens and samples of a source for a phase, by the `manifest` of its last stage."""

    manifest: Manifest
    tokens: int
    samples: int
    note: str = ""

    @property
    def stage(self) -> str:
        """Stage in which the tokens were counted."""
        return self.manifest.stage

    @property
    def rows(self) -> SourceRows:
        """Rows of the source, each of the mean length."""
        return SourceRows(round(self.tokens / max(1, self.samples)), {})


def available_for(
    corpus: Corpus, sources: Sequence[str], config: PhaseConfig, ratio: float
) -> dict[str, Available]:
    """Count what sources have for a phase, by the newest manifest of each one's last stage."""
    available = {}
    for source in sources:
        partitions = (corpus.store.partition(stage.name, source) for stage in COUNTED_IN)
        manifests = (partition.newest_manifest() for partition in partitions)
        if newest := next(filter(None, manifests), None):
            available[source] = counted(newest, config, corpus.settings.buckets, ratio)
    return available


def counted(
    manifest: Manifest, config: PhaseConfig, buckets: BucketConfig, ratio: float
) -> Available:
    """Count the tokens and samples of a manifest that a phase may draw from."""
    stage, source, stats = manifest.stage, manifest.partition, manifest.stats
    if stage == SHARDED.name:
        shards = phase_source(manifest, config)
        return Available(manifest, shards.tokens, shards.rows)
    note = "" if config.buckets is None else f"{source} has no buckets yet: counted whole. "
    if config.upsample is not None:
        note += f"{source} has no classes yet: its epochs are those of the whole. "
    num_tokens = stats.tokens
    if stage == DEDUPED.name:
        num_tokens = round(stats.bytes / ratio)
        note += f"{source} is not tokenized: estimated at {ratio:.2f} bytes a token"
    length = buckets.sequence_length
    num_rows = stats.rows_kept if buckets.mode == "buckets" else -(-num_tokens // length)
    return Available(manifest, num_tokens, num_rows, note.strip())


def bytes_per_token(corpus: Corpus) -> float:
    """Return the bytes of text per token, over the sources that are tokenized."""
    names = corpus.settings.source_names()
    manifests = [corpus.store.newest_or_none(TOKENIZED, name) for name in names]
    stats = [manifest.stats for manifest in manifests if manifest is not None]
    tokens = sum(of_source.tokens for of_source in stats)
    return sum(of_source.text_bytes for of_source in stats) / tokens if tokens else BYTES_PER_TOKEN
