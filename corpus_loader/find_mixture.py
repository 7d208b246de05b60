"""Find the mixture that a loader reads: of a phase, or of what `holdout` keeps out of training.

Validation is mixed as a phase of its own, `validation`, whose mixture says what it is: no loader
takes it for a phase to train on, and each of its epochs is the first one again.

A loader does not start on a mixture from before a takedown that names a source of it. Takedowns are
numbered without gaps and never changed, and a mixture says how many it obeys: one read of a small
file that is most often missing tells that there are no more, on any kind of store.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, Literal, NamedTuple, get_args

from corpus_loader.mixture import MIXTURE_FILE, Mixture, check_version, parse_mixture
from corpus_loader.places.errors import CorpusError
from corpus_loader.places.files import DIGITS, TAGS, TAKEDOWNS, Files, is_tag_name
from corpus_loader.places.stage_names import MIXED, SHARDED
from corpus_loader.seal import unsealed

Part = Literal["train", "validation"]
VALIDATION = "validation"
DEFAULT_PHASE = "general"
HOLD_OUT = (
    "Set `holdout: {share: 0.001}` in pipeline.yaml, then run `corpus build`, which mixes it too."
)
IS_FINGERPRINT = re.compile(r"[0-9a-f]{32}\Z")
logger = logging.getLogger(__name__)


class Asked(NamedTuple):
    """Request to a loader: a phase, or validation, of all sources or of one."""

    phase: str
    split: Part
    source: str | None
    seed: int | None


def find_part(files: Files, asked: Asked, data: str | None) -> Mixture:
    """Return the mixture to read: the newest, or that of a tag or a fingerprint, `data`.

    Raises CorpusError for a part that the corpus does not have, with those that there are.
    """
    if asked.split not in get_args(Part):
        raise CorpusError(f"split is {asked.split!r}; it must be one of {get_args(Part)}")
    if asked.split == VALIDATION:
        check_validation(asked)
        mixture = find_validation(files, data)
        return mixture if asked.source is None else of_source(files, mixture, asked.source)
    if asked.source is not None:
        raise CorpusError(
            f"source is {asked.source!r}, which goes with split='validation': a phase draws from "
            "all of its sources. Leave it out."
        )
    mixture = find_mixture(files, asked.phase, data)
    if mixture.is_validation:
        raise CorpusError(
            f"{asked.phase!r} is what is held out of training. Open it with split='validation', or "
            "name a phase."
        )
    return mixture


def check_validation(asked: Asked) -> None:
    """Raise CorpusError for a phase or a seed: validation is of all phases, and has one order."""
    if asked.phase not in (DEFAULT_PHASE, VALIDATION):
        raise CorpusError(
            f"phase is {asked.phase!r}: validation is of the whole corpus. Leave it out, or read "
            "the phase with split='train'."
        )
    if asked.seed is not None:
        raise CorpusError(f"seed is {asked.seed}: validation has one order. Leave it out.")


def find_validation(files: Files, data: str | None) -> Mixture:
    """Return a mixture of validation; CorpusError if nothing is held out."""
    known = files.names(MIXED)
    if known and VALIDATION not in known:
        raise CorpusError(f"no documents are held out of training here. {HOLD_OUT}")
    try:
        mixture = find_mixture(files, VALIDATION, data)
    except CorpusError as error:
        raise CorpusError(f"{error} If no documents are held out yet: {HOLD_OUT}") from error
    if not mixture.is_validation:
        raise CorpusError(
            "'validation' is a phase to train on here, and no documents are held out. Read it with "
            f"phase='validation' and without `split`. Or rename it. {HOLD_OUT}"
        )
    return with_samples(mixture)


def with_samples(mixture: Mixture) -> Mixture:
    """Return a mixture; CorpusError if it is of validation, and no document is held out."""
    if not mixture.sources:
        raise CorpusError(
            "no document is held out: the corpus is small for the share of `holdout`. It decides "
            "on documents as they come: raise it before more of them come."
        )
    return mixture


def of_source(files: Files, mixture: Mixture, name: str) -> Mixture:
    """Return the validation of one source; CorpusError if the mixture has nothing of it."""
    names = [source.name for source in mixture.sources]
    if name not in names:
        what = "has no held-out documents" if name in files.names(SHARDED) else "is unknown"
        raise CorpusError(
            f"source {name!r} {what}; those with held-out documents are {', '.join(names)}"
        )
    source = mixture.sources[names.index(name)]
    return replace(
        mixture,
        sources=(source,),
        epoch_samples=source.samples,
        tokens=source.realised_tokens,
    )


def find_mixture(files: Files, phase: str, data: str | None = None) -> Mixture:
    """Return the newest mixture of a phase; or that of a tag, or with a fingerprint: `data`.

    Raises CorpusError with the phases, fingerprints or tags that there are, and what to run.
    """
    known = files.names(MIXED)
    if known and phase not in known:
        raise CorpusError(f"no phase {phase!r} here; there are: {', '.join(known)}")
    if data is not None and not IS_FINGERPRINT.match(data):
        return tagged_mixture(files, phase, data)
    fingerprints = []
    for mixture in mixtures(files, phase):
        if data in (None, mixture.fingerprint):
            return mixture
        fingerprints.append(mixture.fingerprint)
    raise CorpusError(
        f"no mixture of phase {phase!r} has the fingerprint {data}; there are, the newest first: "
        f"{', '.join(dict.fromkeys(fingerprints))}. Older ones were collected: raise "
        "`keep_manifests` before you mix again, or start without the state."
    )


def tagged_mixture(files: Files, phase: str, tag: str) -> Mixture:
    """Return the mixture of a phase in a tagged state; CorpusError if there is none."""
    number = tagged_number(files, phase, tag)
    if number is None:
        raise CorpusError(
            f"the tag {tag!r} has no mixture of phase {phase!r}: the phase was not mixed when the "
            "corpus was tagged. Name another tag, or open the newest mixture without `data`."
        )
    try:
        return mixture_of_number(files, phase, number)
    except FileNotFoundError:
        raise CorpusError(
            f"mixed[{phase}] has no manifest {number}, which the tag {tag!r} names. Put a copy of "
            "it there, or name another tag."
        ) from None


def tagged_number(files: Files, phase: str, tag: str) -> int | None:
    """Return the number of a phase's manifest in a tag, None if the tag has none of it."""
    path = f"{TAGS}/{tag}.json"
    try:
        if not is_tag_name(tag):
            raise FileNotFoundError(tag)
        said = json.loads(unsealed(files.read(path)))
        places = {(m["stage"], m["partition"]): int(m["number"]) for m in said["manifests"]}
    except FileNotFoundError:
        there = ", ".join(tag_names(files)) or "none that this server lists"
        raise CorpusError(
            f"data is {tag!r}, which is neither a tag nor the fingerprint of a mixture, 32 hex "
            f"digits. Tags are: {there}. `corpus states tag NAME` makes one."
        ) from None
    except (KeyError, TypeError, ValueError) as error:
        raise CorpusError(
            f"{path} is not a tag ({type(error).__name__}: {error}). Put a copy of it there."
        ) from error
    return places.get((MIXED, phase))


