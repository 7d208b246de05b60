"""Messages of a conversation as one text, in which the borders of messages survive every edit.

A message is one character that says its role, then its content; messages are joined by a line end:

    U+FDD1 What is a part?
    U+FDD2 A bounded slice of one source.

The characters U+FDD0 to U+FDEF are noncharacters, which Unicode keeps for the inside of programs.
A record that holds one is refused, so that no content can begin a message. They are no letters and
no white space, and nothing that changes single characters or spans between them moves one. The
character stands in the first line of its message and not in a line of its own, which the rules on
repeated lines would count. The tools that a conversation may call come first, as JSON text behind a
character of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

import polars as pl

ROLES = ("system", "user", "assistant", "tool", "developer")
ASSISTANT = "assistant"
TOOLS = "tools"  # no role: the list of tools before all messages
FIRST_MARK = 0xFDD0
MARK_OF = {role: chr(FIRST_MARK + number) for number, role in enumerate((*ROLES, TOOLS))}
ROLE_OF = {mark: role for role, mark in MARK_OF.items()}
MARKS = f"{chr(FIRST_MARK)}-{chr(FIRST_MARK + len(ROLES))}"
RESERVED = re.compile("[\ufdd0-\ufdef]")
CONTENT = re.compile(f"([{MARKS}])([^{MARKS}]*)")
WHOLE_MESSAGE = rf"[{MARKS}][^{MARKS}]*"


class Message(NamedTuple):
    """A message of a conversation: one of ROLES, or TOOLS, and its text."""

    role: str
    content: str


class ChatError(ValueError):
    """Error of a conversation that is not usable; the message says which part of it and why."""


def join_messages(messages: Iterable[Message]) -> str:
    """Return the text of a conversation; ChatError if a role or a character is not allowed."""
    parts = []
    for number, message in enumerate(messages):
        if message.role not in MARK_OF:
            raise ChatError(
                f"chat role {message.role!r} is none of {', '.join(ROLES)} - at `$[{number}]`"
            )
        if found := RESERVED.search(message.content):
            raise ChatError(
                f"chat content has U+{ord(found[0]):04X}, a noncharacter that begins messages - "
                f"at `$[{number}]`"
            )
        parts.append(MARK_OF[message.role] + message.content)
    return "\n".join(parts)


def split_messages(text: str) -> list[Message]:
    """Return the messages of a text, as `join_messages` made it and filters changed it.

    ChatError if it does not begin with a role.
    """
    if text[:1] not in ROLE_OF:
        raise ChatError("chat text does not begin with the character of a role")
    found = [Message(ROLE_OF[mark], content) for mark, content in CONTENT.findall(text)]
    ended = (Message(role, content.removesuffix("\n")) for role, content in found[:-1])
    return [*ended, found[-1]]


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
