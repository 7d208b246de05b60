"""Render conversations with a chat template, and tell what of the text is learned.

The environment is that of transformers: sandboxed, with `raise_exception`, `tojson`, break and
continue, and the tag `generation`, whose content is learned. Its clock (`strftime_now`) stands
still, so that the same messages always give the same text.

Of a template without that tag, what is learned is what the model would sample: what stands behind
the generation prompt, up to and with the token that ends the turn. To know where that is, the
conversation is rendered a second time with a mark at the end of each content, call of a tool and
reasoning, which must change nothing else. A turn of the assistant begins where the text, from the
last mark before it, goes on as the messages before it do with the generation prompt; of a prompt
that the text does not have in whole, such as one that opens a block of reasoning, its first lines
or special tokens count. It ends with what the template writes behind it when nothing follows, up to
the last special token; or with the first special token, if another message follows and the text
goes on otherwise, as for templates whose next turn begins with the token that ends this one.

What the marks also tell: whether the template leaves out what a message says, which is refused.
Only the reasoning before a later answer may be left out, as templates do by design.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple

from assets.text.chat_messages import (
    ASSISTANT,
    LEARNED,
    OPTIONS,
    REASONING_KEYS,
    TOOLS,
    Message,
)

# Of the noncharacters that no content has (chat_messages.py); the first ones there say roles.
OPEN, CLOSE = "\ufde0", "\ufde1"  # around what a template marks with `generation`
QUOTE, UNQUOTE = "\ufde2", "\ufde3"  # around the number of a special token that content spells
ADDED = "\ufde4"  # around the number of a mark, in digits of their own, which no template reads
DIGITS = {ord(str(digit)): 0xFDE5 + digit for digit in range(10)}
FROM_DIGITS = {mark: digit for digit, mark in DIGITS.items()}
GENERATED = re.compile(f"([{OPEN}{CLOSE}])")
MARKED_PARTS = ("reasoning", "content", "tool_calls")  # of a message, in the order of numbers
UNSAID = (LEARNED, "tool_call_id")  # what is known about a message and needs no text
TODAY = date(2024, 7, 26)  # which Llama 3's templates say where there is no clock
MARK_TURNS = "put the assistant's turn between {% generation %} and {% endgeneration %} in a copy"
HAS_GENERATION = re.compile(r"\{%-?\s*generation\s*-?%\}")
TEMPLATE_FAULTS = (  # that the expressions of a template may raise
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError),
)
NOTHING = re.compile(r"(?!)")  # matches nowhere
PROBE = (Message("user", "Hello"), Message(ASSISTANT, "Hello"))
Span = tuple[int, int]


class TemplateRefusal(ValueError):
    """A template does not render a conversation; the message is the template's, or says why."""


@dataclass(frozen=True)
class ChatTemplate:
    """A Jinja template, and the variables that it sees besides the messages, such as bos_token.

    `learn` says of which of the assistant's messages a model learns.
    """

    source: str
    variables: tuple[tuple[str, str], ...] = ()
    learn: Literal["all", "last"] = "all"


class Rendered(NamedTuple):
    """Text of a conversation, and the spans of characters in it that are learned, ascending."""

    text: str
    learned: list[Span]


class Marked(NamedTuple):
    """Text without marks, the spans of `generation`, and for each message where its marks stood."""

    text: str
    spans: list[Span]
    places: dict[int, dict[str, int]]

    def end_of(self, number: int) -> int:
        """Return the place of the last mark of a message or of those before it, 0 for none."""
        while number >= 0 and number not in self.places:
            number -= 1
        return max(self.places[number].values()) if number >= 0 else 0

    def begin_after(self, number: int) -> int:
        """Return the place of the first mark behind a message, the end of the text for none."""
        later = range(number + 1, max(self.places, default=0) + 1)
        found = next((i for i in later if i in self.places), None)
        return len(self.text) if found is None else min(self.places[found].values())


class Arguments(dict[str, Any]):
    """Arguments of a call: an object for a template that asks, JSON text for one that writes."""

    def __init__(self, values: Mapping[str, Any], text: str) -> None:
        super().__init__(values)
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __add__(self, other: str) -> str:
        return self.text + other

    def __radd__(self, other: str) -> str:
        return other + self.text


