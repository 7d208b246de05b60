"""Plan stages, and check that the plans agree with the newest manifests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from assets.raw.places.observed_inputs import NO_NEW_ENTRIES
from assets.stages import BY_NAME
from resources.corpus import Corpus
from resources.store.records import Manifest, as_json_object, to_json
from resources.store.store import Partition
from resources.tasks import Plan, stream_name

ORDER = list(BY_NAME)
BUILD = "Remove what is damaged and build again."


class NotRebuilt(RuntimeError):
    """A part or manifest that cannot be rebuilt as it was; the message says why."""


class OtherPlan(NotRebuilt):
    """A plan that gives other parts than the manifest names."""


def planned(corpus: Corpus, partition: Partition) -> Plan:
    """Plan the stage with the current config and inputs; NotRebuilt if that fails.

    Of streams, without what is new on the server.
    """
    corpus = replace(corpus, flags=corpus.flags | {NO_NEW_ENTRIES})
    try:
        return BY_NAME[partition.stage].plan(corpus, partition.name)
    except (ValueError, RuntimeError, OSError, pl.exceptions.PolarsError) as error:
        raise NotRebuilt(f"it cannot be planned: {error}") from error


def check_published(plan: Plan) -> None:
    """Raise NotRebuilt unless all parts of the current plan are published."""
    for task in plan.tasks:
        if task.published() is None:
            raise NotRebuilt(
                f"under today's config and inputs {task.title} would have to be computed, and "
                "without the manifest it is not known whether it was the same then. Build again."
            )


def check_config(plan: Plan, manifest: Manifest) -> None:
    """Raise NotRebuilt unless the manifest was made under today's config by today's code."""
    code_version = BY_NAME[manifest.stage].code_version
    if code_version != manifest.code_version:
        raise NotRebuilt(
            f"it was made with version {manifest.code_version} of the stage's code, this is "
            f"version {code_version}. {BUILD}"
        )
    if changed := differing_keys(plan.config, manifest.config):
        raise NotRebuilt(f"its config changed since ({', '.join(changed)}). {BUILD}")


def check_plan(plan: Plan, manifest: Manifest) -> None:
    """Raise NotRebuilt unless the plan gives the parts that the manifest names."""
    check_config(plan, manifest)
    provenance = as_json_object(plan.provenance)
    if changed := differing_keys(provenance, as_json_object(manifest.provenance)):
        raise OtherPlan(f"what it is made of changed since ({', '.join(changed)}). {BUILD}")
    published = {(part.name, part.fingerprint) for part in manifest.parts}
    # Parts of a source with a size cap have fingerprints of their own: see assets/raw/asset.py.
    for task in () if "size_cap" in provenance else plan.tasks:
        name = stream_name(task.name, 0) if task.is_stream else task.name
        if (name, task.fingerprint) not in published:
            raise OtherPlan(f"the inputs of {task.title} changed since. {BUILD}")


def differing_keys(now: dict[str, Any], then: dict[str, Any]) -> list[str]:
    """Return the keys whose values are not the same as JSON."""
    return sorted(
        key for key in now.keys() | then.keys() if to_json(now.get(key)) != to_json(then.get(key))
    )
