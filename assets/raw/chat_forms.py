"""Forms in which conversations are published, each read into the same messages.

A list of messages is that of OpenAI or ShareGPT, with the roles and parts of content of their
relatives (ROLE_NAMES, FORMS); texts that alternate, as of UltraChat and LIMA; questions with their
answers, as of Capybara; a tree of replies, as of OASST, of which the best path is read; or one text
(chat_transcripts.py). `as_messages` brings all of them into objects with a role and a content, and
`read_message` reads those.

Every key of a message is rendered (SPOKEN), or obeyed as its weight in the loss (MARKS), or
harmless (HARMLESS), or makes the record bad: it may be part of what a model sees, or a mask, and to
leave it out would teach something else. Images and other media are refused by their name.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeGuard

import msgspec

from assets.raw.chat_transcripts import transcript_messages
from assets.text.chat_messages import (
    ASSISTANT,
    LEARNED,
    REASONING_KEYS,
    ROLES,
    ChatError,
    Message,
)

ROLE_NAMES = {role: role for role in ROLES} | {
    **dict.fromkeys(("human", "prompter"), "user"),
    **dict.fromkeys(("gpt", "model", "bot", "chatbot", "chatgpt"), ASSISTANT),
    **dict.fromkeys(("function_call", "tool_call"), ASSISTANT),
    **dict.fromkeys(("observation", "function", "ipython"), "tool"),
    **dict.fromkeys(("tool_response", "function_response", "tool_result"), "tool"),
}
CALLING = ("function_call", "tool_call")  # roles whose content is the JSON of a call
FORMS = (
    *(("role", "content"), ("from", "value"), ("role", "value")),
    *(("role", "parts"), ("role", "text"), ("role", "message")),
)
PAIRS = (  # keys of a question and its answer
    *(("input", "output"), ("instruction", "output"), ("human", "assistant")),
    *(("user", "assistant"), ("question", "answer"), ("prompt", "response")),
)
CALLS = ("tool_calls", "function_call")
TOLD = ("name", "tool_call_id", "channel", "recipient", "tool_plan")  # texts for the template
SPOKEN = {ASSISTANT: (*REASONING_KEYS, *CALLS, *TOLD), "tool": TOLD[:2]}  # of others `name` only
# 1, true: learned; else the weight in the loss
MARKS = ("loss", "loss_weight", "train", "trainable", "training", "weight")
HARMLESS = frozenset(  # keys of a message that neither a template nor a trainer reads
    (
        *("id", "uuid", "message_id", "parent_id", "conversation_id", "user_id"),
        *("index", "idx", "turn", "turn_id", "turn_identifier"),
        *("timestamp", "date", "time", "created", "created_at", "create_time"),
        *("updated_at", "update_time", "model", "model_name", "source", "url"),
        *("lang", "language", "num_tokens", "token_count"),
        *("country", "state", "header", "hashed_ip", "redacted", "toxic"),  # of WildChat
    )
)
NOTHING: tuple[object, ...] = (None, "", [], {})  # says the same as a key that is left out
WORD_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
QUOTED_CALL = re.compile(  # as of Glaive, which is no JSON
    r"""\{\s*"name":\s*"([^"\\]+)",\s*"arguments":\s*'(.*)'\s*\}""", re.DOTALL
)

Fields = Mapping[str, object]


@dataclass
class Content:
    """What the parts of a content say, and the calls and results of tools among them."""

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[dict[str, object]] = field(default_factory=list)
    results: list[Message] = field(default_factory=list)


