"""What each stage would do now, and whether that is what its newest manifest says it did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from assets.bucketed.asset import plan_bucketed
from assets.deduped.asset import plan_deduped
from assets.deduped.band_index_asset import plan_index
from assets.deduped.duplicates_asset import plan_duplicates
from assets.deduped.evaluation_asset import plan_evaluation
from assets.deduped.repeated_asset import plan_repeated
from assets.deduped.signatures_asset import plan_signatures
from assets.deduped.substrings_asset import plan_substrings
from assets.filtered.asset import plan_filtered
from assets.filtered.classifier_asset import plan_quality
from assets.mixed.asset import plan_mixed
from assets.raw.asset import plan_raw
from assets.sharded.asset import plan_sharded
from assets.tokenized.asset import plan_tokenized
from assets.tokenized.tokenizer_asset import plan_tokenizer
from pipeline_defs.definitions import STAGES
from resources.corpus import Corpus
from resources.store.records import to_json
from resources.store.store import Partition
from resources.tasks import Plan, stream_name

PLANS: dict[str, Callable[[Corpus, str], Plan]] = {  # in the order of the flow
    "raw": plan_raw,
    "quality": plan_quality,
    "filtered": plan_filtered,
    "evaluation": plan_evaluation,
    "signatures": plan_signatures,
    "band_index": plan_index,
    "duplicates": plan_duplicates,
    "repeated": plan_repeated,
    "substrings": plan_substrings,
    "deduped": plan_deduped,
    "tokenizer": plan_tokenizer,
    "tokenized": plan_tokenized,
    "bucketed": plan_bucketed,
    "sharded": plan_sharded,
    "mixed": plan_mixed,
}
ORDER = list(PLANS)
VERSIONS = {spec.key.path[-1]: spec.code_version for asset in STAGES for spec in asset.specs}


class NotRebuilt(RuntimeError):
    """What differs cannot be made again as it was; the message says why."""


def planned(corpus: Corpus, partition: Partition) -> Plan:
    """What the stage would do now."""
    try:
        return PLANS[partition.stage](corpus, partition.name)
    except (ValueError, RuntimeError, OSError, pl.exceptions.PolarsError) as error:
        raise NotRebuilt(f"it cannot be planned: {error}") from error


def check_published(plan: Plan) -> None:
    """A manifest is written again only if all of its parts are there, made under today's config."""
    for task in plan.tasks:
        if task.published() is None:
            raise NotRebuilt(
                f"under today's config and inputs {task.title} would have to be computed, and "
                "without the manifest nobody knows whether it was the same then. Build again."
            )


def check_plan(plan: Plan, partition: Partition) -> None:
    """A part is made again only if that gives what the newest manifest says."""
    manifest = partition.newest_manifest()
    assert manifest is not None, f"{partition.folder} has no manifest"
    code_version = VERSIONS[partition.stage]
    if code_version != manifest.code_version:
        raise NotRebuilt(
            f"it was made with version {manifest.code_version} of the stage's code, this is "
            f"version {code_version}. Build again."
        )
    for what, now, then in (
        ("its config", plan.config, manifest.config),
        ("what it is made of", plan.about, manifest.about),
    ):
        if changed := differing_keys(now, then):
            raise NotRebuilt(f"{what} changed since ({', '.join(changed)}). Build again.")
    there = {(part.name, part.fingerprint) for part in manifest.parts}
    for task in (
        () if "size_cap" in plan.about else plan.tasks
    ):  # a cap's parts: see assets/raw/asset.py
        name = stream_name(task.name, 0) if task.is_stream else task.name
        if (name, task.fingerprint) not in there:
            raise NotRebuilt(f"the inputs of {task.title} changed since. Build again.")


def differing_keys(now: dict[str, Any], then: dict[str, Any]) -> list[str]:
    """Keys whose values are not the same as JSON."""
    return sorted(
        key for key in now.keys() | then.keys() if to_json(now.get(key)) != to_json(then.get(key))
    )
