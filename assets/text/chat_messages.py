"""Messages of a conversation as one text, in which the borders of messages survive every edit.

A message is one character that says its role, then its content; messages are joined by a line end:

    U+FDD1 What is a part?
    U+FDD2 A bounded slice of one source.
    U+FDD6 They ask for a definition.

What else a message has follows its content, each behind a character of its own: its reasoning, its
calls of tools, and what a template is told about it, such as the id of the call that it answers. Of
the conversation, the options of the template and the tools that may be called come first. All of
them but the reasoning are JSON.

The characters U+FDD0 to U+FDEF are noncharacters, which Unicode keeps for the inside of programs.
A record that holds one is refused, so that no content can begin a message. They are no letters and
no white space, and nothing that changes single characters or spans between them moves one. The
character stands in the first line of its message and not in a line of its own, which the rules on
repeated lines would count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

import polars as pl

ROLES = ("system", "user", "assistant", "tool", "developer")
ASSISTANT = "assistant"
TOOLS, OPTIONS = "tools", "options"  # no roles: before all messages
PARTS = ("reasoning", "tool_calls", "about")  # of a message, behind its content
LEARNED = "learned"  # a key of `about`: False if the message is not learned
REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")  # of records and of templates
KINDS = (*ROLES, TOOLS, *PARTS, OPTIONS)
FIRST_MARK = 0xFDD0
MARK_OF = {kind: chr(FIRST_MARK + number) for number, kind in enumerate(KINDS)}
KIND_OF = {mark: kind for kind, mark in MARK_OF.items()}
MARKS = f"{chr(FIRST_MARK)}-{chr(FIRST_MARK + len(KINDS) - 1)}"
RESERVED = re.compile("[\ufdd0-\ufdef]")
CONTENT = re.compile(f"([{MARKS}])([^{MARKS}]*)")
WHOLE_MESSAGE = rf"[{MARKS}][^{MARKS}]*"


class Message(NamedTuple):
    """A message of a conversation: one of ROLES, or TOOLS or OPTIONS, and its text.

    `tool_calls` is the JSON text of a list, `about` that of an object: the keys of a message that a
    template is told, such as `name` and `tool_call_id`, and `learned: false`. "" for none.
    """

    role: str
    content: str
    reasoning: str = ""
    tool_calls: str = ""
    about: str = ""


class ChatError(ValueError):
    """Error of a conversation that is not usable; the message says which part of it and why."""


def join_messages(messages: Iterable[Message]) -> str:
    """Return the text of a conversation; ChatError if a role or a character is not allowed."""
    parts = []
    for number, message in enumerate(messages):
        if message.role not in (*ROLES, TOOLS, OPTIONS):
            raise ChatError(
                f"chat role {message.role!r} is none of {', '.join(ROLES)} - at `$[{number}]`"
            )
        for kind, text in zip((message.role, *PARTS), message[1:], strict=True):
            if found := RESERVED.search(text):
                raise ChatError(
                    f"chat content has U+{ord(found[0]):04X}, a noncharacter that begins messages "
                    f"- at `$[{number}]`"
                )
            if text or kind == message.role:
                parts.append(MARK_OF[kind] + text)
    return "\n".join(parts)


def split_messages(text: str) -> list[Message]:
    """Return the messages of a text, as `join_messages` made it and filters changed it.

    ChatError if it does not begin with a role.
    """
    if KIND_OF.get(text[:1], PARTS[0]) in PARTS:
        raise ChatError("chat text does not begin with the character of a role")
    messages = list[Message]()
    for mark, content in CONTENT.findall(f"{text}\n"):
        kind, said = KIND_OF[mark], content.removesuffix("\n")
        if kind in PARTS:
            messages[-1] = messages[-1]._replace(**{kind: said})
        else:
            messages.append(Message(kind, said))
    return messages


def without_marks(texts: pl.Series) -> pl.Series:
    """Return the texts of conversations without the characters of roles."""
    return texts.str.replace_all(f"[{MARKS}]", "")


def change_messages(
    texts: pl.Series, change: Callable[[pl.Series], tuple[pl.Series, pl.DataFrame]]
) -> tuple[pl.Series, pl.DataFrame, pl.DataFrame]:
    """Apply a change of texts to each message by itself, so that it cannot reach over a border.

    `change` returns the changed contents and a table with a row for each. Returns the changed
    texts; that table; and for each of its rows `row` UInt32, the number of the text, and `first`
    Int64, the place of the content in it, in characters. A text without a role is one content.
    """
    split = pl.when(texts.str.contains(rf"\A[{MARKS}]")).then(texts.str.extract_all(WHOLE_MESSAGE))
    whole = pl.concat_list(texts)
    messages = (
        pl.select(message=split.otherwise(whole))
        .with_row_index("row")
        .explode("message", empty_as_null=False)
    )
    message, mark = pl.col("message"), pl.col("message").str.extract(rf"\A([{MARKS}])")
    messages = messages.with_columns(mark=mark.fill_null("")).with_columns(
        content=message.str.strip_prefix(pl.col("mark")),
        first=message.str.len_chars().cum_sum().over("row").cast(pl.Int64)
        - message.str.len_chars()
        + pl.col("mark").str.len_chars(),
    )
    changed, table = change(messages["content"])
    joined = (
        messages.with_columns(message=messages["mark"] + changed)
        .group_by("row", maintain_order=True)
        .agg(pl.col("message").str.join(""))
    )
    places = messages.select("row", pl.col("first").cast(pl.Int64))
    return joined["message"].alias(texts.name), table, places
