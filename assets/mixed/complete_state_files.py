"""The newest complete state of a corpus, of which all that goes out speaks.

Every stage of every source is made of the others' newest in it. After a build that was not finished
it is the state before; of a source that failed it has the older state that phases are mixed from.
It is found backwards: a mixture names its shards, and each manifest what it was made of. Whoever
publishes asks `complete_state` for manifests, and never for the newest of a stage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from pydantic import ValidationError

from assets.mixed.budgets import MixError
from assets.mixed.mixed_records import MIXED
from assets.mixed.mixture_files import read_mixture
from assets.mixed.phase_class_files import drawn_source
from corpus_loader.places import stage_names
from corpus_loader.places.stage_names import CHAIN
from resources.corpus import Corpus
from resources.errors import and_more, check_name
from resources.settings.buckets import VALIDATION
from resources.settings.phases import PhaseConfig, ValidationPhase
from resources.store.kept_manifests import KeptManifests
from resources.store.named_states import Tag, read_rollback, read_tags
from resources.store.records import Manifest, StoreError
from resources.store.store import Store
from resources.takedowns import forbidden_documents

Numbered = tuple[int, Manifest[Any, Any]]


@dataclass(frozen=True)
class CompleteState:
    """Manifests with their numbers, by stage and partition; a line on what is not in the state."""

    manifests: Mapping[tuple[str, str], Numbered]
    sources: tuple[str, ...]
    without: str

    def refuse_forbidden(self, store: Store) -> None:
        """Raise StoreError if it has a document that was taken down."""
        for source in self.sources:
            if found := forbidden_documents(store, self.manifests[CHAIN[-1], source][1]):
                raise StoreError(f"raw[{source}] has {found}. Nothing goes out. Run: corpus build")


@dataclass(frozen=True)
class Chain:
    """The shards of a source and what they were made of; number 0: no shards of it at all."""

    kept: KeptManifests
    number: int = 0

    @cached_property
    def manifests(self) -> dict[str, Numbered]:
        """The manifests by stage, as far as they are kept."""
        if not self.number:
            return {}
        sharded = self.kept.get(CHAIN[0], self.number)
        return {CHAIN[0]: (self.number, sharded), **self.kept.chain(sharded, CHAIN[1:])}

    @cached_property
    def is_usable(self) -> bool:
        """Whether all are kept, and are those that the source is rolled back to, if it is."""
        if not self.number or len(self.manifests) < len(CHAIN):
            return not self.number
        hold = None if self.kept.tag else read_rollback(self.kept.store.root, self.kept.source)
        wanted = {each.fingerprint for each in hold.manifests} if hold else set[str]()
        return hold is None or self.manifests[stage_names.FILTERED][1].fingerprint in wanted


@dataclass(frozen=True)
class Mixed:
    """A kept mixture of a phase."""

    kept: KeptManifests
    number: int

    @cached_property
    def manifest(self) -> Manifest[Any, Any]:
        """Its manifest."""
        return self.kept.get(MIXED.name, self.number)

    @cached_property
    def config(self) -> PhaseConfig:
        """The config that it was mixed by; what is as by default was perhaps not given."""
        kind = ValidationPhase if self.kept.source == VALIDATION else PhaseConfig
        defaults, config = kind.model_fields, self.manifest.config
        is_given = (k for k in config if k not in defaults or config[k] != defaults[k].default)
        return kind.model_validate({key: config[key] for key in is_given})

    @cached_property
    def drawn(self) -> dict[str, dict[str, object]]:
        """The shards that it draws from, by source and by what is drawn by itself."""
        drawn: dict[str, dict[str, object]] = {}
        for each in read_mixture(self.kept.store, self.manifest).sources:
            of_source = drawn.setdefault(each.name.partition("/")[0], {})
            of_source[each.name] = (each.shards, each.removed)
        return drawn

    def is_of(self, source: str, chain: Chain) -> bool:
        """Return whether it was mixed from a state of a source."""
        then = self.drawn.get(source, {})
        try:
            is_drawn = chain.number and source in self.config.sources_of((source,))
            units = (
                drawn_source(self.config, chain.manifests[CHAIN[0]][1]).units if is_drawn else ()
            )
        except (MixError, StoreError, ValidationError):  # of another version or config
            return False
        now = {u.name: (tuple(s.record() for s in u.shards), u.removed) for u in units}
        is_new = not then and any(unit.rows for unit in units)
        return not is_new and all(now.get(name) == of for name, of in then.items())


def complete_state(
    corpus: Corpus, tag: str | None = None, sources: Sequence[str] = ()
) -> CompleteState:
    """Return what may go out: the newest complete state, or a tag's, of all sources or some.

    Raises StoreError if none is kept, or if it has a document that was taken down.
    """
    state = newest_complete(corpus, tag, sources)
    state.refuse_forbidden(corpus.store)
    return state


def incomplete(corpus: Corpus) -> str:
    """Return a line on what the newest complete state does not have, or why there is none."""
    try:
        return newest_complete(corpus, None, ()).without
    except StoreError as error:
        return str(error)


def newest_complete(corpus: Corpus, name: str | None, sources: Sequence[str]) -> CompleteState:
    """Find the newest state in which mixtures and sources fit each other; StoreError for none."""
    store, known, tags = corpus.store, corpus.settings.source_names(), read_tags(corpus.store.root)
    for given, there, kind in (*((s, known, "source") for s in sources), (name, tags, "tag")):
        if given is not None:
            check_name(kind, given, [*there])
    tag = tags[name] if name else None
    kept = {s: KeptManifests(store, s, tag) for s in known if s in sources or not sources}
    chains = {source: chains_of(each) for source, each in kept.items()}
    phases = {each: mixtures_of(store, each, tag) for each in corpus.settings.phase_names()}
    mixed = {phase: mixtures for phase, mixtures in phases.items() if mixtures}
    settle(chains, mixed, {*known})
    found = {source: each[0].manifests for source, each in chains.items() if each[0].number}
    missing = [source for source in kept if source not in found]
    begun = [s for s in missing if any(map(kept[s].numbers, CHAIN))]
    if not found or (missing and sources) or (begun and not mixed):
        raise StoreError(
            f"No complete state of {and_more(begun or missing)} is kept: a stage is not built, or "
            "is of an older state. Run: corpus build"
        )
    manifests = {(stage, s): each for s, of in found.items() for stage, each in of.items()}
    newer = [f"{stage} of {s}" for (stage, s), each in manifests.items() if is_old(kept[s], each)]
    for phase, mixtures in mixed.items():
        manifests[MIXED.name, phase] = mixtures[0].number, mixtures[0].manifest
        newer += (
            [f"phase {phase}"] if is_old(mixtures[0].kept, manifests[MIXED.name, phase]) else []
        )
    lacks = [f"newer {and_more(newer)}"] if newer else []
    lacks += [f"source {each}" for each in missing]
    lacks += [f"phase {each}" for each in phases if each not in mixed]
    without = f"The newest complete state is without {and_more(lacks, separator='; ')}."
    line = f"{without} To complete it: corpus build" if lacks else ""
    return CompleteState(manifests, tuple(found), line)


def chains_of(kept: KeptManifests) -> list[Chain]:
    """Return the kept states of a source, the newest first; the last is that it is not there."""
    return [*(Chain(kept, number) for number in reversed(kept.numbers(CHAIN[0]))), Chain(kept)]


def mixtures_of(store: Store, phase: str, tag: Tag | None) -> list[Mixed]:
    """Return the kept mixtures of a phase, the newest first."""
    kept = KeptManifests(store, phase, tag)
    return [Mixed(kept, number) for number in reversed(kept.numbers(MIXED.name))]


def is_old(kept: KeptManifests, state: Numbered) -> bool:
    """Return whether a stage has a newer manifest that says something else."""
    stage, newest = state[1].stage, kept.numbers(state[1].stage)[-1]
    return kept.get(stage, newest).fingerprint != state[1].fingerprint


def settle(
    chains: Mapping[str, list[Chain]], mixed: Mapping[str, list[Mixed]], known: set[str]
) -> None:
    """Drop what is newer than the newest states and mixtures that all fit each other.

    Raises StoreError if nothing is left of a phase.
    """
    again = True
    while again:
        again = False
        for of_source in chains.values():
            while not of_source[0].is_usable:
                del of_source[0]
        for phase, mixtures in mixed.items():
            fits = {s: places_of(mixtures[0], s, of_source) for s, of_source in chains.items()}
            if all(fits.values()) and mixtures[0].drawn.keys() <= known:
                again |= any(places[0] for places in fits.values())
                for source, places in fits.items():
                    del chains[source][: places[0]]
            else:
                again = True
                del mixtures[0]
            if not mixtures:
                raise StoreError(
                    f"No complete state is kept: phase {phase!r} was mixed from other states of "
                    "its sources than those that are kept. Run: corpus build"
                )


def places_of(mixed: Mixed, source: str, chains: Sequence[Chain]) -> list[int]:
    """Return the place of the newest state of a source that a mixture is of; none: []."""
    found = (place for place, each in enumerate(chains) if mixed.is_of(source, each))
    return [*islice(found, 1)]
