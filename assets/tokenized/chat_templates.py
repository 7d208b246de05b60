"""Render chat templates in the environment of transformers.

It is sandboxed, with `raise_exception`, `tojson`, break and continue, and the tag `generation`,
whose content stands between OPEN and CLOSE. Its clock (`strftime_now`) stands still.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any, Literal

from assets.text.chat_messages import ASSISTANT

OPEN, CLOSE = "\ufde0", "\ufde1"  # noncharacters, which no content has (chat_messages.py)
TODAY = date(2024, 7, 26)  # which Llama 3's templates say where there is no clock
HAS_GENERATION = re.compile(r"\{%-?\s*generation\s*-?%\}")
TEMPLATE_FAULTS = (  # that the expressions of a template may raise
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError),
)


class TemplateRefusal(ValueError):
    """A template does not render a conversation; the message is the template's, or says why."""


@dataclass(frozen=True)
class ChatTemplate:
    """A Jinja template, and the variables that it sees besides the messages, such as bos_token.

    `learn` says of which of the assistant's messages a model learns, and whether their weights in
    the loss are other than 0 and 1; `roles` whose messages are learned; `is_split` that each turn
    is learned in a conversation that ends there.
    """

    source: str
    variables: tuple[tuple[str, str], ...] = ()
    learn: Literal["all", "last", "weights"] = "all"
    roles: tuple[str, ...] = (ASSISTANT,)
    is_split: bool = False


def render_with(template: ChatTemplate, values: Mapping[str, Any]) -> str:
    """Render a template with values; TemplateRefusal for its faults."""
    from jinja2 import TemplateError

    try:
        return str(compiled(template.source).render(values))
    except (TemplateError, *TEMPLATE_FAULTS) as error:
        raise TemplateRefusal(str(error) or type(error).__name__) from error


def tojson(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Return a value as JSON, as the filter `tojson` of transformers does."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


@cache
def compiled(source: str) -> Any:
    """Compile a template; TemplateRefusal if it is none."""
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """The tag `generation`, which puts marks around its content."""

        tags = {"generation"}  # noqa: RUF012  as the base class has it

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            call = self.call_method("marked")
            return nodes.CallBlock(call, [], [], body).set_lineno(line)

        def marked(self, caller: Callable[[], str]) -> str:
            return f"{OPEN}{caller()}{CLOSE}"

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = TODAY.strftime
    try:
        return environment.from_string(source)
    except TemplateError as error:
        raise TemplateRefusal(f"no Jinja template: {error}") from error
