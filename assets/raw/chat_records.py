"""Conversations in records: their text, and what of the messages is no text.

    {"messages": [{"role": "user", "content": "..."}, ...]}          OpenAI's form, and TRL's
    {"conversations": [{"from": "human", "value": "..."}, ...]}      ShareGPT's, text_field: ...
    {"instruction": "...", "input": "...", "output": "..."}          Alpaca's, text_field: output

The forms of a list of messages are in chat_forms.py. Beside the messages a record may have a system
prompt, which becomes the first message, tools and options, which the chat template gets, and the
messages before an answer. A key of the record that looks like a mask, tools or a prompt, and is
none of these, makes the record bad, since what is learned would be something else; its other keys
go to `meta`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Mapping, Sequence

from assets.raw.chat_forms import (
    MARKS,
    NOTHING,
    ROLE_NAMES,
    as_json,
    as_learned,
    as_messages,
    asked_and_answered,
    decoded,
    in_words,
    is_weight,
    listed,
    read_calls,
    read_content,
    read_message,
)
from assets.text.chat_messages import (
    ASSISTANT,
    LEARNED,
    OPTIONS,
    TOOLS,
    ChatError,
    Message,
    join_messages,
)

SYSTEM_KEYS = ("system", "system_prompt", "system_message", "system_instruction")
TOOL_KEYS = ("tools", "functions")
OPTIONS_KEY = "chat_template_kwargs"
PROMPTS = ("prompt", "input")  # messages before an answer in another field
HISTORY = "history"  # questions and answers before a question, as of Alpaca
QUESTIONS = ("instruction", "prompt", "question", "query", "problem", "inputs")  # a text answers
TOPICS = ("input", "context")  # what such a question is about, as of Alpaca and of Dolly
MEDIA = ("image", "images", "audio", "audios", "video", "videos")
GLAIVE = ("SYSTEM:", "USER:")  # which the system prompt and the messages of Glaive begin with
BETWEEN_FUNCTIONS = re.compile(r"(?<=\})\n\s*(?=\{)")
RESERVED_OPTIONS = ("messages", "tools", "documents", "add_generation_prompt")
LIKE_A_MASK = re.compile(
    r"(^|_)(masks?|masked|loss|losses|weights?|labels?)(_|$)"
    r"|^(is_)?(train|trained|trainable|training|learn|learned|learnable)(_|$)"
)
LIKE_A_PROMPT = re.compile(
    r"(^|_)(tools?|functions?|prompts?|system|instructions?|developer|history|context|documents?)"
    r"(_|$)"
)
ABOUT = re.compile(
    r"_(ids?|key|hash|fingerprint|names?|type|source|split|length|tokens|language|version)$"
)


def chat_text(fields: Mapping[str, object], field: str) -> tuple[str, dict[str, object]]:
    """Return the text of a conversation, and the fields that it does not say.

    Of the messages, in `field`, these are the other keys, if there are any. Raises ChatError if the
    field is no conversation of a known form, nor the answer to a question, if a message has another
    role than ROLE_NAMES or no text, if none is the assistant's, and if something else in the record
    cannot be rendered.
    """
    answer, asked = answer_of(fields, field)
    messages, others = read_messages(answer or as_messages(fields.get(field), field), field)
    fields = with_tools({key: fields[key] for key in fields if key not in asked}, field)
    if not any(message.role == ASSISTANT for message in messages):
        raise ChatError(f"chat has no assistant's message: nothing is learned - at `$.{field}`")
    if weights := [value for key in MARKS if is_weight(value := fields.get(key)) and value]:
        messages = [weighted(message, math.prod(weights)) for message in messages]
    before, prompt, of_prompt = read_prompt(fields, field, messages)
    system = read_system(fields, field, [*prompt, *messages])
    tools = read_tools(fields, field, [*system, *prompt, *messages])
    check_beside(fields, field, [*system, *prompt, *messages])
    said = (field, *SYSTEM_KEYS, *TOOL_KEYS, OPTIONS_KEY, *([before] if prompt else []))
    rest = {key: value for key, value in fields.items() if key not in said}
    try:
        text = join_messages([*read_options(fields), *tools, *system, *prompt, *messages])
    except ChatError as error:
        raise ChatError(str(error).replace("`$[", f"`$.{field}[")) from None
    kept = ((before, of_prompt), (field, others))
    return text, rest | {key: each for key, each in kept if any(each)}


def weighted(message: Message, weight: float) -> Message:
    """Return a message of the assistant's with its weight in the loss times another one."""
    if message.role != ASSISTANT or weight == 1:
        return message
    about = decoded(message.about or "{}", "$", "object")
    assert isinstance(about, dict), "it was written here"
    about |= as_learned(float(about.pop(LEARNED, 1)) * weight)
    return message._replace(about=as_json(about) if about else "")