def render_chat(
    template: ChatTemplate, messages: Sequence[Message], end_of_turn: re.Pattern[str]
) -> Rendered:
    """Render messages; TemplateRefusal if the template does not, or leaves out what it was told.

    `end_of_turn` matches special tokens.
    """
    try:
        return Rendering(template, messages, end_of_turn, "").rendered()
    except TemplateRefusal:
        if not any(each.tool_calls and not each.content.strip() for each in messages):
            raise
        with suppress(TemplateRefusal):  # of a template that asks whether the content is none
            return Rendering(template, messages, end_of_turn, None).rendered()
        raise


class Rendering:
    """A conversation in a template, with and without marks."""

    def __init__(
        self,
        template: ChatTemplate,
        messages: Sequence[Message],
        end_of_turn: re.Pattern[str],
        blank: str | None,
    ) -> None:
        """`blank` is the content of messages that have calls of tools only."""
        self.template, self.end_of_turn = template, end_of_turn
        self.options = json_of(messages, OPTIONS) or {}
        self.tools = json_of(messages, TOOLS)
        self.messages = [each for each in messages if each.role not in (OPTIONS, TOOLS)]
        self.answers = [i for i, each in enumerate(self.messages) if each.role == ASSISTANT]
        self.last_answer = max(self.answers, default=-1)
        self.turns = [as_turn(each, blank) for each in self.messages]
        self.marked_turns = [as_turn(each, blank, i) for i, each in enumerate(self.messages)]
        self.heads, self.closings = dict[str, str](), dict[bool, str]()  # of turns before

    def rendered(self) -> Rendered:
        """Return the text and what is learned; TemplateRefusal if that is not known."""
        whole, marked = self.render(self.turns), self.render(self.marked_turns)
        if lost := self.left_out(whole, marked):
            raise TemplateRefusal(f"the template leaves out {lost}")
        if HAS_GENERATION.search(self.template.source):
            return Rendered(whole.text, self.spans_learned(whole, marked))
        if whole.text != marked.text:
            raise TemplateRefusal(
                "the template renders a message in another way when something is added to it, so "
                f"that it is not known what is learned: {MARK_TURNS}"
            )
        learned = [i for i in self.answers if self.is_learned(i)]
        return Rendered(whole.text, [(self.begin(marked, i), self.end(marked, i)) for i in learned])

    def text(self) -> str:
        """Return the text alone; TemplateRefusal if the template does not render it."""
        return self.render(self.turns).text

    def render(self, turns: Sequence[Mapping[str, Any]], is_prompt: bool = False) -> Marked:
        """Render turns, with the head of the next one if `is_prompt`."""
        values = {
            **dict(self.template.variables),
            "documents": None,
            **self.options,
            "messages": turns,
            "tools": self.tools,
            "add_generation_prompt": is_prompt,
        }
        return take_marks(render_with(self.template, values))

    def is_learned(self, number: int) -> bool:
        """Return whether neither the message nor the source says otherwise."""
        is_last = number == self.last_answer
        return bool(about(self.messages[number]).get(LEARNED, True)) and (
            is_last or self.template.learn == "all"
        )

    def left_out(self, whole: Marked, marked: Marked) -> str | None:
        """Return what was told to the template and changes nothing of its text."""
        reads_reasoning = any(name in self.template.source for name in REASONING_KEYS)
        for number, message in enumerate(self.messages):
            for part in MARKED_PARTS:
                is_said = part in marked.places.get(number, ())
                may_lack = part == "reasoning" and reads_reasoning and number < self.last_answer
                if is_said or may_lack or not getattr(message, part).strip():
                    continue
                if part != "content" or not self.is_changed(number, whole.text):
                    what = {"content": "", "reasoning": "as reasoning", "tool_calls": "in calls"}
                    return f"what the {message.role} message says {what[part]}".strip()
            for text in texts_about(message):
                if text not in whole.text:
                    return f"{text[:60]!r}, which is said about the {message.role} message"
        for name, value in [("tools", self.tools), *self.options.items()]:
            if isinstance(value, str | list | dict) and value and self.is_same_without(name, whole):
                return f"`{name}`, so that the model would learn from what it was not told"
        return None

    def is_changed(self, number: int, text: str) -> bool:
        """Return whether a text changes with a content whose mark is not in it."""
        turns = [*self.turns]
        turns[number] = self.marked_turns[number]
        try:
            return self.render(turns).text != text
        except TemplateRefusal:  # of a template that reads contents
            return True

    def is_same_without(self, name: str, whole: Marked) -> bool:
        """Return whether the text is the same without the tools or an option."""
        known = (self.tools, self.options)
        try:
            if name == "tools":
                self.tools = None
            else:
                self.options = {key: each for key, each in self.options.items() if key != name}
            return self.text() == whole.text
        except TemplateRefusal:
            return False
        finally:
            self.tools, self.options = known

    def spans_learned(self, whole: Marked, marked: Marked) -> list[Span]:
        """Return what the template marks with `generation`, but for turns that are not learned."""
        if all(map(self.is_learned, self.answers)):
            return whole.spans
        kept = []
        for number, (start, stop) in enumerate(marked.spans):
            within = {
                self.is_learned(i)
                for i, each in marked.places.items()
                if any(start <= place <= stop for place in each.values())
            }
            if len(within) > 1 or len(marked.spans) != len(whole.spans):
                raise TemplateRefusal(
                    "the template marks turns as one of which not all are learned"
                )
            if within == {True}:
                kept.append(whole.spans[number])
        return kept

    def begin(self, marked: Marked, number: int) -> int:
        """Return where the turn of an assistant begins, behind the generation prompt."""
        lower = marked.end_of(number - 1)
        text = marked.text[lower : marked.begin_after(number - 1)]
        if number:
            role = self.messages[number - 1].role
            if (known := self.heads.get(role)) and text.startswith(known):
                return lower + len(known)
            with suppress(TemplateRefusal):  # of a template that wants a question first
                before = self.render(self.marked_turns[:number], True)
                head = before.text[before.end_of(number) :]
                if text.startswith(head):
                    self.heads[role] = head
                    return lower + len(head)
        for prompt in self.generation_prompts:
            if prompt in text:
                return lower + text.index(prompt) + len(prompt)
        if number and self.messages[number - 1].role == ASSISTANT:  # the same turn goes on
            return lower
        raise TemplateRefusal(
            f"the generation prompt is not in the text before message {number}, so that it is not "
            f"known what is learned: {MARK_TURNS}"
        )

    @cached_property
    def generation_prompts(self) -> list[str]:
        """Return what the generation prompt adds to a question, and its first lines, longest first.

        None that also stands in the question, as the begin of every turn does.
        """
        turns = [as_turn(PROBE[0], "")]
        asked, prompted = self.render(turns).text, self.render(turns, True).text
        prompt = prompted[shared_begin(asked, prompted) :]
        lines = (found.end() for found in re.finditer("\n", prompt))
        sizes = sorted({len(prompt), *lines, *self.ends_in(prompt)}, reverse=True)
        return [prompt[:size] for size in sizes if prompt[:size] not in asked]

    def end(self, marked: Marked, number: int) -> int:
        """Return where the turn of an assistant ends, behind the token that ends it."""
        start, is_last = marked.end_of(number), number + 1 == len(self.turns)
        text = marked.text[start : marked.begin_after(number)]
        is_next = not is_last and self.messages[number + 1].role == ASSISTANT
        closing = text if is_last else self.closing_alone(number, text)
        if closing is None or not text.startswith(closing):
            ends = self.ends_in(text)
            if not ends and not is_next:
                raise TemplateRefusal(
                    f"the template renders message {number} in another way when others follow, so "
                    f"that it is not known what is learned: {MARK_TURNS}"
                )
            return start + (ends[0] if ends else 0)
        ends = self.ends_in(closing)
        if len(ends) > 1 and is_last:  # one may end the conversation, and not the turn
            followed = self.closing([*self.marked_turns, as_turn(PROBE[0], "")], number)
            shared = closing[: shared_begin(closing, followed or closing)]
            ends = self.ends_in(shared) or ends[:1]
        if ends:
            return start + ends[-1]
        behind = text[len(closing) :]
        stop = None if is_next else self.end_of_turn.match(behind.lstrip())
        size = len(behind) - len(behind.lstrip()) + stop.end() if stop else 0
        return start + len(closing) + size

    def closing_alone(self, number: int, text: str) -> str | None:
        """Return what closes a turn that nothing follows, None if the template refuses that."""
        is_call = bool(self.messages[number].tool_calls)
        known = self.closings.get(is_call)
        if known and text.startswith(known):
            return known
        found = self.closing(self.marked_turns[: number + 1], number)
        if found and self.ends_in(found):
            self.closings[is_call] = found
        return found

    def closing(self, turns: Sequence[Mapping[str, Any]], number: int) -> str | None:
        """Return what follows the last mark of a message in other turns, None if refused."""
        with suppress(TemplateRefusal):
            alone = self.render(turns)
            return alone.text[alone.end_of(number) :]
        return None

    def ends_in(self, text: str) -> list[int]:
        """Return where the special tokens of a text end."""
        return [found.end() for found in self.end_of_turn.finditer(text)]


