"""The code location: every asset, job, schedule and sensor, wired together and nothing else."""

import dagster as dg

from assets.bucketed.asset import bucketed
from assets.deduped.asset import deduped
from assets.deduped.band_index_asset import band_index
from assets.deduped.duplicates_asset import duplicates
from assets.deduped.evaluation_asset import evaluation
from assets.deduped.repeated_asset import repeated
from assets.deduped.signatures_asset import signatures
from assets.deduped.substrings_asset import substrings
from assets.filtered.asset import filtered
from assets.filtered.classifier_asset import quality
from assets.mixed.asset import mixed
from assets.raw.asset import raw
from assets.sharded.asset import sharded
from assets.tokenized.asset import tokenized
from assets.tokenized.tokenizer_asset import tokenizer
from pipeline_defs.jobs import EXECUTORS, build_corpus, mix_after_build, mix_corpus, nightly
from pipeline_defs.partitions import CORPUS
from resources.corpus import Corpus

STAGES = [
    raw,
    quality,
    filtered,
    signatures,
    band_index,
    duplicates,
    repeated,
    substrings,
    evaluation,
    deduped,
    tokenizer,
    tokenized,
    bucketed,
    sharded,
    mixed,
]


def build_defs(corpus: Corpus) -> dg.Definitions:
    """Definitions over one corpus."""
    return dg.Definitions(
        assets=STAGES,
        jobs=[build_corpus, mix_corpus],
        schedules=[nightly],
        sensors=[mix_after_build],
        executor=EXECUTORS[corpus.settings.engine.steps],
        resources={"corpus": dg.ResourceDefinition.hardcoded_resource(corpus)},
    )


defs = build_defs(CORPUS)
