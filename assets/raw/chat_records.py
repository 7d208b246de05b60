"""Conversations in records: their text, and what of the messages is no text.

    {"messages": [{"role": "user", "content": "..."}, ...]}          OpenAI's form, and TRL's
    {"conversations": [{"from": "human", "value": "..."}, ...]}      ShareGPT's, text_field: ...

Beside the messages a record may have a system prompt, which becomes the first message, and a list
of tools, which the chat template gets. A key that would change what a model sees or learns (tool
calls, weights, images) and that the text cannot say makes the record bad: to leave it out would
teach something else. Other keys go to `meta`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import msgspec

from assets.text.chat_messages import (
    ASSISTANT,
    ROLES,
    TOOLS,
    ChatError,
    Message,
    join_messages,
)

SHAREGPT_ROLES = {"human": "user", "gpt": "assistant"}
FORMS = (("role", "content"), ("from", "value"))
MEDIA = ("image", "images", "audio", "audios", "video", "videos")
CALLS = ("tool_calls", "function_call")
UNSPOKEN = (*CALLS, "reasoning_content", "thinking", "weight", "train", *MEDIA)
SYSTEM_KEYS = ("system", "system_prompt", "system_message")
TOOL_KEYS = ("tools", "functions")
UNSPOKEN_BESIDE = (*CALLS, "documents", "chat_template_kwargs", *MEDIA)  # beside the messages
SPOKEN_BESIDE = (*SYSTEM_KEYS, *TOOL_KEYS, *UNSPOKEN_BESIDE)
USUAL: tuple[object, ...] = (
    None,
    "",
    [],
    {},
    1,
    True,
)  # values that say the same as a key that is left out


def chat_text(fields: Mapping[str, object], field: str) -> tuple[str, dict[str, object]]:
    """Return the text of a conversation, and the fields that it does not say.

    Of the messages, in `field`, these are the other keys, if there are any. Raises ChatError if the
    field is no list of messages or its JSON text, if a message has another role than ROLES or no
    text, if none is the assistant's, and if something else in the record cannot be rendered.
    """
    found = [
        read_message(each, f"$.{field}[{i}]")
        for i, each in enumerate(listed(fields.get(field), field, "messages"))
    ]
    messages = [message for message, _ in found]
    if not any(message.role == ASSISTANT for message in messages):
        raise ChatError(f"chat has no assistant's message: nothing is learned - at `$.{field}`")
    beside = [key for key in UNSPOKEN_BESIDE if key != field and fields.get(key) not in USUAL]
    if beside:
        raise ChatError(f"chat has `{beside[0]}`, which no text holds - at `$.{beside[0]}`")
    before = [*read_tools(fields, field), *read_system(fields, field, messages)]
    others = [other for _, other in found]
    said = (field, *SYSTEM_KEYS, *TOOL_KEYS)
    rest = {key: value for key, value in fields.items() if key not in said}
    try:
        text = join_messages([*before, *messages])
    except ChatError as error:
        raise ChatError(str(error).replace("`$[", f"`$.{field}[")) from None
    return text, rest | ({field: others} if any(others) else {})


def read_system(
    fields: Mapping[str, object], field: str, messages: Sequence[Message]
) -> list[Message]:
    """Return the system prompt beside the messages, none if one of them says the same."""
    given = [key for key in SYSTEM_KEYS if key != field and fields.get(key) not in USUAL]
    for key in given:
        if not isinstance(fields[key], str):
            kind = type(fields[key]).__name__
            raise ChatError(f"chat `{key}` is {kind}, expected a string - at `$.{key}`")
    said = {m.content.strip() for m in messages if m.role in ("system", "developer")}
    prompts = {text for key in given if (text := str(fields[key])).strip()}
    new = sorted(text for text in prompts if text.strip() not in said)
    if len(new) > 1 or (new and said):
        raise ChatError(
            f"chat has more than one system prompt, beside `{given[0]}` another one - at "
            f"`$.{given[0]}`"
        )
    return [Message("system", text) for text in new]


def read_tools(fields: Mapping[str, object], field: str) -> list[Message]:
    """Return the list of tools beside the messages as JSON text, none if there is no tool.

    OpenAI's older `functions` are put into the form of `tools`.
    """
    given = [key for key in TOOL_KEYS if key != field and fields.get(key) not in USUAL]
    if not given:
        return []
    if len(given) > 1:
        raise ChatError(f"chat has `{given[0]}` and `{given[1]}` - at `$.{given[1]}`")
    key = given[0]
    value = fields[key]
    if isinstance(value, str) and not value.strip():
        return []
    tools = listed(value, key, "tools", may_be_empty=True)
    if not all(isinstance(tool, Mapping) for tool in tools):
        raise ChatError(f"chat `{key}` has a tool that is no object - at `$.{key}`")
    if key == "functions":
        tools = [{"type": "function", "function": tool} for tool in tools]
    if not tools:
        return []
    text = json.dumps(tools, ensure_ascii=False, separators=(",", ":"), default=str)
    return [Message(TOOLS, text)]


def listed(value: object, field: str, content: str, *, may_be_empty: bool = False) -> list[object]:
    """Return the list of a field; ChatError if it is none, or empty."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError as error:
            raise ChatError(
                f"chat `{field}` is no list of {content} ({error}) - at `$.{field}`"
            ) from None
    if not isinstance(value, list):
        kind = "null" if value is None else type(value).__name__
        raise ChatError(f"chat `{field}` is {kind}, expected a list of {content} - at `$.{field}`")
    if not value and not may_be_empty:
        raise ChatError(f"chat has no {content} - at `$.{field}`")
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
