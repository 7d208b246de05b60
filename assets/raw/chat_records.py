"""Conversations in records: their text, and what of the messages is no text.

    {"messages": [{"role": "user", "content": "..."}, ...]}          OpenAI's form, and TRL's
    {"conversations": [{"from": "human", "value": "..."}, ...]}      ShareGPT's, text_field: ...

A key of a message that would change what a model sees or learns (tool calls, weights) and that the
text cannot say makes the record bad: to leave it out would teach something else. Other keys go to
`meta`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from assets.text.chat_messages import ASSISTANT, ROLES, ChatError, Message, join_messages

SHAREGPT_ROLES = {"human": "user", "gpt": "assistant"}
FORMS = (("role", "content"), ("from", "value"))
UNSPOKEN = (
    *("tool_calls", "function_call", "reasoning_content", "thinking"),
    *("weight", "train", "images", "audio"),
)
USUAL: tuple[object, ...] = (
    None,
    "",
    [],
    {},
    1,
    True,
)  # values that say the same as a key that is left out


def chat_text(value: object, field: str) -> tuple[str, list[dict[str, object]] | None]:
    """Return the text of a conversation, and the other keys of its messages, None if it has none.

    `value` is a list of messages, or its JSON text. Raises ChatError if it is not, if a message has
    another role than ROLES or no text, and if none is the assistant's.
    """
    found = [read_message(each, f"$.{field}[{i}]") for i, each in enumerate(listed(value, field))]
    messages = [message for message, _ in found]
    if not any(message.role == ASSISTANT for message in messages):
        raise ChatError(f"chat has no assistant's message: nothing is learned - at `$.{field}`")
    others = [other for _, other in found]
    try:
        return join_messages(messages), others if any(others) else None
    except ChatError as error:
        raise ChatError(str(error).replace("`$[", f"`$.{field}[")) from None


def listed(value: object, field: str) -> list[object]:
    """Return the messages of a field; ChatError if it is no list of them."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError as error:
            raise ChatError(f"chat is no list of messages ({error}) - at `$.{field}`") from None
    if not isinstance(value, list):
        kind = "null" if value is None else type(value).__name__
        raise ChatError(f"chat is {kind}, expected a list of messages - at `$.{field}`")
    if not value:
        raise ChatError(f"chat has no messages - at `$.{field}`")
    return value


def read_message(value: object, place: str) -> tuple[Message, dict[str, object]]:
    """Return a message and its other keys that are not null; ChatError if it is not usable."""
    if not isinstance(value, Mapping):
        raise ChatError(f"chat message is no object - at `{place}`")
    role_key, text_key = next((form for form in FORMS if value.get(form[0]) is not None), FORMS[0])
    role, content = value.get(role_key), value.get(text_key)
    role = SHAREGPT_ROLES.get(role, role) if isinstance(role, str) else role
    if role not in ROLES:
        known = ", ".join((*ROLES, *SHAREGPT_ROLES))
        raise ChatError(f"chat role {role!r} is none of {known} - at `{place}.{role_key}`")
    unspoken = [key for key in UNSPOKEN if value.get(key) not in USUAL]
    if unspoken:
        raise ChatError(f"chat message has `{unspoken[0]}`, which no text holds - at `{place}`")
    if not isinstance(content, str):
        kind = "null" if content is None else type(content).__name__
        raise ChatError(f"chat content is {kind}, expected a string - at `{place}.{text_key}`")
    if not content.strip():
        raise ChatError(f"chat content is blank - at `{place}.{text_key}`")
    own = (role_key, text_key)
    others = {str(key): each for key, each in value.items() if key not in own and each is not None}
    return Message(str(role), content), others
