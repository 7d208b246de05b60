"""The part of a corpus that a loader reads: a phase, or what `holdout` keeps out of training.

Validation is mixed as a phase of its own, `validation`, whose mixture says what it is: no loader
takes it for a phase to train on, and each of its epochs is the first one again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple, get_args

from corpus_loader.mixture import Mixture, find_mixture
from corpus_loader.places.errors import CorpusError
from corpus_loader.places.files import Files

Part = Literal["train", "validation"]
VALIDATION = "validation"
DEFAULT_PHASE = "general"
HOLD_OUT = (
    "Set `holdout: {share: 0.001}` in pipeline.yaml, then run `corpus build`, which mixes it too."
)


class Asked(NamedTuple):
    """What a loader is asked for: a phase, or validation, of all sources or of one."""

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
    known = files.names("mixed")
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
        what = "has no held-out documents" if name in files.names("sharded") else "is unknown"
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
