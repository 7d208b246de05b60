"""Render conversations with the Jinja chat template of a tokenizer, and find what is learned.

The environment is that of transformers: sandboxed, with `raise_exception`, `tojson`, break and
continue, and the tag `generation`, whose content is learned. It has no clock (`strftime_now`), so
that the same messages always give the same text. Of a template without that tag, the turn of an
assistant is what rendering the conversation with it adds to rendering what comes before it with
`add_generation_prompt`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from assets.text.chat_messages import ASSISTANT, TOOLS, Message

# Of the noncharacters that no content has (chat_messages.py); the first ones there say roles.
OPEN, CLOSE = "\ufde0", "\ufde1"  # around what a template marks with `generation`
QUOTE, UNQUOTE = "\ufde2", "\ufde3"  # around the number of a special token that content spells

CHATML = """\
{%- set ns = namespace(messages=messages) %}
{%- if tools %}
{{- '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' %}
{{- messages[0].content + '\\n\\n' }}
{%- set ns.messages = messages[1:] %}
{%- endif %}
{{- '<tools>' }}
{%- for tool in tools %}{{- '\\n' + (tool | tojson(separators=(',', ':'))) }}{%- endfor %}
{{- '\\n</tools><|im_end|>\\n' }}
{%- endif %}
{%- for message in ns.messages %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.role == 'assistant' %}
{%- generation %}{{ message.content + '<|im_end|>' }}{% endgeneration %}
{%- else %}{{ message.content + '<|im_end|>' }}
{%- endif %}
{{- '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""
HAS_GENERATION = re.compile(r"\{%-?\s*generation\s*-?%\}")

INSTRUCTIONS = ("system", "developer")
Span = tuple[int, int]


class TemplateRefusal(ValueError):
    """A template does not render a conversation; the message is the template's, or says why."""


@dataclass(frozen=True)
class ChatTemplate:
    """A Jinja template, and the variables that it sees besides the messages, such as bos_token."""

    source: str
    variables: tuple[tuple[str, str], ...] = ()


class Rendered(NamedTuple):
    """Text of a conversation, and the spans of characters in it that are learned, ascending."""

    text: str
    learned: list[Span]


def render_chat(
    template: ChatTemplate, messages: Sequence[Message], end_of_turn: re.Pattern[str]
) -> Rendered:
    """Render messages; TemplateRefusal if the template does not, or leaves out what it was told.

    `end_of_turn` matches special tokens: of a template without `generation`, blanks behind the last
    of them in a turn are not learned.
    """
    whole = render_with(template, messages, False)
    for role, content in messages:
        if role in INSTRUCTIONS and content.strip() not in whole:
            raise TemplateRefusal(f"the template leaves out what the {role} message says")
    if messages[0].role == TOOLS and whole == render_with(template, messages[1:], False):
        raise TemplateRefusal(
            "the template does not render `tools`, so that the model would call what it was not "
            "told of: name one that does in tokenizer.chat_template"
        )
    if HAS_GENERATION.search(template.source):
        return marked_spans(whole)
    spans = []
    for number, message in enumerate(messages):
        if message.role == ASSISTANT:
            before = render_before(template, messages[:number])
            upto = render_with(template, messages[: number + 1], False)
            if not (upto.startswith(before) and whole.startswith(upto)):
                raise TemplateRefusal(
                    f"the template renders message {number} in another way when others follow, so "
                    "that it is not known what is learned: put the assistant's turn between "
                    "{% generation %} and {% endgeneration %} in a copy of it"
                )
            spans.append((len(before), turn_end(upto, len(before), end_of_turn)))
    return Rendered(whole, spans)


def render_before(template: ChatTemplate, messages: Sequence[Message]) -> str:
    """Render what an assistant answers; nothing if the assistant begins."""
    return render_with(template, messages, True) if messages else ""


def turn_end(text: str, start: int, end_of_turn: re.Pattern[str]) -> int:
    """Return the end of a turn: behind its last special token, if only blanks follow."""
    ends = [match.end() for match in end_of_turn.finditer(text, start)]
    return ends[-1] if ends and not text[ends[-1] :].strip() else len(text)


def marked_spans(text: str) -> Rendered:
    """Take the marks of `generation` out of a text, and return where they were."""
    parts, spans, size, first = [], [], 0, 0
    for part in re.split(f"([{OPEN}{CLOSE}])", text):
        if part == OPEN:
            first = size
        elif part == CLOSE:
            spans.append((first, size))
        else:
            parts.append(part)
            size += len(part)
    return Rendered("".join(parts), spans)


def render_with(template: ChatTemplate, messages: Sequence[Message], is_prompt: bool) -> str:
    """Render messages, with the head of the next turn if `is_prompt`; may raise TemplateRefusal."""
    from jinja2 import TemplateError

    tools, turns = split_tools(messages)
    values: dict[str, Any] = {
        **dict(template.variables),
        "messages": [message._asdict() for message in turns],
        "tools": tools,
        "documents": None,
        "add_generation_prompt": is_prompt,
    }
    try:
        return str(compiled(template.source).render(values))
    except (TemplateError, ArithmeticError, AttributeError, LookupError, TypeError) as error:
        raise TemplateRefusal(str(error) or type(error).__name__) from error
    except (ValueError, RecursionError) as error:
        raise TemplateRefusal(str(error) or type(error).__name__) from error


def split_tools(messages: Sequence[Message]) -> tuple[Any, Sequence[Message]]:
    """Return the list of tools, None if there is none, and the messages behind it."""
    if not messages or messages[0].role != TOOLS:
        return None, messages
    try:
        return json.loads(messages[0].content), messages[1:]
    except ValueError as error:
        raise TemplateRefusal(f"filters left a list of `tools` that is no JSON: {error}") from error


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

    def tojson(
        value: object,
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        return json.dumps(
            value,
            ensure_ascii=ensure_ascii,
            indent=indent,
            separators=separators,
            sort_keys=sort_keys,
        )

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    try:
        return environment.from_string(source)
    except TemplateError as error:
        raise TemplateRefusal(f"no Jinja template: {error}") from error
