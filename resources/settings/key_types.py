"""Types of keys of pipeline.yaml that are checked alike wherever they are."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field

T = TypeVar("T")
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"  # of a folder, a partition, an evaluation set
NonEmpty = Annotated[str, Field(min_length=1)]


def as_tuple(value: object) -> object:
    """Return a single value as a tuple of one."""
    return (value,) if isinstance(value, str | int | float | bool) else value


def each_once(values: tuple[T, ...]) -> tuple[T, ...]:
    """Return values; ValueError if one is there twice."""
    if len(set(values)) < len(values):
        raise ValueError(f"each once, got {list(values)}: remove the repeated ones")
    return values


def ascending(numbers: tuple[float, ...]) -> tuple[float, ...]:
    """Return numbers; ValueError unless they are finite and ascend."""
    if not all(map(math.isfinite, numbers)) or any(a >= b for a, b in pairwise(numbers)):
        raise ValueError(f"must be finite and ascending, got {list(numbers)}")
    return numbers


def power_of_two(number: int) -> int:
    """Return a number; ValueError, with the nearest ones, if it is no power of two."""
    if number & (number - 1):
        low = 1 << (number.bit_length() - 1)
        raise ValueError(f"must be a power of two, got {number}. Take {low} or {2 * low}")
    return number


ONE_OR_MORE = BeforeValidator(as_tuple, json_schema_input_type=NonEmpty | tuple[NonEmpty, ...])
EACH_ONCE = AfterValidator(each_once)
ASCENDING = AfterValidator(ascending)
POWER_OF_TWO = AfterValidator(power_of_two)