def tag_names(files: Files) -> list[str]:
    """Return the names of all tags; none if the server does not list."""
    names = [name.removesuffix(".json") for name in files.names(TAGS) if name.endswith(".json")]
    return [name for name in names if is_tag_name(name)]


def mixtures(files: Files, phase: str) -> Iterator[Mixture]:
    """Yield the kept mixtures of a phase, the newest first; CorpusError if there is none."""
    folder = f"mixed/{phase}"
    newest = files.newest(f"{folder}/_manifests")
    if newest is None:
        raise CorpusError(
            f"mixed[{phase}] is not materialized (looked for {folder}/_manifests/*.json). If the "
            "path is that of a store, materialize `mixed` first: run the job `mix_corpus`."
        )
    seen = set()
    for number in range(int(PurePosixPath(newest).stem), 0, -1):  # old ones go from the lowest up
        try:
            mixture = mixture_of_number(files, phase, number)
        except FileNotFoundError:
            break
        seen.add(number)
        yield mixture
    tagged = {tagged_number(files, phase, tag) for tag in tag_names(files)}
    for number in sorted({number for number in tagged if number} - seen, reverse=True):
        yield mixture_of_number(files, phase, number)


def mixture_of_number(files: Files, phase: str, number: int) -> Mixture:
    """Return the mixture of a manifest by its number; FileNotFoundError if there is none."""
    folder = f"mixed/{phase}"
    manifest = f"{folder}/_manifests/{number:0{DIGITS}d}.json"
    return mixture_of_manifest(files, folder, manifest, files.read(manifest))


