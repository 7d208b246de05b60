"""The one list of stages, in the order of the flow.

Definitions, summary, trace, verify, repair and the engine read it; no stage imports it.
`used_stages` are those of a config's graph.
"""

from dataclasses import replace
from typing import Any

from assets.annotated.annotators_asset import STAGE as ANNOTATORS
from assets.annotated.asked_asset import STAGE as ASKED
from assets.annotated.asset import STAGE as ANNOTATED
from assets.annotated.models_asset import STAGE as ANNOTATION_MODELS
from assets.bucketed.asset import STAGE as BUCKETED
from assets.bucketed.held_out_asset import STAGE as HELD_OUT
from assets.bucketed.leakage_asset import STAGE as LEAKAGE
from assets.deduped.asset import STAGE as DEDUPED
from assets.deduped.band_index_asset import STAGE as BAND_INDEX
from assets.deduped.duplicates_asset import STAGE as DUPLICATES
from assets.deduped.evaluation_asset import STAGE as EVALUATION
from assets.deduped.repeated_asset import STAGE as REPEATED
from assets.deduped.signatures_asset import STAGE as SIGNATURES
from assets.deduped.substrings_asset import STAGE as SUBSTRINGS
from assets.filtered.asset import STAGE as FILTERED
from assets.filtered.classifier_asset import STAGE as CLASSIFIER
from assets.filtered.quality_scale_asset import STAGE as QUALITY_SCALE
from assets.mixed.asset import STAGE as MIXED
from assets.raw.asset import STAGE as RAW
from assets.sharded.asset import STAGE as SHARDED
from assets.tokenized.asset import STAGE as TOKENIZED
from assets.tokenized.tokenizer_asset import STAGE as TOKENIZER
from resources.settings.pipeline import Settings
from resources.stage import Stage

STAGES: tuple[Stage[Any, Any], ...] = (
    RAW,
    CLASSIFIER,
    QUALITY_SCALE,
    FILTERED,
    EVALUATION,
    SIGNATURES,
    BAND_INDEX,
    DUPLICATES,
    REPEATED,
    SUBSTRINGS,
    DEDUPED,
    ANNOTATORS,
    ASKED,
    ANNOTATION_MODELS,
    ANNOTATED,
    TOKENIZER,
    TOKENIZED,
    HELD_OUT,
    LEAKAGE,
    BUCKETED,
    SHARDED,
    MIXED,
)
BY_NAME = {stage.name: stage for stage in STAGES}


def ancestors(stage: Stage[Any, Any]) -> set[str]:
    """Return the names of all stages that a stage reads, directly or through others."""
    return {each for name in stage.after for each in (name, *ancestors(BY_NAME[name]))}


def used_stages(settings: Settings) -> dict[str, Stage[Any, Any]]:
    """Return the stages that a config has work for, by name; they come after each other only."""
    used: dict[str, Stage[Any, Any]] = {}
    for stage in STAGES:
        if stage.is_used(settings):
            after = tuple(name for name in stage.after if name in used)
            used[stage.name] = replace(stage, after=after)
    return used