def answer_of(fields: Mapping[str, object], field: str) -> tuple[list[object], list[str]]:
    """Return the messages of a text that answers others, and the keys of those.

    They are a question, what it is about, and what was said before, or messages in PROMPTS, which
    stay a field of their own. None if the text answers nothing, or is the JSON of messages.
    """
    texts = {
        key: value for key, value in fields.items() if isinstance(value, str) and value.strip()
    }
    calls = calls_in(fields, field) if field in texts else []
    if field not in texts or (texts[field].startswith("[{") and not calls):
        return [], []
    answer = {"role": ASSISTANT, **({"tool_calls": calls} if calls else {"content": texts[field]})}
    asked = [key for key in (*QUESTIONS, TOPICS[0]) if key in texts and key != field][:1]
    if not asked:
        prompts = [key for key in PROMPTS if key != field and isinstance(fields.get(key), list)]
        return [answer] if prompts else [], []
    asked += [key for key in TOPICS if key in texts and key not in (field, *asked)]
    question = {"role": "user", "content": "\n\n".join(texts[key] for key in asked)}
    if fields.get(HISTORY) in NOTHING:
        return [question, answer], asked
    earlier = [
        turn
        for each in listed(fields[HISTORY], HISTORY, "turns")
        for turn in asked_and_answered(each, ("user", ASSISTANT), HISTORY)
    ]
    return [*earlier, question, answer], [*asked, HISTORY]


def calls_in(fields: Mapping[str, object], field: str) -> list[dict[str, object]]:
    """Return the calls of the tools beside an answer that is their JSON text, as of xLAM."""
    if not any(key in fields for key in TOOL_KEYS):
        return []
    try:
        return read_calls(fields[field], field)
    except ChatError:
        return []


def read_messages(
    given: Sequence[object], field: str
) -> tuple[list[Message], list[dict[str, object]]]:
    """Return the messages of a field, and the other keys of each; ChatError as of `chat_text`.

    Calls of tools in a message of their own belong to what the assistant said just before.
    """
    found = [read_message(each, f"$.{field}[{i}]") for i, each in enumerate(given)]
    messages = list[Message]()
    for message in (each for several, _ in found for each in several):
        last = messages[-1] if messages else message
        is_calling = message.role == ASSISTANT == last.role and not message.content.strip()
        if messages and is_calling and not message.reasoning and message.about == last.about:
            calls = [*read_calls(last.tool_calls, field), *read_calls(message.tool_calls, field)]
            messages[-1] = last._replace(tool_calls=as_json(calls))
        else:
            messages.append(message)
    return messages, [others for _, others in found]


def read_prompt(
    fields: Mapping[str, object], field: str, messages: Sequence[Message]
) -> tuple[str, list[Message], list[dict[str, object]]]:
    """Return the key and the messages before an answer, and their other keys; none if said there.

    Some with answers of their own are refused: they are no part of what is to be learned.
    """
    keys = [key for key in PROMPTS if key != field and isinstance(fields.get(key), list)]
    given = next((key for key in keys if fields[key]), None)
    if given is None:
        return PROMPTS[0], [], []
    prompt, others = read_messages(listed(fields[given], given, "messages"), given)
    if [*messages[: len(prompt)]] == prompt:
        return given, [], []
    if messages[0].role != ASSISTANT or any(message.role == ASSISTANT for message in prompt):
        raise ChatError(f"chat has `{given}`, which is no question to `{field}` - at `$.{given}`")
    return given, prompt, others


def check_beside(fields: Mapping[str, object], field: str, messages: Sequence[Message]) -> None:
    """Raise ChatError for a key beside the messages that would change what is seen or learned."""
    contents = {"", *(message.content.strip() for message in messages)}
    read = (field, field.partition(".")[0], *SYSTEM_KEYS, *TOOL_KEYS, OPTIONS_KEY)
    for key, value in fields.items():
        is_read = key in read or (key in PROMPTS and isinstance(value, list))
        if not is_read and value not in NOTHING and is_unsaid(key, value, contents):
            raise ChatError(f"chat has `{key:.60}`, which no text holds - at `$.{key:.60}`")