def mixture_of_manifest(files: Files, folder: str, manifest: str, content: bytes) -> Mixture:
    """Read the mixture that a manifest names; CorpusError if it names none, or a damaged one."""
    try:
        said = json.loads(unsealed(content))
        place = f"{said.get('stage', MIXED)}/{said.get('partition', PurePosixPath(folder).name)}"
        if place != folder:
            raise ValueError(f"it says that it is of {place}")
        parts = [part["files"] for part in said["parts"]]
        records = [file for part in parts for file in part if file["kind"] == MIXTURE_FILE]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CorpusError(
            f"{manifest} is not a manifest ({type(error).__name__}: {error}). `corpus verify "
            "--repair` writes it again."
        ) from error
    if not records:
        raise CorpusError(
            f"{manifest} names no mixture: it was written by an older Tokenmill. Run the job "
            "`mix_corpus` again."
        )
    path = f"{folder}/{records[0]['path']}"
    try:
        encoded = files.read(path)
        if hashlib.sha256(encoded).hexdigest() != records[0]["sha256"]:
            raise ValueError("its sha256 is not the manifest's")
        check_version(encoded)
        obeyed = int(said.get("about", {}).get("takedowns", 0))
        return replace(parse_mixture(encoded).for_loader(), takedowns=obeyed)
    except (KeyError, TypeError, ValueError, FileNotFoundError) as error:
        raise CorpusError(
            f"{path} is not a mixture ({type(error).__name__}: {error}). `corpus verify --repair` "
            "writes it again."
        ) from error


def check_accepted(number: object) -> None:
    """Raise CorpusError for what is no number of a takedown."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise CorpusError(
            f"accept_takedown is {number!r:.100}; it must be the number of a takedown, as "
            "`corpus takedown list` has it"
        )


def check_takedowns(files: Files, mixture: Mixture, accepted: int) -> None:
    """Raise CorpusError if a takedown that a mixture does not obey names a part it draws from.

    Those up to the number `accepted` are logged instead.
    """
    newer = dict(newer_takedowns(files, mixture.takedowns))
    withdrawn = {takedown.get("withdraws") for takedown in newer.values()}
    drawn = {source.name for source in mixture.sources if source.samples}
    found = {
        number: sorted(drawn & takedown.get("parts", {}).keys())
        for number, takedown in newer.items()
        if number not in withdrawn and "withdraws" not in takedown
    }
    concerned = {number: sources for number, sources in found.items() if sources}
    for number, sources in concerned.items():
        what = f"takedown {number} removed documents of {', '.join(sources)}"
        if number > accepted:
            raise CorpusError(
                f"{what} after the mixture of phase {mixture.phase!r} was made (it obeys "
                f"{mixture.takedowns}). Run `corpus build`, and open the newest mixture. To train "
                f"on with these documents: LoaderOptions(accept_takedown={max(concerned)})."
            )
        logger.warning(
            "%s: accept_takedown=%d lets phase %r draw them", what, accepted, mixture.phase
        )


def newer_takedowns(files: Files, obeyed: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the takedowns of a store after the first `obeyed`, with their numbers."""
    number = obeyed
    while True:
        number += 1
        name = f"{TAKEDOWNS}/{number:0{DIGITS}d}.json"
        try:
            takedown = json.loads(unsealed(files.read(name)))
            takedown["parts"].keys()
        except FileNotFoundError:
            return
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CorpusError(
                f"{name} is damaged ({type(error).__name__}: {error}): what it means must not be "
                "trained on. Put a copy of the file there."
            ) from error
        yield number, takedown
