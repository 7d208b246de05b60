"""Types of limits: a number, or a number for each language.

`{zh: 20, ja: 20, "*": 50}` limits texts in Chinese and Japanese to 20, all others to 50. The
language is the declared one (of source code: a programming language), or else the detected one,
without region. A language that is null,
and one that is not named where there is no `*`, has no limit.
"""

from collections.abc import Mapping
from typing import Annotated, TypeAlias

from pydantic import Discriminator, Field, Tag

EVERY_LANGUAGE = "*"
LANGUAGE_NAME = r"[a-z][a-z0-9+#]*"  # en, and c++ of source code
Language = Annotated[str, Field(pattern=rf"^({LANGUAGE_NAME}|\*)$")]

# Tags of the two forms, so that a mistake is told for the form that was written only.
NUMBER, BY_LANGUAGE = "(number)", "(by language)"


def _form(limit: object) -> str:
    return BY_LANGUAGE if isinstance(limit, Mapping) else NUMBER


_Count = Annotated[int, Field(ge=0)]
_Amount = Annotated[float, Field(ge=0)]
_Share = Annotated[float, Field(ge=0, le=1)]
Count: TypeAlias = (
    Annotated[
        Annotated[_Count, Tag(NUMBER)] | Annotated[dict[Language, _Count | None], Tag(BY_LANGUAGE)],
        Discriminator(_form),
    ]
    | None
)
Amount: TypeAlias = (
    Annotated[
        Annotated[_Amount, Tag(NUMBER)]
        | Annotated[dict[Language, _Amount | None], Tag(BY_LANGUAGE)],
        Discriminator(_form),
    ]
    | None
)
Share: TypeAlias = (
    Annotated[
        Annotated[_Share, Tag(NUMBER)] | Annotated[dict[Language, _Share | None], Tag(BY_LANGUAGE)],
        Discriminator(_form),
    ]
    | None
)

LimitByLanguage = Mapping[str, float | None]


def without_forms(path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return the key path of a mistake without the tags of the form of a limit."""
    return tuple(key for key in path if key not in (NUMBER, BY_LANGUAGE))


def limit_text(limit: float | tuple[str, ...] | LimitByLanguage) -> str:
    """Write a threshold the way `corpus rules whatif --set` reads it."""
    if isinstance(limit, Mapping):
        return ",".join(f"{lang}:{_number(number)}" for lang, number in limit.items())
    return ",".join(limit) if isinstance(limit, tuple | list) else _number(limit)


def _number(number: float | None) -> str:
    if number is None:
        return "off"
    short = f"{number:g}"
    return short if float(short) == number else repr(number)