def as_messages(value: object, name: str) -> list[object]:
    """Return the messages of a field as a list, whatever its form; ChatError if it has none."""
    if isinstance(value, Mapping) and "replies" in value:
        return [*best_path(value)]
    if isinstance(value, str) and (said := transcript_messages(value, name)):
        return said
    given = listed(value, name, "messages")
    if len(given) > 1 and all(isinstance(each, str) for each in given):
        return [
            {"role": ("user", ASSISTANT)[number % 2], "content": text}
            for number, text in enumerate(given)
        ]
    first = given[0]
    keys = set(first) if isinstance(first, Mapping) else set()
    pair = next((pair for pair in PAIRS if {*pair} <= keys), None)
    if pair and not keys & {"role", "from"}:
        return [message for each in given for message in asked_and_answered(each, pair, name)]
    return given


def asked_and_answered(each: object, pair: tuple[str, str], name: str) -> list[dict[str, object]]:
    """Return a question and its answer, of an object or a list of two, as messages."""
    if isinstance(each, Sequence) and not isinstance(each, str) and len(each) == 2:
        each = dict(zip(pair, each, strict=True))
    if not isinstance(each, Mapping) or not {*pair} <= set(each):
        raise ChatError(f"chat `{name}` has no question with its answer - at `$.{name}`")
    others = {key: said for key, said in each.items() if key not in pair}
    question, answer = (each[key] for key in pair)
    return [
        {"role": "user", "content": question, **others},
        {"role": ASSISTANT, "content": answer},
    ]


def best_path(tree: Fields) -> list[dict[str, object]]:
    """Return the messages of a tree of replies: of each the best by rank that is not deleted.

    The path ends at an answer. As of OASST: https://arxiv.org/abs/2304.07327, section 2.
    """
    path = list[dict[str, object]]()
    node: object = tree
    while isinstance(node, Mapping):
        path.append(
            {"role": node.get("role"), "content": node.get("text"), "id": node.get("message_id")}
        )
        replies = node.get("replies")
        kept = [
            each
            for each in (replies if isinstance(replies, list) else ())
            if isinstance(each, Mapping) and not each.get("deleted")
        ]
        node = min(kept, key=rank_of, default=None)
    while path and ROLE_NAMES.get(str(path[-1]["role"])) != ASSISTANT:
        path.pop()
    return path


def rank_of(reply: Fields) -> float:
    """Return the rank of a reply, 0 for the best; those without one come last."""
    rank = reply.get("rank")
    return rank if isinstance(rank, int) else math.inf


def read_message(value: object, place: str) -> tuple[list[Message], dict[str, object]]:
    """Return a message and its other keys that are not null; ChatError if it is not usable.

    It is several messages if its content has several results of tools, and none if it is a blank
    system prompt.
    """
    if not isinstance(value, Mapping):
        raise ChatError(f"chat message is no object - at `{place}`")
    role_key, text_key = form_of(value)
    named, content = value.get(role_key), value.get(text_key)
    spelling = named.lower() if isinstance(named, str) else ""
    role = ROLE_NAMES.get(spelling)
    if role is None:
        raise ChatError(
            f"chat role {named!r} is none of {', '.join(ROLE_NAMES)} - at `{place}.{role_key}`"
        )
    own = (role_key, text_key)
    others = {str(key): each for key, each in value.items() if key not in own and each is not None}
    spoken = {key: others.pop(key) for key in SPOKEN.get(role, TOLD[:1]) if key in others}
    about = told(spoken, place) | as_learned(weight_of(others, role, place))
    if spelling in CALLING:
        said = Content(calls=read_calls(content, f"{place}.{text_key}"))
    else:
        said = read_content(
            content, f"{place}.{text_key}", blank=any(key in spoken for key in CALLS)
        )
    for key in CALLS:
        said.calls += read_calls(spoken.get(key), f"{place}.{key}")
    text, reasoning = "\n".join(said.texts), reasoning_of(spoken, said.thoughts, place)
    if role == "system" and not text.strip() and not others:
        return [], others
    is_said = bool(text.strip() or said.calls or role == "tool")
    if not is_said and not said.results:
        raise ChatError(f"chat content is blank - at `{place}.{text_key}`")
    calls = as_json(said.calls) if said.calls else ""
    message = Message(role, text, reasoning, calls, as_json(about) if about else "")
    return [*said.results, *([message] if is_said else [])], others


