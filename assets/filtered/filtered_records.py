"""Records of the stages `classifier`, `quality_scale` and `filtered`, for the store."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from corpus_loader.places import stage_names
from resources.store.records import Empty, StageRecords


class ClassifierNumbers(msgspec.Struct, frozen=True):
    """Documents of each side; the measures of the held-out ones, unset if one side has none."""

    good_documents: int = 0
    bad_documents: int = 0
    held_out_documents: int = 0
    auc: float | msgspec.UnsetType = msgspec.UNSET
    log_loss: float | msgspec.UnsetType = msgspec.UNSET


class ScaleProvenance(msgspec.Struct, frozen=True):
    """Fingerprint of the model and the settings behind a score, and of the parts sampled."""

    model: str
    parts: tuple[str, ...]


class ScaleNumbers(msgspec.Struct, frozen=True):
    """Documents of the sample by language, for languages with a scale of their own."""

    languages: dict[str, int] = {}


class FilteredProvenance(msgspec.Struct, frozen=True):
    """Fingerprint of the raw manifest, and of all opt-outs if there is such a rule."""

    raw: str
    opt_out: str | UnsetType = UNSET


class FilterNumbers(msgspec.Struct, frozen=True):
    """Numbers of a part of filtered documents.

    broken_rules     documents by every rule that they break: one that breaks two counts for both
    other_languages  documents by language that are surely in none of their source's languages
    opt_out          fingerprints of the raw part and of the opt-outs that concern its sites
    """

    broken_rules: dict[str, int] = {}
    other_languages: dict[str, int] = {}
    opt_out: tuple[str, str] | UnsetType = UNSET


FILTERED = StageRecords(stage_names.FILTERED, "11", FilteredProvenance, FilterNumbers)
CLASSIFIER = StageRecords(stage_names.CLASSIFIER, "1", Empty, ClassifierNumbers)
QUALITY_SCALE = StageRecords(stage_names.QUALITY_SCALE, "1", ScaleProvenance, ScaleNumbers)
