"""Check the `continues` of phases: the phase is there, and its order can be gone on with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from resources.settings.faults import nearest
from resources.settings.phases import PhaseConfig

SAME_ORDER = ("window_shards", "buckets")  # keys that decide the order of a source by itself


def continues_fault(phase: PhaseConfig, phases: Sequence[PhaseConfig]) -> str | None:
    """Return what is wrong with the phase that a phase continues, None if nothing is."""
    by_name = {each.name: each for each in phases}
    seen, current = [phase.name], phase
    while current.continues is not None:
        name = current.continues.phase
        if name not in by_name:
            if current is not phase:
                return None  # the phase before has this fault itself
            return (
                f"unknown phase{nearest(name, list(by_name))}; the phases are {', '.join(by_name)}"
            )
        if name in seen:
            return f"the phases continue each other in a circle: {' -> '.join([*seen, name])}"
        seen.append(name)
        current = by_name[name]
    return None if phase.continues is None else other_order(phase, by_name[phase.continues.phase])


def other_order(phase: PhaseConfig, earlier: PhaseConfig) -> str | None:
    """Return the key by which two phases differ, and with it their orders of each source."""
    for key in SAME_ORDER:
        own, other = getattr(phase, key), getattr(earlier, key)
        if own != other:
            return (
                f"phase {earlier.name!r} has {key} {shown(other)}, this one {shown(own)}, and so "
                "other orders of its sources: give both the same"
            )
    if (phase.upsample is None) != (earlier.upsample is None):
        return (
            f"one of this phase and {earlier.name!r} has `upsample`, and draws classes of sources "
            "by themselves: give both some, or none"
        )
    if phase.one_bucket_batches or earlier.one_bucket_batches:
        return "does not go with `one_bucket_batches`, in this phase or in the one it continues"
    return None


def shown(value: Any) -> Any:
    """Return a value as it is in pipeline.yaml."""
    return "null" if value is None else list(value) if isinstance(value, tuple) else value
