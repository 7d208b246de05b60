"""The content of the files that filters name, passed to the pure modules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from assets.filtered.classifier.classifier import Classifier
from assets.filtered.classifier.percentiles import QualityScale
from assets.filtered.opt_out import OptOut
from assets.filtered.rules.custom import CustomRule


@dataclass(frozen=True)
class FilterData:
    """Content of the files that a config names, the trained classifier, and the source's scale.

    `list_faults`: entries of the lists of domains that can match nothing, in words.
    `is_chat`: the texts are conversations, whose messages are corrected one by one.
    """

    profanity: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    vocabulary: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    blocked_domains: frozenset[str] = frozenset()
    allowed_domains: frozenset[str] = frozenset()
    list_faults: tuple[str, ...] = ()
    custom: tuple[CustomRule, ...] = ()
    classifier: Classifier | None = None
    fasttext_path: str | None = None
    scale: QualityScale | None = None
    opt_out: OptOut = field(default_factory=OptOut)
    is_chat: bool = False
