"""States of many sources for a stage that reads all of them, without those that have none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from resources.corpus import Corpus
from resources.store.records import Manifest, Numbers, PartRecord, Provenance, StageRecords
from resources.store.store import StoreError
from resources.tasks import GLOBAL

State = TypeVar("State")


def usable_states(
    names: Iterable[str], read: Callable[[str], State]
) -> tuple[dict[str, State], dict[str, str]]:
    """Read the state of each source: (states, reasons of those that are left out), by source.

    Raises StoreError if every source is left out.
    """
    states: dict[str, State] = {}
    left_out: dict[str, str] = {}
    for name in names:
        try:
            states[name] = read(name)
        except StoreError as error:
            left_out[name] = str(error)
    if left_out and not states:
        raise StoreError("\n".join(left_out.values()))
    return states, left_out


def state_of_all(
    corpus: Corpus, stage: StageRecords[Provenance, Numbers]
) -> Manifest[Provenance, Numbers]:
    """Return the newest manifest of a stage over all sources, read once for all plans of a step.

    Raises StoreError if there is none.
    """
    return corpus.once(stage.name, lambda: corpus.store.newest(stage, GLOBAL))


def parts_of_source(
    corpus: Corpus, manifest: Manifest[Any, Numbers], source: str
) -> list[PartRecord[Numbers]]:
    """Return the parts of such a manifest whose numbers name a source; all are looked at once."""

    def by_source() -> dict[str, list[PartRecord[Numbers]]]:
        found: dict[str, list[PartRecord[Numbers]]] = {}
        for part in manifest.parts:
            found.setdefault(part.stats.numbers.source, []).append(part)  # type: ignore[attr-defined]
        return found

    return corpus.once(f"{manifest.stage} by source", by_source).get(source, [])