def form_of(value: Fields) -> tuple[str, str]:
    """Return the keys of the role and of the text of a message."""
    whole = (form for form in FORMS if {*form} <= {*value})
    with_role = (form for form in FORMS if value.get(form[0]) is not None)
    return next(whole, None) or next(with_role, FORMS[0])


def told(spoken: Fields, place: str) -> dict[str, object]:
    """Return what a template is told about a message; ChatError if it is no text."""
    said = {key: spoken[key] for key in TOLD if spoken.get(key) not in NOTHING}
    texts = {key: spoken[key] for key in REASONING_KEYS if spoken.get(key) not in NOTHING}
    for key, each in (said | texts).items():
        if not isinstance(each, str):
            raise ChatError(
                f"chat message has `{key}` as {type(each).__name__}, expected a string - at "
                f"`{place}.{key}`"
            )
    return said


def reasoning_of(spoken: Fields, thoughts: Sequence[str], place: str) -> str:
    """Return the reasoning of a message, "" for none; ChatError if two differ."""
    given = [*(str(spoken[key]) for key in REASONING_KEYS if key in spoken), "\n".join(thoughts)]
    by_content = {each.strip(): each for each in given if each.strip()}
    if len(by_content) > 1:
        raise ChatError(f"chat message has two forms of its reasoning - at `{place}`")
    return next(iter(by_content.values()), "")


def weight_of(others: Fields, role: str, place: str) -> float:
    """Return the product of the marks, 1 for none; ChatError for a key that no text holds."""
    weights = [1.0]
    for key, each in others.items():
        if key in MARKS and is_weight(each) and (role == ASSISTANT or each == 0):
            weights.append(float(each))
        elif each not in NOTHING and in_words(key) not in HARMLESS:
            raise ChatError(f"chat message has `{key:.60}`, which no text holds - at `{place}`")
    return math.prod(weights) if role == ASSISTANT else 1.0  # 0 of others says what holds anyway


def is_weight(value: object) -> TypeGuard[float]:
    """Return whether a mark is true, false, or a weight in the loss in hundredths up to 2.55."""
    return isinstance(value, int | float) and 0 <= value <= 2.55 and round(value, 2) == value


def as_learned(weight: float) -> dict[str, object]:
    """Return what is known about a message with a weight in the loss; nothing if it is 1."""
    return {} if weight == 1 else {LEARNED: round(weight, 2) or False}


def in_words(key: str) -> str:
    """Return a key in lower case, with `_` between its words."""
    return WORD_BORDER.sub("_", key).lower()


def read_content(content: object, place: str, *, blank: bool = False) -> Content:
    """Return what a content says, a text or a list of parts; null counts as blank text.

    ChatError for parts that are no text, and for null if it may not be `blank`.
    """
    said = Content()
    if isinstance(content, str):
        said.texts.append(content)
        return said
    if not isinstance(content, list):
        if content is None and blank:
            return said
        kind = "null" if content is None else type(content).__name__
        raise ChatError(f"chat content is {kind}, expected a string - at `{place}`")
    for number, part in enumerate(content):
        add_part(said, {"text": part} if isinstance(part, str) else part, f"{place}[{number}]")
    return said


def add_part(said: Content, part: object, place: str) -> None:
    """Add a part of a content, of OpenAI's, Anthropic's or Gemini's form."""
    if not isinstance(part, Mapping):
        raise ChatError(f"chat content has a part that is no object - at `{place}`")
    kind = part.get("type", "text" if "text" in part else next(iter(part), None))
    if kind in ("text", "input_text", "output_text") and isinstance(part.get("text"), str):
        said.texts.append(str(part["text"]))
    elif kind in ("thinking", "reasoning") and isinstance(part.get(str(kind)), str):
        said.thoughts.append(str(part[kind]))
    elif kind == "tool_use":
        call = {"name": part.get("name"), "arguments": part.get("input"), "id": part.get("id")}
        said.calls += read_calls([call], place)
    elif kind == "tool_result":
        inner = read_content(part.get("content"), f"{place}.content", blank=True)
        about = as_json({"tool_call_id": part["tool_use_id"]}) if "tool_use_id" in part else ""
        said.results.append(Message("tool", "\n".join(inner.texts), about=about))
    else:
        raise ChatError(
            f"chat content has a part of type {kind!r}, which is no text - at `{place}`"
        )


