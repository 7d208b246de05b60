"""States of a source: a manifest of one stage, with the manifests that it was made of.

A state goes by the number of its manifest in the last stage that the source has, by default
`sharded`, or by the name of a tag. Each manifest names the fingerprint of what it was made of.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from corpus_loader.places.stage_names import (
    BUCKETED,
    CHAIN,
    DEDUPED,
    FILTERED,
    RAW,
    REPEATED,
    SHARDED,
    SIGNATURES,
    SOURCE_STAGES,
    TOKENIZED,
)
from resources.errors import UsageError
from resources.store.kept_manifests import KeptManifests, made_before
from resources.store.named_states import read_tags
from resources.store.records import Manifest

NEWEST = "newest"
BESIDE = (SIGNATURES, REPEATED)  # made of `filtered`, and named by none of the chain


@dataclass(frozen=True)
class SourceState:
    """A state of a source: its manifests, with their numbers, by stage in the order of the flow.

    `missing` names the stages whose manifest is no longer kept.
    """

    source: str
    name: str
    stage: str
    manifests: Mapping[str, tuple[int, Manifest]]
    missing: tuple[str, ...] = ()

    @property
    def number(self) -> int:
        """The number of the manifest that the state goes by."""
        return self.manifests[self.stage][0]

    def manifest(self, stage: str) -> Manifest | None:
        """Return the manifest of a stage, None if the state has none."""
        found = self.manifests.get(stage)
        return None if found is None else found[1]


def check_stage(stage: str | None) -> None:
    """Raise UsageError for a stage that is not by source; None is the last one."""
    if stage is not None and stage not in SOURCE_STAGES:
        raise UsageError(f"No stage {stage!r} by source; there are: {', '.join(SOURCE_STAGES)}.")


def state_of(kept: KeptManifests, name: str, stage: str | None = None) -> SourceState:
    """Return the state of a number, of a tag, or the newest; UsageError if there is none."""
    stage = stage or kept.last_stage()
    numbers = kept.folder(stage).manifest_numbers()
    tags = read_tags(kept.store.root)
    if name == NEWEST and numbers:
        return chain_of(kept, stage, numbers[-1])
    if name.isdecimal() and int(name) in numbers:
        return chain_of(kept, stage, int(name))
    if name in tags and not name.isdecimal():
        places = {m.stage: m.number for m in tags[name].manifests if m.partition == kept.source}
        found = {s: (places[s], kept.get(s, places[s])) for s in SOURCE_STAGES if s in places}
        if stage in found:
            return SourceState(kept.source, name, stage, found)
    states = ", ".join(map(str, reversed(numbers))) or "none"
    raise UsageError(
        f"{stage}[{kept.source}] has no state {name!r}; kept are the manifests {states}; tags are: "
        f"{', '.join(tags) or 'none'}. `corpus states history {kept.source}` lists them."
    )


def chain_of(kept: KeptManifests, stage: str, number: int) -> SourceState:
    """Return a manifest with all that it was made of, as far as that is still kept."""
    beside = (FILTERED, RAW) if stage in BESIDE else ()
    earlier = made_before(stage) if stage in CHAIN else beside
    first = kept.get(stage, number)
    found = {stage: (number, first), **kept.chain(first, earlier)}
    missing = tuple(each for each in earlier if each not in found)
    if FILTERED in found and stage != FILTERED:
        for other in BESIDE:
            fingerprint = found[FILTERED][1].fingerprint
            if (made := kept.made_of(other, FILTERED, fingerprint)) is not None:
                found.setdefault(other, made)
    ordered = {each: found[each] for each in SOURCE_STAGES if each in found}
    return SourceState(kept.source, str(number), stage, ordered, missing)


def flat(config: Any, prefix: str = "") -> dict[str, Any]:
    """Return a config as dotted keys with their values."""
    if not isinstance(config, dict):
        return {prefix: config}
    items = [flat(value, f"{prefix}.{key}" if prefix else key) for key, value in config.items()]
    return {key: value for each in items for key, value in each.items()}


def config_changes(before: SourceState, after: SourceState) -> dict[str, tuple[Any, Any]]:
    """Return the config keys that differ, as (before, after), by stage and key; None: not set."""
    changes: dict[str, tuple[Any, Any]] = {}
    for stage, then, now in in_both(before, after):
        old, new = flat(then.config, stage), flat(now.config, stage)
        keys = sorted(old.keys() | new.keys())
        changes |= {k: (old.get(k), new.get(k)) for k in keys if old.get(k) != new.get(k)}
    return changes


def code_changes(before: SourceState, after: SourceState) -> dict[str, tuple[str, str]]:
    """Return the code versions that differ, as (before, after), by stage."""
    versions = {s: (t.code_version, n.code_version) for s, t, n in in_both(before, after)}
    return {stage: pair for stage, pair in versions.items() if pair[0] != pair[1]}


def in_both(before: SourceState, after: SourceState) -> Iterator[tuple[str, Manifest, Manifest]]:
    """Yield the stages that two states have, with the manifests of both."""
    for stage in SOURCE_STAGES:
        then, now = before.manifest(stage), after.manifest(stage)
        if then is not None and now is not None:
            yield stage, then, now


def numbers_of(state: SourceState) -> dict[str, int]:
    """Return the documents read, those kept to the end, and tokens; 0 for what is not there."""
    found = {stage: manifest.stats for stage, (_, manifest) in state.manifests.items()}
    kept = (found[stage].rows_kept for stage in (DEDUPED, FILTERED, RAW) if stage in found)
    counted = (TOKENIZED, BUCKETED, SHARDED)
    tokens = (found[stage].tokens for stage in counted if stage in found)
    read = found[RAW].rows_in if RAW in found else 0
    return {"read": read, "kept": next(kept, 0), "tokens": next(tokens, 0)}


def value_text(setting: Any, most: int | None = None) -> str:
    """Write the value of a key on one line, of up to so many characters."""
    text = "not set" if setting is None else json.dumps(setting, ensure_ascii=False)
    return text if most is None or len(text) <= most else f"{text[: most - 1]}…"
