"""The code location: every asset, job, schedule and sensor, wired together and nothing else."""

import dagster as dg

from assets.band_index import band_index
from assets.bucketed import bucketed
from assets.deduped import deduped
from assets.duplicates import duplicates
from assets.evaluation import evaluation
from assets.filtered import filtered
from assets.mixed import mixed
from assets.quality import quality
from assets.raw import raw
from assets.repeated import repeated
from assets.sharded import sharded
from assets.signatures import signatures
from assets.substrings import substrings
from assets.tokenized import tokenized
from assets.tokenizer import tokenizer
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
