"""Option types that several verbs share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import ArgumentCollection, Parameter, Token

MOST_DIGITS = 18


def read_natural(_: type, tokens: Sequence[Token]) -> int:
    """Read a whole number below 10^18, which int64 can hold."""
    text = tokens[0].value
    if not text.isdecimal() or len(text) > MOST_DIGITS:
        raise ValueError(f"{text!r:.40} is no whole number from 0 to 10^18")
    return int(text)


def read_positive(_: type, tokens: Sequence[Token]) -> int:
    """Read a whole number above 0."""
    text = tokens[0].value
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{text!r} is no number above 0")
    return int(text)


def check_one_given(arguments: ArgumentCollection) -> None:
    """Refuse a group of options unless exactly one of them is given."""
    given: list[Any] = list(arguments.filter_by(value_set=True))
    if len(given) != 1:
        names = " or ".join(argument.name for argument in arguments)
        given_names = ", ".join(argument.name for argument in given) or "neither"
        raise ValueError(f"give either {names}; given: {given_names}")


Json = Annotated[bool, Parameter(name="--json", help="Print JSON, for programs.")]
Natural = Annotated[int, Parameter(converter=read_natural)]
Positive = Annotated[int, Parameter(converter=read_positive)]
