"""Reasons for which a part is computed again: a plan compared with the newest manifest.

A fingerprint alone does not tell which of its ingredients differs. Code version, config and
provenance are in the manifest; the part that it was made of is in a kept manifest of the earlier
stage, the one that the provenance names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from assets.raw.raw_records import RAW
from assets.stages import BY_NAME, ancestors
from resources.corpus import Corpus
from resources.stage import Stage
from resources.store.records import DEFAULT_COMPRESSION, Manifest, PartRecord, as_json_object
from resources.store.store import newest_first
from resources.tasks import GLOBAL, Plan, Task

NOTHING_BUILT = "never built"
IS_NEW = "new part"
DAMAGED = "a published file is missing or has another size"
OTHER = "another ingredient: a file that the config names, or the Unicode version"
GENERATED = {"ledger", "next_id", "segments", "signatures"}  # provenance made of earlier stages
SHORT = 12  # digits of a digest


@dataclass(frozen=True)
class Planned:
    """The plan of a partition beside its newest manifest, if there is one.

    `changed_parts` are the parts of each earlier stage with the fingerprints (then, now) that
    differ, by stage and name; a stage whose manifest of that time is gone has none.
    """

    stage: Stage[Any, Any]
    partition: str
    plan: Plan
    newest: Manifest | None
    changed_parts: Mapping[str, Mapping[str, tuple[str, str]]] = field(default_factory=dict)

    @cached_property
    def shared(self) -> list[str]:
        """Changes that concern all parts alike."""
        return shared_reasons(self)

    @cached_property
    def published(self) -> dict[str, list[PartRecord]]:
        """Parts of the newest manifest by name, those of a stream by that of its task too."""
        found: dict[str, list[PartRecord]] = {}
        for part in self.newest.parts if self.newest else ():
            found.setdefault(part.name, []).append(part)
            stem, _, number = part.name.rpartition("-")
            if number.isdecimal():
                found.setdefault(stem, []).append(part)
        return found


def compare(corpus: Corpus, stage: Stage[Any, Any], partition: str, plan: Plan) -> Planned:
    """Set a plan beside the newest manifest, and beside the parts that this was made of."""
    newest = corpus.store.partition(stage.name, partition).newest_manifest()
    changed: dict[str, Mapping[str, tuple[str, str]]] = {}
    for name in stage.after if newest is not None else ():
        assert newest is not None
        then = newest.provenance.get(name)
        if isinstance(then, str):
            changed[name] = changed_since(corpus, BY_NAME[name], partition, then)
    return Planned(stage, partition, plan, newest, changed)


def changed_since(
    corpus: Corpus, earlier: Stage[Any, Any], partition: str, then: str
) -> dict[str, tuple[str, str]]:
    """Return the fingerprints (then, now) of an earlier stage's parts that are not as they were."""
    place = GLOBAL if earlier.partitions == "none" else partition
    folder = corpus.store.partition(earlier.name, place)
    newest = folder.newest_manifest()
    if newest is None or newest.fingerprint == then:
        return {}
    old = next((each for each in newest_first(folder) if each.fingerprint == then), None)
    if old is None:
        return {}
    before = {part.name: part.fingerprint for part in old.parts}
    return {
        part.name: (before.get(part.name, ""), part.fingerprint)
        for part in newest.parts
        if before.get(part.name) != part.fingerprint
    }


def shared_reasons(planned: Planned) -> list[str]:
    """Return what changed for all parts of a partition alike: code version, config, tokenizer."""
    stage, newest = planned.stage, planned.newest
    if newest is None:
        return [NOTHING_BUILT]
    reasons = []
    if newest.code_version != stage.code_version:
        reasons.append(f"code version {newest.code_version} -> {stage.code_version}")
    then_written = newest.compression or DEFAULT_COMPRESSION
    if planned.plan.tasks and planned.plan.tasks[0].compression != then_written:
        reasons.append(f"compression {then_written} -> {planned.plan.tasks[0].compression}")
    reasons += [f"config {each}" for each in changes(newest.config, planned.plan.config)]
    then, now = inputs_of(newest.provenance, stage), inputs_of(planned.plan.provenance, stage)
    return reasons + [short_digests(each) for each in changes(then, now)]


def inputs_of(provenance: Any, stage: Stage[Any, Any]) -> dict[str, Any]:
    """Return what a provenance says of inputs that are no parts and no input files."""
    record = as_json_object(provenance)
    parts = GENERATED | ancestors(stage)
    outside = {"files", "version", "num_files", "left_out", "num_left_out"}
    return {key: value for key, value in record.items() if key not in parts | outside}


def reasons_of(planned: Planned, task: Task) -> list[str]:
    """Return why a task has to run that is not published."""
    if planned.shared:
        return planned.shared
    old = planned.published.get(task.name)
    files = file_changes(planned, task)
    if not old:
        return files or [IS_NEW]
    if all(part.fingerprint == task.fingerprint for part in old):
        return [DAMAGED]
    earlier = [
        f"{stage} part {task.name}: {parts[task.name][0][:SHORT] or 'none'} -> "
        f"{parts[task.name][1][:SHORT]}"
        for stage, parts in planned.changed_parts.items()
        if task.name in parts
    ]
    others = [
        f"parts of {stage} changed" for stage, parts in planned.changed_parts.items() if parts
    ]
    return earlier or files or others or [OTHER]


def file_changes(planned: Planned, task: Task) -> list[str]:
    """Return the input files of a task of `raw` that are new or changed, and those that are gone.

    A source that lists too many files in its manifests has none here.
    """
    if planned.newest is None or planned.stage.name != RAW.name:
        return []
    then: dict[str, str] = planned.newest.provenance.get("files", {})
    now: dict[str, str] = planned.plan.provenance.files
    lines = []
    for file in task.payload.files if then else ():
        if file.name not in then:
            lines.append(f"{file.name} is new")
        elif then[file.name] != file.digest:
            lines.append(f"{file.name} has other bytes")
    return lines or [f"{name} is gone" for name in then if name not in now]


def changes(then: Any, now: Any, key: str = "") -> Iterator[str]:
    """Yield the keys of a JSON value that differ, with old and new value."""
    if isinstance(then, dict) and isinstance(now, dict):
        for name in sorted(then.keys() | now.keys()):
            place = f"{key}.{name}" if key else name
            yield from changes(then.get(name), now.get(name), place)
    elif then != now:
        yield f"{key}: {then} -> {now}"


def short_digests(line: str) -> str:
    """Cut the hex digests of a line to what tells them apart."""
    return " ".join(word[:SHORT] if is_digest(word) else word for word in line.split(" "))


def is_digest(word: str) -> bool:
    """Return whether a word is a long hex number."""
    return len(word) > 2 * SHORT and all(digit in "0123456789abcdef" for digit in word)
