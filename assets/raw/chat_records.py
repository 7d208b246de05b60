"""Conversations in records: their text, and what of the messages is no text.

    {"messages": [{"role": "user", "content": "..."}, ...]}          OpenAI's form, and TRL's
    {"conversations": [{"from": "human", "value": "..."}, ...]}      ShareGPT's, text_field: ...
    {"instruction": "...", "input": "...", "output": "..."}          Alpaca's, text_field: output

Beside the messages a record may have a system prompt, which becomes the first message, a list of
tools, which the chat template gets, and as `prompt` the messages before an answer. Every other key
of a message is harmless (HARMLESS), or says what is so without it, or makes the record bad: it may
be a mask, or part of what a model sees, and to leave it out would teach something else. So does a
key of the record that looks like a mask, tools or a prompt; its other keys go to `meta`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Mapping, Sequence

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
SYSTEM_KEYS = ("system", "system_prompt", "system_message", "system_instruction")
TOOL_KEYS = ("tools", "functions")
PROMPT = "prompt"
QUESTIONS = ("instruction", PROMPT, "question", "query", "problem", "inputs")  # a text answers
TOPICS = ("input", "context")  # what such a question is about, as of Alpaca and of Dolly
MARKS = ("loss", "loss_weight", "train", "trainable", "training", "weight")  # 1, true: learned
MEDIA = ("image", "images", "audio", "audios", "video", "videos")
UNSPOKEN_BESIDE = (*MEDIA, "chat_template_kwargs")
LIKE_A_MASK = re.compile(
    r"(^|_)(masks?|masked|loss|losses|weights?|labels?)(_|$)"
    r"|^(is_)?(train|trained|trainable|training|learn|learned|learnable)(_|$)"
)
LIKE_A_PROMPT = re.compile(
    r"(^|_)(tools?|functions?|prompts?|system|instructions?|developer|history|context|documents?)"
    r"(_|$)"
)
WORD_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
ABOUT = re.compile(
    r"_(ids?|key|hash|fingerprint|names?|type|source|split|length|tokens|language|version)$"
)
NOTHING: tuple[object, ...] = (None, "", [], {})  # says the same as a key that is left out


def chat_text(fields: Mapping[str, object], field: str) -> tuple[str, dict[str, object]]:
    """Return the text of a conversation, and the fields that it does not say.

    Of the messages, in `field`, these are the other keys, if there are any. Raises ChatError if the
    field is no list of messages or its JSON text, nor the answer to a question, if a message has
    another role than ROLES or no text, if none is the assistant's, and if something else in the
    record cannot be rendered.
    """
    answered = answered_by(fields, field)
    if answered:
        question = "\n\n".join(answered.values())
        messages = [Message("user", question), Message(ASSISTANT, str(fields[field]))]
        others = list[dict[str, object]]()
        fields = {key: value for key, value in fields.items() if key not in answered}
    else:
        messages, others = read_messages(fields.get(field), field)
    if not any(message.role == ASSISTANT for message in messages):
        raise ChatError(f"chat has no assistant's message: nothing is learned - at `$.{field}`")
    prompt, of_prompt = read_prompt(fields, field, messages)
    tools = read_tools(fields, field)
    system = read_system(fields, field, [*prompt, *messages])
    check_beside(fields, field, [*system, *prompt, *messages])
    said = (field, *SYSTEM_KEYS, *TOOL_KEYS, *([PROMPT] if prompt else []))
    rest = {key: value for key, value in fields.items() if key not in said}
    try:
        text = join_messages([*tools, *system, *prompt, *messages])
    except ChatError as error:
        raise ChatError(str(error).replace("`$[", f"`$.{field}[")) from None
    kept = ((PROMPT, of_prompt), (field, others))
    return text, rest | {key: each for key, each in kept if any(each)}


def answered_by(fields: Mapping[str, object], field: str) -> dict[str, str]:
    """Return the texts that a text answers, a question and what it is about; {} if it is none."""
    texts = {
        key: value for key, value in fields.items() if isinstance(value, str) and value.strip()
    }
    if field not in texts or texts[field].startswith("[{"):  # the JSON text of messages
        return {}
    asked = [key for key in QUESTIONS if key in texts and key != field][:1]
    about = [key for key in TOPICS if key in texts and key != field] if asked else []
    return {key: texts[key] for key in (*asked, *about)}


def read_messages(value: object, field: str) -> tuple[list[Message], list[dict[str, object]]]:
    """Return the messages of a field, and the other keys of each; ChatError as of `chat_text`."""
    given = listed(value, field, "messages")
    found = [read_message(each, f"$.{field}[{i}]") for i, each in enumerate(given)]
    return [message for message, _ in found], [others for _, others in found]


def read_prompt(
    fields: Mapping[str, object], field: str, messages: Sequence[Message]
) -> tuple[list[Message], list[dict[str, object]]]:
    """Return the messages of `prompt` before an answer, and their other keys; none if said there.

    One with answers of its own is refused: they are no part of what is to be learned.
    """
    given = fields.get(PROMPT)
    if field == PROMPT or not isinstance(given, list) or not given:
        return [], []
    prompt, others = read_messages(given, PROMPT)
    if [*messages[: len(prompt)]] == prompt:
        return [], []
    if messages[0].role != ASSISTANT or any(message.role == ASSISTANT for message in prompt):
        raise ChatError(f"chat has `{PROMPT}`, which is no question to `{field}` - at `$.{PROMPT}`")
    return prompt, others


def check_beside(fields: Mapping[str, object], field: str, messages: Sequence[Message]) -> None:
    """Raise ChatError for a key beside the messages that would change what is seen or learned."""
    contents = {"", *(message.content.strip() for message in messages)}
    read = (field, field.partition(".")[0], *SYSTEM_KEYS, *TOOL_KEYS)
    for key, value in fields.items():
        is_read = key in read or (key == PROMPT and isinstance(value, list))
        if not is_read and value not in NOTHING and is_unsaid(key, value, contents):
            raise ChatError(f"chat has `{key:.60}`, which no text holds - at `$.{key:.60}`")


def is_unsaid(key: str, value: object, contents: Container[str]) -> bool:
    """Return whether a key looks like a mask, tools or a prompt, and says what no message does."""
    name = in_words(key)
    if name in UNSPOKEN_BESIDE:
        return True
    if ABOUT.search(name):
        return False
    if LIKE_A_MASK.search(name):
        return name not in (*MARKS, "label") or value != 1
    if isinstance(value, int | float) or not LIKE_A_PROMPT.search(name):
        return False
    return not (isinstance(value, str) and value.strip() in contents)


def in_words(key: str) -> str:
    """Return a key in lower case, with `_` between its words."""
    return WORD_BORDER.sub("_", key).lower()


def read_system(
    fields: Mapping[str, object], field: str, messages: Sequence[Message]
) -> list[Message]:
    """Return the system prompt beside the messages, none if one of them says the same."""
    given = [key for key in SYSTEM_KEYS if key != field and fields.get(key) not in NOTHING]
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
    given = [key for key in TOOL_KEYS if key != field and fields.get(key) not in NOTHING]
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
    own = (role_key, text_key)
    others = {str(key): each for key, each in value.items() if key not in own and each is not None}
    for key, each in others.items():
        is_mark = key in MARKS and each == (role == ASSISTANT)  # says what is so without it
        if not (is_mark or each in NOTHING or in_words(key) in HARMLESS):
            raise ChatError(f"chat message has `{key:.60}`, which no text holds - at `{place}`")
    if not isinstance(content, str):
        kind = "null" if content is None else type(content).__name__
        raise ChatError(f"chat content is {kind}, expected a string - at `{place}.{text_key}`")
    if not content.strip():
        raise ChatError(f"chat content is blank - at `{place}.{text_key}`")
    return Message(str(role), content), others
