"""`corpus verify --repair`: rebuild exactly the parts that differ, through Dagster.

The steps for each stage and partition, in the order of the flow: move damaged files aside and plan
the stage. If the plan equals the newest manifest (config, inputs, fingerprints of the parts), one
Dagster run computes the missing parts and commits the same manifest again. Otherwise move the files
back and give the reason: with another config or other inputs the stage, and all stages after it,
would compute something else. A build does that. A file whose content the store has under another
name, as a hard link of an older state that is damaged with it, gets it from there.

Then what was made of those files is followed downstream: they may have been damaged already when
they were read, by code that did not compare them with their hashes. Each part is computed again and
compared. If its files come out equal, nothing that was made of it is looked at; otherwise they are
replaced, and what was made of them is computed again in its turn. The price is one part for each
damaged part, and all of a partition where a stage reads the whole of it.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping, Set
from dataclasses import fields, is_dataclass
from itertools import groupby
from pathlib import Path

import dagster as dg

from assets.bucketed.bucketed_records import HELD_OUT
from assets.stages import BY_NAME, STAGES, used_stages
from assets.tokenized.tokenized_records import TOKENIZER
from pipeline_defs.commands.life.faults import Fault, file_fault, find_faults, record_path
from pipeline_defs.commands.life.rebuild import (
    ORDER,
    NotRebuilt,
    OtherPlan,
    check_config,
    check_plan,
    check_published,
    make_again,
    materialize,
    moved_aside,
    planned,
)
from resources.corpus import Corpus
from resources.run_reports import read_report
from resources.store.disk import TEMPORARY_PREFIX, make_folder
from resources.store.published import PublishedFile
from resources.store.records import Manifest, PartRecord
from resources.store.store import Partition
from resources.tasks import GLOBAL

MAX_ROUNDS = 4  # a manifest, then the parts that it names; twice as many to be sure


def repair(corpus: Corpus, faults: list[Fault], instance: dg.DagsterInstance) -> Iterator[str]:
    """Rebuild faulty parts, and what was made of them; yield a line for each partition."""
    refused: dict[Path, str] = {}
    mended: set[Path] = set()
    for _ in range(MAX_ROUNDS):
        twins = [fault for fault in faults if fault.twin]
        for fault in twins:
            yield f"restored {fault.title}: {fault.path.name}, from {restore(fault)}"
            mended.update([fault.path] if fault.is_damage else [])
        waiting = [fault for fault in faults if not fault.twin and fault.path not in refused]
        if not waiting and not twins:
            break
        waiting.sort(key=place_of)
        for (_, stage, name), group in groupby(waiting, place_of):
            title, of_partition = f"{stage}[{name}]", list(group)
            try:
                yield f"rebuilt {title}: {rebuild(corpus, of_partition, instance)}"
                mended.update(fault.path for fault in of_partition if fault.is_damage)
            except NotRebuilt as error:
                line = f"not rebuilt {title}: {error}"
                refused |= dict.fromkeys((fault.path for fault in of_partition), line)
        faults = find_faults(corpus.store).faults
    left = [refused[fault.path] for fault in faults if fault.path in refused]
    yield from dict.fromkeys(left)
    if mended:
        yield from follow(corpus, mended, instance)


def faults_to_mend(faults: list[Fault], newest: int) -> list[Fault]:
    """Return the faults of the newest manifest; NotRebuilt for those that only a person can mend.

    A run ends by reading all kept manifests, to remove the files that none of them names.
    """
    made_again = [fault for fault in faults if not fault.remedy]
    if not made_again:
        by_hand = dict.fromkeys(f"{fault.path.name}: {fault.remedy}" for fault in faults)
        raise NotRebuilt("; ".join(by_hand))
    for fault in made_again:
        if fault.manifest != newest and fault.part is None:
            raise NotRebuilt(
                f"{fault.path} is older than the newest manifest and only kept for going back: "
                "nothing makes it again. Remove it and repair again."
            )
    if current := [fault for fault in made_again if fault.manifest == newest]:
        return current
    raise NotRebuilt(
        f"only manifest {made_again[0].manifest} names {made_again[0].path.name}. It is kept for "
        "going back, and nothing makes it again."
    )


def is_manifest_wrong(partition: Partition, part: PartRecord) -> bool:
    """Return whether the part's files agree with its record, but not with the manifest."""
    record = partition.find_part(part.name, part.fingerprint)
    if record is None or record == part:
        return False
    return all(file_fault(partition.folder / file.path, file) is None for file in record.files)


def restore(fault: Fault) -> str:
    """Give a file its content by a link to a whole one; return the place of that."""
    assert fault.twin is not None, "the caller asks for those that have one"
    folder, medium = fault.path.parent, fault.partition.medium
    make_folder(folder)
    medium.bring(fault.twin)
    temporary = folder / f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}-{fault.path.name}"
    os.link(fault.twin, temporary)
    medium.publish(temporary, fault.path)
    return "/".join(fault.twin.parts[-3:])


