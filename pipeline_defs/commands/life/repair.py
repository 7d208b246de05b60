"""`corpus verify --repair`: rebuild exactly the parts that differ, through Dagster.

The steps for each stage and partition, in the order of the flow: move damaged files aside and plan
the stage. If the plan equals the newest manifest (config, inputs, fingerprints of the parts), one
Dagster run computes the missing parts and commits the same manifest again. Otherwise move the files
back and give the reason: with another config or other inputs the stage, and all stages after it,
would compute something else. A build does that.

A file whose content the store has under another name, as a hard link of an older state that is
damaged with the file of the newest one, gets it from there.

Then `follow` looks at what was computed from those files: they may have been damaged already when
they were read, by a version of the code that did not compare them with their hashes.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import dagster as dg

from assets.stages import used_stages
from pipeline_defs.commands.life.faults import Fault, file_fault, find_faults, record_path
from pipeline_defs.commands.life.follow import follow, remove_contradicted
from pipeline_defs.commands.life.make_again import make_again, materialize, moved_aside
from pipeline_defs.commands.life.rebuild_checks import (
    ORDER,
    NotRebuilt,
    check_published,
    planned,
)
from resources.corpus import Corpus
from resources.run_reports import read_report
from resources.store.disk import TEMPORARY_PREFIX, make_folder
from resources.store.records import PartRecord
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
    made_again = [fault for fault in faults if not fault.remedy]
    if not made_again:
        by_hand = dict.fromkeys(f"{fault.path.name}: {fault.remedy}" for fault in faults)
        raise NotRebuilt("; ".join(by_hand))
    newest = partition.manifest_numbers()[-1]
    current = of_manifest(made_again, newest)
    parts = {fault.part.name: fault.part for fault in current if fault.part is not None}
    if any(fault.part is None for fault in current) or any(
        is_manifest_wrong(partition, part) for part in parts.values()
    ):
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


def of_manifest(faults: list[Fault], newest: int) -> list[Fault]:
    """Return the faults of the newest manifest; NotRebuilt if only older manifests have faults.

    A run ends by reading all kept manifests, to remove the files that none of them names.
    """
    for fault in faults:
        if fault.manifest != newest and fault.part is None:
            raise NotRebuilt(
                f"{fault.path} is older than the newest manifest and only kept for going back: "
                "nothing makes it again. Remove it and repair again."
            )
    current = [fault for fault in faults if fault.manifest == newest]
    if not current:
        raise NotRebuilt(
            f"only manifest {faults[0].manifest} names {faults[0].path.name}. It is kept for going "
            "back, and nothing makes it again."
        )
    return current


def is_manifest_wrong(partition: Partition, part: PartRecord) -> bool:
    """Return whether the part's files agree with its record, but not with the manifest."""
    record = partition.find_part(part.name, part.fingerprint)
    if record is None or record == part:
        return False
    return all(file_fault(partition.folder / file.path, file) is None for file in record.files)
