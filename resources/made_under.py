"""Check that what an earlier stage published was made under today's config, of today's inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from resources.store.records import Manifest, StageRecords
from resources.store.store import StoreError
from resources.tasks import GLOBAL


def is_made_by(
    manifest: Manifest[Any, Any], stage: StageRecords[Any, Any], config: Mapping[str, Any]
) -> bool:
    """Return whether a manifest was made by this version of a stage's code, under this config."""
    return manifest.config == config and manifest.code_version == stage.code_version


def check_made_under(
    manifest: Manifest[Any, Any],
    *,
    config: Mapping[str, Any] | None = None,
    section: str = "",
    inputs: Mapping[str, tuple[object, object]] | None = None,
    again: Sequence[str] = (),
) -> None:
    """Raise StoreError unless a manifest was made under a config, and of the newest inputs.

    `config` is compared with the manifest's if given; `section` of pipeline.yaml is named in the
    message. `inputs` holds (fingerprint that it was made of, newest one) by "<inputs> than the
    newest <where>". The message says to materialize the stages `again`, by default the manifest's.
    """
    is_plural = manifest.stage.endswith("s")
    faults = []
    if config is not None and manifest.config != config:
        verb = "were" if is_plural else "was"
        named = f"`{section}` config" if section else "config"
        faults.append(f"{verb} made under another {named} than pipeline.yaml's")
    for described, (then, now) in (inputs or {}).items():
        if then != now:
            faults.append(f"{'are' if is_plural else 'is'} of other {described}")
    if faults:
        raise StoreError(
            f"{manifest.stage}[{manifest.partition}] {' and '.join(faults)}. "
            f"Materialize {remedy(manifest, again or (manifest.stage,))} first."
        )


def remedy(manifest: Manifest[Any, Any], stages: Sequence[str]) -> str:
    """Return stages in the order in which to materialize them; the manifest's with its partition.

    "`signatures` for 'web', then `band_index` and `duplicates`,"
    """
    first, *others = stages
    of_partition = first == manifest.stage and manifest.partition != GLOBAL
    named = f"`{first}`" + (f" for {manifest.partition!r}" if of_partition else "")
    if not others:
        return named
    later = " and ".join(f"`{stage}`" for stage in others)
    return f"{named}, then {later}," if of_partition else f"{named} and {later}"