def is_unsaid(key: str, value: object, contents: Container[str]) -> bool:
    """Return whether a key looks like a mask, tools or a prompt, and says what no message does."""
    name = in_words(key)
    if name in MEDIA:
        return True
    if ABOUT.search(name):
        return False
    if LIKE_A_MASK.search(name):
        is_of_user = isinstance(value, str) and ROLE_NAMES.get(value.lower()) == "user"  # of NeMo
        is_one = name in (*MARKS, "label") and value == 1
        is_obeyed = is_one or (key in MARKS and is_weight(value) and value > 0)
        return not is_of_user and not is_obeyed
    if isinstance(value, int | float) or not LIKE_A_PROMPT.search(name):
        return False
    return not (isinstance(value, str) and value.strip() in contents)


def with_tools(fields: Mapping[str, object], field: str) -> Mapping[str, object]:
    """Return the fields with the functions of a system prompt as `tools`, as of Glaive.

    They are JSON objects at its end; ChatError if they are not.
    """
    said = [each.lstrip() for key in ("system", field) if isinstance(each := fields.get(key), str)]
    if [*map(str.startswith, said, GLAIVE)] != [True, True] or fields.get("tools") not in NOTHING:
        return fields
    text, brace, rest = said[0].removeprefix(GLAIVE[0]).partition("{")
    functions = BETWEEN_FUNCTIONS.split(f"{brace}{rest.rstrip()}") if brace else []
    tools = [decoded(each, "$.system", "functions") for each in functions]
    return {**fields, "system": text.strip().removesuffix("-").strip(), "tools": tools}


def read_system(
    fields: Mapping[str, object], field: str, messages: Sequence[Message]
) -> list[Message]:
    """Return the system prompt beside the messages, none if one of them says the same."""
    given = [key for key in SYSTEM_KEYS if key != field and fields.get(key) not in NOTHING]
    texts = ["\n".join(read_content(fields[key], f"$.{key}").texts) for key in given]
    said = {m.content.strip() for m in messages if m.role in ("system", "developer")}
    new = sorted({text for text in texts if text.strip()} - {t for t in texts if t.strip() in said})
    if len(new) > 1 or (new and said):
        raise ChatError(
            f"chat has more than one system prompt, beside `{given[0]}` another one - at "
            f"`$.{given[0]}`"
        )
    return [Message("system", text) for text in new]


def read_tools(
    fields: Mapping[str, object], field: str, messages: Sequence[Message]
) -> list[Message]:
    """Return the list of tools beside the messages as JSON text, none if there is no tool.

    None either if the system prompt names each of them, as of Hermes: it has their definitions.
    Those without OpenAI's object around a function get one.
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
    tools = [as_function(tool, key) for tool in listed(value, key, "tools", may_be_empty=True)]
    system = "\n".join(message.content for message in messages if message.role == "system")
    names = [f'"{name_of(tool)}"' for tool in tools]
    if all(name in system for name in names):
        return []
    return [Message(TOOLS, as_json(tools))]


def as_function(tool: object, key: str) -> Mapping[str, object]:
    """Return a tool in OpenAI's form; of other publishers `input_schema` has the parameters."""
    if not isinstance(tool, Mapping):
        raise ChatError(f"chat `{key}` has a tool that is no object - at `$.{key}`")
    if "function" in tool or not isinstance(tool.get("name"), str):
        return tool
    function = {
        "parameters" if name == "input_schema" else name: value
        for name, value in tool.items()
        if name != "type"
    }
    return {"type": "function", "function": function}


def name_of(tool: Mapping[str, object]) -> object:
    """Return the name of a tool's function, None if it has none."""
    function = tool.get("function")
    return function.get("name") if isinstance(function, Mapping) else None


def read_options(fields: Mapping[str, object]) -> list[Message]:
    """Return the options of the template as JSON text; ChatError if they are none."""
    value = fields.get(OPTIONS_KEY)
    options = (
        decoded(value, f"$.{OPTIONS_KEY}", "options") if isinstance(value, str) and value else value
    )
    if options in NOTHING:
        return []
    if not isinstance(options, Mapping) or {*RESERVED_OPTIONS} & {*options}:
        raise ChatError(
            f"chat `{OPTIONS_KEY}` is no object of options, or names {', '.join(RESERVED_OPTIONS)} "
            f"- at `$.{OPTIONS_KEY}`"
        )
    said = {key: each for key, each in options.items() if each not in NOTHING}
    return [Message(OPTIONS, as_json(said))] if said else []
