"""Conversations that are published as one text, with the speaker's name before each turn.

    \\n\\nHuman: ...\\n\\nAssistant: ...                                       HH-RLHF
    USER: ...\\n\\n\\nASSISTANT: <functioncall> {...} <|endoftext|>\\n\\n\\n    Glaive

Beside a text of Glaive's is the system prompt, which ends with the definitions of functions, a JSON
object each. Between its turns are two line ends or more, and arguments of a call may be in single
quotes: https://huggingface.co/datasets/glaiveai/glaive-function-calling-v2
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from assets.text.chat_messages import ASSISTANT, ChatError

BEGINS = ("\n\nHuman:", "USER:")  # of the texts of a dataset
OF_HUMANS = re.compile(r"(?:\A|\n\n)(Human|Assistant):")
OF_USERS = re.compile(r"(?:\A|(?<=\n\n))(USER|ASSISTANT|FUNCTION RESPONSE):")
LEFT = re.compile(r"<\|endoftext\|>|^(?:USER|ASSISTANT|FUNCTION RESPONSE):", re.MULTILINE)
SYSTEM, CALL, END = "SYSTEM:", "<functioncall>", "<|endoftext|>"
DECODE_NEXT = json.JSONDecoder().raw_decode


def transcript_messages(text: str, name: str) -> list[object]:
    """Return the messages of a transcript, none if the text of a field is none.

    Raises ChatError if a turn has in it what begins or ends one: who says what is not known then.
    """
    text = text.lstrip()
    if text.startswith("USER:"):
        turns = [turn for each in turns_in(text, OF_USERS) for turn in parts_of(*each, name)]
        return [*turns] if len(turns) > 1 else []
    return [
        {"role": speaker.lower(), "content": said}
        for speaker, said in (turns_in(text, OF_HUMANS) if OF_HUMANS.match(text) else ())
        if said or speaker == "Human"
    ]


def turns_in(text: str, pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    """Return the speaker of each turn, and what is said."""
    said = [each.strip() for each in pattern.split(text)[1:]]
    return [*zip(said[::2], said[1::2], strict=True)]


def parts_of(speaker: str, said: str, name: str) -> list[dict[str, str]]:
    """Return the messages of a turn in Glaive's form: a text, and each call of a function."""
    said = said.removesuffix(END)
    if found := LEFT.search(said):
        raise ChatError(f"chat turn has `{found[0]}` in it - at `$.{name}`")
    if speaker != "ASSISTANT":
        return [{"role": speaker.lower().replace(" ", "_"), "content": said.strip()}]
    text, *calls = (each.strip() for each in said.split(CALL))
    answer = [{"role": ASSISTANT, "content": text}] if text or not calls else []
    return [*answer, *({"role": "function_call", "content": call} for call in calls)]


def with_tools(fields: Mapping[str, object], name: str) -> Mapping[str, object]:
    """Return the fields beside a transcript with the functions of its system prompt as `tools`.

    ChatError if what follows the first brace is no JSON.
    """
    chat, system = fields.get(name), fields.get("system")
    is_prompt = isinstance(system, str) and system.startswith(SYSTEM) and "tools" not in fields
    if not is_prompt or not isinstance(chat, str) or not chat.lstrip().startswith("USER:"):
        return fields
    text, brace, definitions = str(system).removeprefix(SYSTEM).partition("{")
    tools, rest = list[object](), (brace + definitions).strip()
    while rest:
        try:
            tool, end = DECODE_NEXT(rest)
        except (ValueError, RecursionError) as error:
            raise ChatError(
                f"chat `system` has functions that are no JSON ({error}) - at `$.system`"
            ) from None
        tools.append(tool)
        rest = rest[end:].strip()
    return {**fields, "system": text.strip().removesuffix("-").strip(), "tools": tools}
