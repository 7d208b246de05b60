"""Profiles: a few numbers of the parts that a run adds, on which drift is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec


class Profile(msgspec.Struct, frozen=True):
    """Numbers of the parts that one run computed of a partition.

    documents    that went in
    made_under   digest of code version and config: under others, numbers mean something else
    numbers      shares and means, by name
    counts       documents by value, by name: reasons, languages, lengths
    """

    documents: int
    made_under: str = ""
    numbers: dict[str, float] = {}
    counts: dict[str, dict[str, int]] = {}


@dataclass(frozen=True)
class Judgement:
    """Result of a comparison: a line per drift, facts for programs, and a picture, as Markdown."""

    drifts: Sequence[str] = ()
    note: str = ""
    facts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    picture: str = ""
