"""`corpus states rollback SOURCE --to N`: go back to an earlier state, and hold a source there.

The hold is written first, in one step, and names a manifest of every stage. From then on no run
reads the source again, and no clean-up removes what the hold names. Then every stage gets a new
manifest that says what the old one said. A command that was killed between is finished by the same
command; until then, a run brings the stages up to `signatures` into the state of the hold, and
computes what follows from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter

from assets.stages import BY_NAME
from corpus_loader.places.stage_names import CHAIN, RAW, SIGNATURES, SOURCE_STAGES
from pipeline_defs.commands.answers import answer_lines
from pipeline_defs.commands.states.state_chain import SourceState, state_of
from pipeline_defs.commands.terminal import Json, alone_on
from pipeline_defs.load_corpus import load_corpus
from resources.accepted_shrinks import ANY_STATE, AcceptedShrink, record_consent
from resources.corpus import Corpus
from resources.dagster_home import prepare_home
from resources.errors import UsageError
from resources.store.kept_manifests import KeptManifests
from resources.store.named_states import (
    NamedManifest,
    Rollback,
    create,
    delete,
    read_rollback,
    rollback_path,
)
from resources.store.records import Manifest
from resources.store.snapshot import Listing
from resources.store.store import Store, StoreError
from resources.takedowns import check_rollback, forbidden_in, forbidden_in_rollback

NEEDED = tuple(stage for stage in SOURCE_STAGES if stage in (*CHAIN, SIGNATURES))


def rollback(
    source: Annotated[str, Parameter(help="Source.")],
    /,
    *,
    to: Annotated[
        str | None,
        Parameter(help="State to go back to: its number in `corpus states history`, or a tag."),
    ] = None,
    reason: Annotated[str, Parameter(help="Kept with the hold, and shown by status.")] = "",
    release: Annotated[
        bool, Parameter(help="End the hold: the next run builds the source of today's inputs.")
    ] = False,
    json: Json = False,
) -> int:
    """Go back to an earlier state of a source and hold it there, or release it."""
    corpus = load_corpus()
    if (to is None) == (not release):
        raise UsageError("Give either --to, with the state to go back to, or --release.")
    if source not in corpus.settings.source_names():
        there = ", ".join(corpus.settings.source_names())
        raise UsageError(f"pipeline.yaml has no source {source!r}; it has: {there}.")
    prepare_home(corpus.store.root)
    with alone_on(corpus.store.root, "corpus states rollback"):
        if to is None:
            release_hold(corpus, source)
            told: dict[str, Any] = {"source": source, "state": None}
            lines = [f"Released {source}. The next run builds it of today's inputs and config."]
        else:
            hold = begin(corpus.store, source, to, reason)
            check_rollback(corpus.store, hold)  # a takedown may have come since
            report(done := go_back(corpus, hold), hold)
            rows = [(stage, number, hold.number(stage)) for stage, (number, _) in done.items()]
            stages = pl.DataFrame(rows, ("stage", "manifest", "says_what"), orient="row")
            told = {"source": source, "state": hold.state, "reason": hold.reason, "stages": stages}
            lines = [
                *(f"{stage}: manifest {now} says what {old} said" for stage, now, old in rows),
                f"{hold}. Runs leave its documents as they are until `corpus states rollback "
                f"{source} --release`. Phases draw from what they drew until they are mixed again.",
            ]
    answer_lines(lines, told, json=json)
    return 0


def release_hold(corpus: Corpus, source: str) -> None:
    """End the hold of a source."""
    root, numbers = corpus.store.root, corpus.store.partition(RAW, source).manifest_numbers()
    if read_rollback(root, source) is not None and numbers:
        record_consent(root, AcceptedShrink(source, numbers[-1], ANY_STATE))
    if not delete(rollback_path(root, source)):
        raise UsageError(f"{source!r} is not held. `corpus status` names the sources that are.")


def begin(store: Store, source: str, to: str, reason: str) -> Rollback:
    """Hold a source in a state; return the hold that there is if it is of the same state."""
    held = read_rollback(store.root, source)
    if held is None:
        held = hold_of_state(store, state_of(KeptManifests(store, source), to), reason)
        refuse_forbidden(store, held)
        if create(rollback_path(store.root, source), held):
            return held
        held = read_rollback(store.root, source)
    if held is None or held.state != to:
        raise UsageError(
            f"{held or source}. Finish that with `corpus states rollback {source} --to "
            f"{held.state if held else to}`, or release it first: corpus states rollback {source} "
            "--release"
        )
    return held


def hold_of_state(store: Store, state: SourceState, reason: str) -> Rollback:
    """Return the hold of a state; StoreError if a stage of it or a file is no longer there."""
    wanted = NEEDED[: NEEDED.index(state.stage) + 1] if state.stage in NEEDED else NEEDED
    lost = [stage for stage in wanted if stage not in state.manifests]
    if lost:
        raise StoreError(
            f"State {state.name} of {state.source!r} is no longer whole: its manifests of "
            f"{', '.join(lost)} were removed. Nothing was changed. Choose a newer state, and keep "
            "more of them with `keep_manifests` or a tag."
        )
    for stage, (_, manifest) in state.manifests.items():
        listing = Listing(store.partition(stage, manifest.partition).folder)
        for file in (file for part in manifest.parts for file in part.files):
            if not listing.has_size(file):
                raise StoreError(
                    f"{listing.folder / file.path} is missing, or has not the size that was "
                    "published. Nothing was changed. Choose another state: `corpus states history` "
                    "lists them."
                )
    named = (
        NamedManifest(stage, state.source, number, manifest.fingerprint)
        for stage, (number, manifest) in state.manifests.items()
    )
    return Rollback(state.source, state.name, reason, tuple(named))


def refuse_forbidden(store: Store, wanted: Rollback) -> None:
    """Raise StoreError for a state with documents that were taken down; name one without them."""
    found = forbidden_in_rollback(store, wanted)
    if found is None:
        return
    kept = KeptManifests(store, wanted.source)
    stage = kept.last_stage()
    advice = "No kept state is without them: `corpus build` makes one."
    for number, manifest in kept.newest_first(stage):
        if forbidden_in(store, stage, manifest) is None:
            advice = f"The newest state without them is {number}."
            break
    raise StoreError(
        f"State {wanted.state} of {wanted.source!r} has {found}. Nothing was changed. {advice}"
    )


def go_back(corpus: Corpus, hold: Rollback) -> dict[str, tuple[int, Manifest]]:
    """Commit the manifests that a hold names as the newest; return them with their new numbers."""
    done: dict[str, tuple[int, Manifest]] = {}
    for named in hold.manifests:
        folder = corpus.store.partition(named.stage, named.partition)
        with folder.writing(corpus.settings.keep_manifests, BY_NAME[named.stage].keep):
            manifest = folder.commit(folder.read_manifest(named.number), has_new_files=False)
        done[named.stage] = folder.manifest_numbers()[-1], manifest
    return done


def report(done: Mapping[str, tuple[int, Manifest]], hold: Rollback) -> None:
    """Tell Dagster the state of every stage, for its UI and `corpus states history`."""
    import dagster as dg  # takes 2 s

    from resources.materialize.asset_events import materialized

    with dg.DagsterInstance.get() as instance:
        for stage, (number, manifest) in done.items():
            numbers = {"manifest": number, "rows_kept": manifest.stats.rows_kept}
            parts = {"parts_computed": 0, "parts_reused": len(manifest.parts)}
            metadata = {"held": str(hold), **numbers, **parts}
            key = dg.AssetKey(stage)
            instance.report_runless_asset_event(materialized(key, manifest, metadata))
