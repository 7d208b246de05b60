"""Plan the passes of `duplicates`: the files of the earlier passes that each of their tasks reads.

Five passes: find the components of all pairs, which is one task; gather the members to decide on,
part by part; decide them, in batches of whole components; publish the clusters of each signed part;
publish what the next run compares. Parts of the first three are removed when the manifest is
committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from assets.deduped.clusters.candidate_files import (
    BatchNumbers,
    GatherInputs,
    PairInputs,
    PartMembers,
    SignedFiles,
    find_members,
    gather_members,
)
from assets.deduped.clusters.cluster_files import BatchInputs, Decided, decide_batch
from assets.deduped.clusters.publish_files import (
    PublishedName,
    PublishInputs,
    StateInputs,
    publish_part,
    publish_state,
)
from resources.corpus import Corpus
from resources.passes import Earlier, Pass, derive_task, file_of, list_files
from resources.settings.dedup import DedupConfig
from resources.store.published import PublishedFile
from resources.store.records import numbers_of
from resources.tasks import Outcome, Task

DECISION_BYTES = 150  # of a member


@dataclass(frozen=True)
class ClusteringInputs:
    """Inputs of the clustering: all signed parts, the files of their pairs, the last decisions."""

    parts: list[SignedFiles]
    pairs: list[PublishedFile]
    config: DedupConfig
    decided: Decided


def plan_components(
    _: Corpus, tasks: list[Task[ClusteringInputs]], __: Earlier
) -> list[Task[PairInputs]]:
    """Plan the first pass: one task over all pairs."""
    state, inputs = tasks[-1], tasks[-1].payload
    rows = sorted((part.entry.id, part.entry.rows) for part in inputs.parts)
    numbers = np.array(rows, np.int64).reshape(-1, 2)
    text_bytes = sum(part.text_bytes for part in inputs.parts) / max(1, int(numbers[:, 1].sum()))
    digests = inputs.decided.digests
    made_of = inputs.config.memory_bytes, digests.xxh3 if digests else None
    pairs = PairInputs(numbers, inputs.pairs, digests, text_bytes, inputs.config)
    return [derive_task(state, "found", made_of, pairs, 0)]  # pairs are streamed


def plan_gather(
    _: Corpus, tasks: list[Task[ClusteringInputs]], earlier: Earlier
) -> Iterator[Task[GatherInputs]]:
    """Plan the second pass: one task per signed part that has members to decide on."""
    [[found]], inputs = earlier, tasks[-1].payload
    members, batches = members_by_part(found), batches_of(found)
    for part in inputs.parts:
        place = members[part.entry.id]
        if place.to_decide:
            name, of_part = f"members-{part.entry.id:08d}", part.signatures.bytes
            gather = GatherInputs(part, place, batches, inputs.config)
            if inputs.config.reads_candidates:
                of_part += part.documents.bytes
            yield derive_task(found.task, name, [name], gather, of_part)


def plan_decide(
    _: Corpus, tasks: list[Task[ClusteringInputs]], earlier: Earlier
) -> Iterator[Task[BatchInputs]]:
    """Plan the third pass: one task per batch."""
    [found], gathered = earlier
    if not gathered:
        return
    batches, config = batches_of(found), tasks[-1].payload.config
    members = list_files(gathered, "members")
    of_batch = sum(file_of(each, "members").bytes for each in gathered) // batches
    for batch in range(batches):
        name = f"decisions-{batch:05d}"
        inputs = BatchInputs(batch, members, file_of(found, f"pairs-{batch}"), config)
        yield derive_task(found.task, name, [name], inputs, of_batch)


def plan_publish(
    _: Corpus, tasks: list[Task[ClusteringInputs]], earlier: Earlier
) -> Iterator[Task[Any]]:
    """Plan the fourth pass: one task per signed part; those that are as they were are published."""
    if not earlier[0]:
        yield from tasks[:-1]
        return
    [found], _gathered, decided = earlier
    state, inputs, members = tasks[-1], tasks[-1].payload, members_by_part(found)
    decisions = list_files(decided, "decisions") if decided else None
    for part in inputs.parts:
        place, before = members[part.entry.id], inputs.decided.parts.get(part.entry.id)
        publish = PublishInputs(part, place, before, decisions)
        name, work_bytes = f"{part.entry.id:08d}", DECISION_BYTES * place.count
        if before is not None and before.candidates == place.count and not place.to_decide:
            yield state.sibling(name, before.fingerprint, publish, work_bytes=work_bytes)
        else:  # its fingerprint is known when its clusters are
            yield derive_task(found.task, name, [name], publish, work_bytes)


def plan_state(_: Corpus, tasks: list[Task[ClusteringInputs]], earlier: Earlier) -> list[Task[Any]]:
    """Plan the last pass: the task that names all parts."""
    state, (components, *_others, published) = tasks[-1], earlier
    if not components:
        return [state]
    members = members_by_part(components[0])
    names = {
        record.name: PublishedName(record.fingerprint, members[int(record.name)].count)
        for outcome in published
        for record in outcome.records
    }
    digests = components[0].records[0].file("digests")
    assert digests is not None
    return [state.sibling(state.name, state.fingerprint, StateInputs(digests, names), work_bytes=0)]


def members_by_part(found: Outcome) -> dict[int, PartMembers]:
    """Return the place of each part's members among those that the first pass found."""
    counts = np.fromfile(file_of(found, "counts").checked(), np.int64).reshape(3, -1)
    stops, files = np.cumsum(counts[1]), list_files([found], "components")
    places = np.stack([counts[0], stops - counts[1], stops, counts[2]], axis=1)
    return {number: PartMembers(files, *place) for number, *place in places.tolist()}


def batches_of(found: Outcome) -> int:
    """Return the number of batches that the first pass made."""
    return numbers_of(found.records[0], BatchNumbers).batches


PASSES = (
    Pass(find_members, plan_components, shares_memory=True, is_kept=False),
    Pass(gather_members, plan_gather, is_kept=False),
    Pass(decide_batch, plan_decide, shares_memory=True, is_kept=False),
    Pass(publish_part, plan_publish),
    Pass(publish_state, plan_state),
)