def shared_begin(first: str, second: str) -> int:
    """Return how many characters two texts begin with in common."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))


def about(message: Message) -> dict[str, Any]:
    """Return what is known about a message."""
    found = parsed(message.about, "about") if message.about else {}
    return found if isinstance(found, dict) else {}


def texts_about(message: Message) -> Iterator[str]:
    """Yield what is said about a message and must be rendered; of results of tools nothing."""
    if message.role != "tool":
        yield from (text for key, text in about(message).items() if key not in UNSAID)


def as_turn(message: Message, blank: str | None, number: int | None = None) -> dict[str, Any]:
    """Return a message as templates read it, with the marks of its parts if it has a number."""

    def marked(text: str, part: str) -> str:
        if number is None or not text.strip():
            return text
        mark = str(number * len(MARKED_PARTS) + MARKED_PARTS.index(part)).translate(DIGITS)
        end = len(text.rstrip())
        return f"{text[:end]}{ADDED}{mark}{ADDED}{text[end:]}"

    is_blank = message.tool_calls and not message.content.strip()
    turn: dict[str, Any] = {
        "role": message.role,
        "content": blank if is_blank else marked(message.content, "content"),
    }
    if message.reasoning:
        turn |= dict.fromkeys(REASONING_KEYS, marked(message.reasoning, "reasoning"))
    turn |= {key: each for key, each in about(message).items() if key != LEARNED}
    if message.tool_calls:
        calls = [as_call(call) for call in parsed(message.tool_calls, "tool_calls")]
        last = calls[-1]["function"]
        last["name"] = marked(last["name"], "tool_calls")
        turn["tool_calls"] = calls
    return turn


def as_call(call: dict[str, Any]) -> dict[str, Any]:
    """Return a call of a tool, with arguments that are an object and JSON text at once."""
    function = dict(call["function"])
    given = function["arguments"]
    values = given
    if isinstance(given, str):
        with suppress(ValueError, RecursionError):
            values = json.loads(given)
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    function["arguments"] = Arguments(values, text) if isinstance(values, dict) else given
    return {**call, "function": function}


def json_of(messages: Sequence[Message], kind: str) -> Any:
    """Return the tools or the options before the messages, None if there are none."""
    return next((parsed(each.content, kind) for each in messages if each.role == kind), None)


def parsed(text: str, name: str) -> Any:
    """Return the value of a JSON text; TemplateRefusal if filters left none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TemplateRefusal(f"filters left `{name}` that is no JSON: {error}") from error


def take_marks(text: str) -> Marked:
    """Take the marks out of a text, and return where they were."""
    parts, size, first = list[str](), 0, 0
    spans, places = list[Span](), dict[int, dict[str, int]]()
    for number, piece in enumerate(text.split(ADDED)):
        if number % 2:
            message, place = divmod(int(piece.translate(FROM_DIGITS)), len(MARKED_PARTS))
            places.setdefault(message, {}).setdefault(MARKED_PARTS[place], size)
            continue
        for part in GENERATED.split(piece) if OPEN in piece or CLOSE in piece else [piece]:
            if part == OPEN:
                first = size
            elif part == CLOSE:
                spans.append((first, size))
            else:
                parts.append(part)
                size += len(part)
    return Marked("".join(parts), spans, places)


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
