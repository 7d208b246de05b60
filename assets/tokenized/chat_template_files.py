"""Chat template of a corpus: find it, render conversations with it, and tell what is learned.

The template is that of the config, of the files beside a loaded tokenizer, or ChatML. The
environment is that of transformers: sandboxed, with `raise_exception`, `tojson`, break and
continue, and the tag `generation`, whose content is learned. It has no clock (`strftime_now`), so
that the same messages always give the same text. Of a template without that tag, the turn of an
assistant is what rendering the conversation with it adds to rendering what comes before it with
`add_generation_prompt`; if the assistant begins, what follows the generation prompt. A source of
whose conversations a template refuses many fails by itself: one that wants turns to alternate would
leave most of a source out with no more than a count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from msgspec import UnsetType

from assets.text.chat_messages import ASSISTANT, TOOLS, Message
from assets.tokenized.tokenized_records import TOKENIZED, TokenizedManifest
from assets.tokenized.tokenizer import TokenizerError
from resources.corpus import Corpus
from resources.settings.named_files import read_named_file
from resources.settings.tokenizer import TokenizerConfig
from resources.store.records import Manifest
from resources.store.store import StoreError

# Of the noncharacters that no content has (chat_messages.py); the first ones there say roles.
OPEN, CLOSE = "\ufde0", "\ufde1"  # around what a template marks with `generation`
QUOTE, UNQUOTE = "\ufde2", "\ufde3"  # around the number of a special token that content spells
ADDED = "\ufde4"  # around its number behind a message, to see whether the template renders it

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
MARK_TURNS = "put the assistant's turn between {% generation %} and {% endgeneration %} in a copy"
HAS_GENERATION = re.compile(r"\{%-?\s*generation\s*-?%\}")

INSTRUCTIONS = ("system", "developer")
TEMPLATE_FAULTS = (  # that the expressions of a template may raise
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError),
)
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
    if lost := left_out(template, messages, whole):
        raise TemplateRefusal(f"the template leaves out what the {lost} message says")
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
            upto = render_with(template, messages[: number + 1], False)
            before = render_before(template, messages[:number], upto)
            if not (upto.startswith(before) and whole.startswith(upto)):
                raise TemplateRefusal(
                    f"the template renders message {number} in another way when others follow, so "
                    f"that it is not known what is learned: {MARK_TURNS}"
                )
            spans.append((len(before), turn_end(upto, len(before), end_of_turn)))
    return Rendered(whole, spans)


def left_out(template: ChatTemplate, messages: Sequence[Message], whole: str) -> str | None:
    """Return the role of the first message whose content may change while the text stays."""
    marks = ["" if role == TOOLS else f"{ADDED}{i}{ADDED}" for i, (role, _) in enumerate(messages)]
    marked = [Message(m.role, m.content + mark) for m, mark in zip(messages, marks, strict=True)]
    text = ""
    with suppress(TemplateRefusal):  # of a template that reads contents
        text = render_with(template, marked, False)
    for number, mark in enumerate(marks):
        if mark not in text:
            changed = [*messages[:number], marked[number], *messages[number + 1 :]]
            with suppress(TemplateRefusal):
                if render_with(template, changed, False) == whole:
                    return messages[number].role
    return None


def render_before(template: ChatTemplate, messages: Sequence[Message], upto: str) -> str:
    """Render what an assistant answers, up to its own words: the begin of `upto`.

    If the assistant begins, there is nothing to render, which many templates refuse: its words
    follow what the generation prompt adds to a question.
    """
    if split_tools(messages)[1]:
        return render_with(template, messages, True)
    question = [*messages, PROBE[0]]
    asked = render_with(template, question, False)
    prompt = render_with(template, question, True).removeprefix(asked)
    if not prompt or prompt not in upto:
        raise TemplateRefusal(
            "the assistant begins, and the generation prompt is not in the text, so that it is not "
            f"known what is learned: {MARK_TURNS}"
        )
    return upto[: upto.index(prompt) + len(prompt)]


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
    except (TemplateError, *TEMPLATE_FAULTS) as error:
        raise TemplateRefusal(str(error) or type(error).__name__) from error


def split_tools(messages: Sequence[Message]) -> tuple[Any, Sequence[Message]]:
    """Return the list of tools, None if there is none, and the messages behind it."""
    if not messages or messages[0].role != TOOLS:
        return None, messages
    try:
        return json.loads(messages[0].content), messages[1:]
    except ValueError as error:
        raise TemplateRefusal(f"filters left a list of `tools` that is no JSON: {error}") from error


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
    try:
        return environment.from_string(source)
    except TemplateError as error:
        raise TemplateRefusal(f"no Jinja template: {error}") from error


MOST_FILE_BYTES = 8 << 20
TOKENIZER_CONFIG, TEMPLATE_FILE = "tokenizer_config.json", "chat_template.jinja"
VARIABLES = ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token")
PROBE = (Message("user", "Hello"), Message("assistant", "Hello"))


def find_template(config: TokenizerConfig, folder: Path) -> ChatTemplate:
    """Return the chat template; `folder` is what paths of the config are relative to.

    Raises NamedFileError for a file that is missing, and TokenizerError for a template that does
    not render a question and its answer.
    """
    beside = None if config.path is None else (folder / config.path).parent
    known = read_config(beside)
    source = source_of(config, folder, beside, known)
    variables = {
        "bos_token": config.begin_of_document or "",
        "eos_token": config.end_of_document,
    } | spelled_variables(known)
    template = ChatTemplate(source, tuple(sorted(variables.items())))
    try:
        render_with(template, PROBE, False)
    except TemplateRefusal as error:
        raise TokenizerError(
            f"the chat template does not render a question and its answer: {error}. Correct it, or "
            "name another one in tokenizer.chat_template."
        ) from error
    return template


def source_of(
    config: TokenizerConfig, folder: Path, beside: Path | None, known: dict[str, object]
) -> str:
    """Return the text of the template."""
    if config.chat_template is not None:
        if "{" in config.chat_template:
            return config.chat_template
        return read_named_file(folder / config.chat_template, MOST_FILE_BYTES).decode()
    if beside is None:
        return CHATML
    if (beside / TEMPLATE_FILE).is_file():
        return read_named_file(beside / TEMPLATE_FILE, MOST_FILE_BYTES).decode()
    given = known.get("chat_template")
    if isinstance(given, list):  # several by name
        named = {each.get("name"): each.get("template") for each in given if isinstance(each, dict)}
        given = named.get("default")
    if not isinstance(given, str):
        raise TokenizerError(
            f"{beside / TOKENIZER_CONFIG} has no chat template, which the sources of `kind: chat` "
            "need. Put the file of the tokenizer there, or set tokenizer.chat_template."
        )
    return given


def read_config(beside: Path | None) -> dict[str, object]:
    """Return tokenizer_config.json of a folder; an empty one if there is none."""
    if beside is None or not (beside / TOKENIZER_CONFIG).is_file():
        return {}
    try:
        content = json.loads(read_named_file(beside / TOKENIZER_CONFIG, MOST_FILE_BYTES))
    except ValueError as error:
        raise TokenizerError(f"{beside / TOKENIZER_CONFIG} is no JSON: {error}.") from error
    return content if isinstance(content, dict) else {}


def spelled_variables(known: dict[str, object]) -> dict[str, str]:
    """Return the special tokens that a template may name, as tokenizer_config.json spells them."""
    found = {}
    for name in VARIABLES:
        value = known.get(name)
        value = value.get("content") if isinstance(value, dict) else value
        if isinstance(value, str):
            found[name] = value
    return found


REFUSED = "refused_by_template"  # why a conversation is rejected
MOST_REFUSED = 0.05  # of a source's conversations, where `max_bad_share` gives no other share
SHOWN_REASONS = 5  # of a part
SHOWN_CHARACTERS = 300


def refusal_reasons(rejected: pl.DataFrame) -> dict[str, int]:
    """Count what a template said to the conversations that it refused (REJECTED_SCHEMA)."""
    said = rejected.filter(reason=REFUSED)["error"].str.slice(0, SHOWN_CHARACTERS)
    counts = said.value_counts(name="count").sort("count", "error", descending=[True, False])
    return dict(counts.head(SHOWN_REASONS).iter_rows())


def too_many_refused(corpus: Corpus, manifest: Manifest[Any, Any]) -> str | None:
    """Return why a manifest of `tokenized` is refused: the share that its template refuses."""
    name, stats = manifest.partition, manifest.stats
    refused = stats.rejected.get(REFUSED, 0)
    given = corpus.settings.source(name).max_bad_share
    most = MOST_REFUSED if given is None else given
    if refused <= most * stats.rows_in:
        return None
    reasons = stats.numbers.template_refusals
    said = {} if isinstance(reasons, UnsetType) else reasons
    first = max(said, key=lambda reason: (said[reason], reason), default="unknown")
    return (
        f"tokenized[{name}]: the chat template refuses {refused:,} of {stats.rows_in:,} "
        f"conversations ({refused / stats.rows_in:.1%}), above {most:.1%}, most often since: "
        f"{first}. Later stages do not read them. Name another template in "
        "tokenizer.chat_template, correct the conversations, or set `max_bad_share` of the "
        "source, and build again."
    )


def usable_tokenized(corpus: Corpus, source: str) -> TokenizedManifest:
    """Return the newest manifest of a source; StoreError if its chat template refuses too many."""
    manifest = corpus.store.newest(TOKENIZED, source)
    if reason := too_many_refused(corpus, manifest):
        raise StoreError(reason)
    return manifest
