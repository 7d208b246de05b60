"""The one list of stages, in the order of the flow.

Definitions, summary, trace, verify, repair and the engine read it; no stage imports it.
`used_stages` are those of a config's graph.
"""

from dataclasses import replace
from typing import Any

from assets.bucketed.asset import BUCKETED
from assets.bucketed.held_out_asset import HELD_OUT
from assets.bucketed.leakage_asset import LEAKAGE
from assets.deduped.asset import DEDUPED
from assets.deduped.band_index_asset import BAND_INDEX
from assets.deduped.duplicates_asset import DUPLICATES
from assets.deduped.evaluation_asset import EVALUATION
from assets.deduped.repeated_asset import REPEATED
from assets.deduped.signatures_asset import SIGNATURES
from assets.deduped.substrings_asset import SUBSTRINGS
from assets.filtered.asset import FILTERED
from assets.filtered.classifier_asset import CLASSIFIER
from assets.filtered.quality_scale_asset import QUALITY_SCALE
from assets.mixed.asset import MIXED
from assets.raw.asset import RAW
from assets.sharded.asset import SHARDED
from assets.tokenized.asset import TOKENIZED
from assets.tokenized.tokenizer_asset import TOKENIZER
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
    TOKENIZER,
    TOKENIZED,
    HELD_OUT,
    LEAKAGE,
    BUCKETED,
    SHARDED,
    MIXED,
)
BY_NAME = {stage.name: stage for stage in STAGES}


def used_stages(settings: Settings) -> dict[str, Stage[Any, Any]]:
    """Return the stages that a config has work for, by name; they come after each other only."""
    used: dict[str, Stage[Any, Any]] = {}
    for stage in STAGES:
        if stage.is_used(settings):
            after = tuple(used[earlier.name] for earlier in stage.after if earlier.name in used)
            used[stage.name] = replace(stage, after=after)
    return used