def read_calls(value: object, place: str) -> list[dict[str, object]]:
    """Return calls of tools in OpenAI's form; their JSON text, one call, or functions also do."""
    if isinstance(value, str) and (quoted := QUOTED_CALL.fullmatch(value)):
        value = {"name": quoted[1], "arguments": unquoted_arguments(quoted[2], place)}
    elif isinstance(value, str) and value.strip():
        value = decoded(value, place, "calls of tools")
    given = [value] if isinstance(value, Mapping) else value
    if given in NOTHING:
        return []
    if not isinstance(given, list):
        raise ChatError(f"chat calls of tools are {type(value).__name__} - at `{place}`")
    return [read_call(each, f"{place}[{number}]") for number, each in enumerate(given)]


def read_call(call: object, place: str) -> dict[str, object]:
    """Return one call in OpenAI's form; ChatError if it is none, or says more."""
    function = call.get("function", call) if isinstance(call, Mapping) else None
    if not isinstance(call, Mapping) or not isinstance(function, Mapping):
        raise ChatError(f"chat call of a tool is no object - at `{place}`")
    name, arguments = function.get("name"), function.get("arguments")
    known = ("id", "type", "function", "index", "name", "arguments")
    more = [
        key
        for key, each in {**function, **call}.items()
        if key not in known and each not in NOTHING
    ]
    if not isinstance(name, str) or not name.strip() or call.get("type", "function") != "function":
        raise ChatError(f"chat call of a tool names no function - at `{place}`")
    if more or not isinstance(arguments, str | Mapping | None):
        said = f"`{more[0]:.60}`" if more else f"arguments that are {type(arguments).__name__}"
        raise ChatError(f"chat call of a tool has {said}, which no text holds - at `{place}`")
    called: dict[str, object] = {"name": name, "arguments": arguments or {}}
    named = {"id": call["id"]} if isinstance(call.get("id"), str) else {}
    return {**named, "type": "function", "function": called}


def unquoted_arguments(text: str, place: str) -> str:
    """Return the JSON text of arguments in single quotes; ChatError if they are none.

    Within the quotes an apostrophe may have a backslash, which JSON does not know.
    """
    for each in (text, text.replace("\\'", "'")):
        with suppress(msgspec.DecodeError, RecursionError):
            if isinstance(msgspec.json.decode(each), dict):
                return each
    raise ChatError(f"chat call of a tool has arguments that are no JSON object - at `{place}`")


def listed(value: object, name: str, content: str, *, may_be_empty: bool = False) -> list[object]:
    """Return the list of a field; ChatError if it is none, or empty."""
    if isinstance(value, str):
        value = decoded(value, f"$.{name}", content, f"`{name}` is no list of {content}")
    if not isinstance(value, list):
        kind = "null" if value is None else type(value).__name__
        raise ChatError(f"chat `{name}` is {kind}, expected a list of {content} - at `$.{name}`")
    if not value and not may_be_empty:
        raise ChatError(f"chat has no {content} - at `$.{name}`")
    return value


def decoded(text: str, place: str, content: str, said: str | None = None) -> object:
    """Return the value of a JSON text; ChatError if it is none."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ChatError(
            f"chat {said or f'{content} are no JSON'} ({error}) - at `{place}`"
        ) from None


def as_json(value: object) -> str:
    """Return a value as JSON text without blanks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
