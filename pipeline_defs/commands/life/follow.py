"""Follow damaged files downstream: compute again what was made of them, and compare.

A part whose files come out equal is proved, and nothing that was made of it is looked at. Otherwise
its files are replaced, and what was made of them is computed again in its turn. The price is one
part for each damaged part, where part follows from part, and all of a partition where a stage
reads the whole of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from assets.bucketed.bucketed_records import HELD_OUT
from assets.stages import BY_NAME, STAGES, used_stages
from assets.tokenized.tokenized_records import TOKENIZER
from pipeline_defs.commands.life.faults import record_path
from pipeline_defs.commands.life.make_again import materialize, moved_aside
from pipeline_defs.commands.life.rebuild_checks import (
    NotRebuilt,
    OtherPlan,
    check_config,
    check_plan,
    planned,
)
from resources.corpus import Corpus
from resources.stage import Stage
from resources.store.published import PublishedFile
from resources.store.records import Manifest, PartRecord
from resources.store.store import Partition
from resources.tasks import GLOBAL, Plan


def follow(corpus: Corpus, damaged: Set[Path], instance: dg.DagsterInstance) -> Iterator[str]:
    """Compute again what was made of files that were damaged; yield a line for each partition."""
    suspects, replaced = set(damaged), set[Path]()
    for partition in later_partitions(corpus, damaged):
        title = f"{partition.stage}[{partition.name}]"
        try:
            parts = parts_made_of(corpus, partition, suspects)
            if not parts:
                continue
            if partition.stage == HELD_OUT.name:
                yield f"kept {title}: what is decided of a document stays so"
                continue
            wrong = compute_again(corpus, partition, parts, instance, are_inputs_new=bool(replaced))
        except KeptTokenizer:
            yield (
                f"kept {title}, which was trained on a damaged text: it encodes every text without "
                "loss. `corpus tokenizer retrain` trains the next one"
            )
            continue
        except NotRebuilt as error:
            yield f"not proved {title}, which was made of damaged files: {error}"
            continue
        suspects |= wrong
        replaced |= wrong
        names = ", ".join(part.name for part in parts)
        result = f"{len(wrong)} files were wrong and are replaced" if wrong else "proved equal"
        yield f"computed again {title}: {names}: {result}"


def later_partitions(corpus: Corpus, damaged: Set[Path]) -> Iterator[Partition]:
    """Yield the built partitions of all stages after the first that has a damaged file, in order.

    Sources, phases and stages that pipeline.yaml does not name any more are passed over.
    """
    settings = corpus.settings
    known = {*settings.source_names(), *settings.phase_names(), GLOBAL}
    built = [partition for partition in corpus.store.partitions() if partition.name in known]
    hit = [any(is_of(corpus, path, stage.name) for path in damaged) for stage in STAGES]
    used = used_stages(settings)
    for stage in STAGES[hit.index(True) + 1 :]:
        if stage.name in used:
            yield from (partition for partition in built if partition.stage == stage.name)


def parts_made_of(corpus: Corpus, partition: Partition, suspects: Set[Path]) -> list[PartRecord]:
    """Return the parts of the newest manifest that were made of any of these files.

    The files that a task reads are in its payload. A stage with passes of its own, and one whose
    tasks do not name the files of an earlier stage, depends on all that it could read.
    """
    stage = BY_NAME[partition.stage]
    manifest = partition.newest_manifest()
    assert manifest is not None, f"{partition.folder} has no manifest"
    tasks = planned(corpus, partition).tasks
    files = {task.name: set(files_in(task.payload)) for task in tasks}
    named = set[Path]().union(*files.values())
    unnamed = [
        place_below(earlier, partition)
        for earlier in (BY_NAME[name] for name in stage.after)
        if not any(is_of(corpus, path, earlier.name) for path in named)
    ]
    touched = {name for name, of_task in files.items() if of_task & suspects}
    is_any = any(is_of(corpus, path, place) for place in unnamed for path in suspects)
    if is_any or (touched and stage.run is not None):
        return list(manifest.parts)
    return [part for part in manifest.parts if part.name in touched]


def place_below(earlier: Stage[Any, Any], partition: Partition) -> str:
    """Return the folder of an earlier stage that a partition reads: its own source, or all."""
    is_same = earlier.partitions == BY_NAME[partition.stage].partitions == "source"
    return f"{earlier.name}/{partition.name}" if is_same else earlier.name


def is_of(corpus: Corpus, path: Path, place: str) -> bool:
    """Return whether a file is below a folder of the store."""
    return corpus.store.root / place in path.parents


def files_in(value: object) -> Iterator[Path]:
    """Yield the paths of all published files in a payload."""
    if isinstance(value, PublishedFile):
        yield value.unchecked_path
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from files_in(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from files_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from files_in(each)


def compute_again(
    corpus: Corpus,
    partition: Partition,
    parts: list[PartRecord],
    instance: dg.DagsterInstance,
    *,
    are_inputs_new: bool,
) -> set[Path]:
    """Compute parts of the newest manifest again; return the files that were wrong.

    The same manifest is committed again, with the right files. Older manifests that name a wrong
    file as well are removed. NotRebuilt if the plan gives other parts; `are_inputs_new`: inputs
    were replaced, so that it may.
    """
    before = partition.newest_manifest()
    assert before is not None, f"{partition.folder} has no manifest"
    own = partition.manifest_path(partition.manifest_numbers()[-1])
    files = [partition.folder / file.path for part in parts for file in part.files]
    records = [record_path(partition, part) for part in parts]
    with moved_aside([own, *files, *records]):
        plan = planned(corpus, partition)
        check_again(plan, before, are_inputs_new=are_inputs_new)
        materialize(corpus, partition, instance)
    after = partition.newest_manifest()
    assert after is not None, f"{partition.folder} has no manifest"
    then, now = hashes_of(partition, before), hashes_of(partition, after)
    remove_contradicted(partition)
    return {path for path in then | now if then.get(path) != now.get(path)}


class KeptTokenizer(RuntimeError):
    """A tokenizer whose sample changed, and which is not trained on another to repair a file."""


def check_again(plan: Plan, before: Manifest, *, are_inputs_new: bool) -> None:
    """Raise NotRebuilt unless a plan may take the place of a manifest: see `compute_again`."""
    if not are_inputs_new:
        check_plan(plan, before)
        return
    check_config(plan, before)
    if before.stage == TOKENIZER.name:
        try:
            check_plan(plan, before)
        except OtherPlan as error:
            raise KeptTokenizer from error


def remove_contradicted(partition: Partition) -> None:
    """Remove older manifests that name a file of the newest one with another hash."""
    numbers = partition.manifest_numbers()
    now = hashes_of(partition, partition.read_manifest(numbers[-1]))
    for number in numbers[:-1]:
        older = hashes_of(partition, partition.read_manifest(number))
        if any(now.get(path, xxh3) != xxh3 for path, xxh3 in older.items()):
            partition.medium.remove_all([partition.manifest_path(number)])


def hashes_of(partition: Partition, manifest: Manifest) -> dict[Path, str]:
    """Return the xxh3 of every file that a manifest names."""
    files = (file for part in manifest.parts for file in part.files)
    return {partition.folder / file.path: file.xxh3 for file in files}