def place_of(fault: Fault) -> tuple[int, str, str]:
    """Return the place of a fault in the flow: number and name of the stage, and partition.

    A folder of an older version, whose stage is gone or has another name, comes last.
    """
    stage = fault.partition.stage
    return ORDER.index(stage) if stage in ORDER else len(ORDER), stage, fault.partition.name


def rebuild(corpus: Corpus, faults: list[Fault], instance: dg.DagsterInstance) -> str:
    """Rebuild faulty parts of one partition; return a summary, or raise NotRebuilt."""
    partition = faults[0].partition
    settings = corpus.settings
    if partition.stage not in ORDER:
        raise NotRebuilt(
            f"this version has no stage {partition.stage!r}, and nothing reads its folder "
            f"{partition.folder.parent}. Remove it."
        )
    if partition.stage not in used_stages(settings):
        raise NotRebuilt(
            f"pipeline.yaml does not use the stage, and nothing reads its folder "
            f"{partition.folder}. Remove it, or configure the stage."
        )
    if partition.name not in (*settings.source_names(), *settings.phase_names(), GLOBAL):
        raise NotRebuilt(f"pipeline.yaml has no {partition.name!r} any more")
    newest = partition.manifest_numbers()[-1]
    current = faults_to_mend(faults, newest)
    parts = {fault.part.name: fault.part for fault in current if fault.part is not None}
    wrong = (part for part in parts.values() if is_manifest_wrong(partition, part))
    if any(fault.part is None for fault in current) or any(wrong):
        with moved_aside([partition.manifest_path(newest)]):
            check_published(planned(corpus, partition))
            materialize(corpus, partition, instance)
        return f"manifest {newest}, from the records of its parts"
    records = [record_path(partition, part) for part in parts.values()]
    make_again(corpus, partition, [*(fault.path for fault in current), *records], instance)
    remove_contradicted(partition)
    done = read_report(corpus.store.root, partition.stage, partition.name)
    names = ", ".join(sorted(parts))
    return f"{names} ({done.parts_computed} computed, {done.parts_reused} as they were)"


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
        except OtherPlan as error:
            if partition.stage == TOKENIZER.name and replaced:
                yield (
                    f"kept {title}, which was trained on a damaged text: it encodes every text "
                    "without loss. `corpus tokenizer retrain` trains the next one"
                )
            else:
                yield f"not proved {title}, which was made of damaged files: {error}"
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
    settings, root = corpus.settings, corpus.store.root
    known = {*settings.source_names(), *settings.phase_names(), GLOBAL}
    built = [partition for partition in corpus.store.partitions() if partition.name in known]
    hit = [any(root / stage.name in path.parents for path in damaged) for stage in STAGES]
    used = used_stages(settings)
    for stage in STAGES[hit.index(True) + 1 :]:
        if stage.name in used:
            yield from (partition for partition in built if partition.stage == stage.name)


def parts_made_of(corpus: Corpus, partition: Partition, suspects: Set[Path]) -> list[PartRecord]:
    """Return the parts of the newest manifest that were made of any of these files.

    The files that a task reads are in its payload. A stage with passes of its own, and one whose
    tasks do not name the files of an earlier stage, depends on all that it could read.
    """
    stage, root = BY_NAME[partition.stage], corpus.store.root
    manifest = partition.newest_manifest()
    assert manifest is not None, f"{partition.folder} has no manifest"
    files = {task.name: set(files_in(task.payload)) for task in planned(corpus, partition).tasks}
    named = {folder for of_task in files.values() for path in of_task for folder in path.parents}
    read: set[Path] = set()  # folders of which the whole may have been read
    for earlier in (BY_NAME[name] for name in stage.after):
        if root / earlier.name not in named:
            is_own = earlier.partitions == stage.partitions == "source"
            read.add(root / earlier.name / partition.name if is_own else root / earlier.name)
    touched = {name for name, of_task in files.items() if of_task & suspects}
    is_any = any(not read.isdisjoint(path.parents) for path in suspects)
    if is_any or (touched and stage.run is not None):
        return list(manifest.parts)
    return [part for part in manifest.parts if part.name in touched]


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
        if are_inputs_new and partition.stage != TOKENIZER.name:
            check_config(plan, before)
        else:  # a tokenizer is not trained on another sample to repair a file
            check_plan(plan, before)
        materialize(corpus, partition, instance)
    after = partition.newest_manifest()
    assert after is not None, f"{partition.folder} has no manifest"
    then, now = hashes_of(partition, before), hashes_of(partition, after)
    remove_contradicted(partition)
    return {path for path in then | now if then.get(path) != now.get(path)}


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
