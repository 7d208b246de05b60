"""Messages as templates read them, and the marks that show where a text says them.

A mark stands at the end of each content, reasoning and last name of a called tool. It is made of
noncharacters, which no content has (chat_messages.py) and no template reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from assets.text.chat_messages import LEARNED, REASONING_KEYS, Message
from assets.tokenized.chat_templates import CLOSE, OPEN, TemplateRefusal

ADDED = "\ufde4"  # around the number of a mark, in digits of their own, which no template reads
DIGITS = {ord(str(digit)): 0xFDE5 + digit for digit in range(10)}
FROM_DIGITS = {mark: digit for digit, mark in DIGITS.items()}
GENERATED = re.compile(f"([{OPEN}{CLOSE}])")
MARKED_PARTS = ("reasoning", "content", "tool_calls")  # of a message, in the order of numbers
Span = tuple[int, int]


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


def about(message: Message) -> dict[str, Any]:
    """Return what is known about a message."""
    found = parsed(message.about, "about") if message.about else {}
    return found if isinstance(found, dict) else {}


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
