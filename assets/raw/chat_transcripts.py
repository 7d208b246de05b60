"""Conversations that are published as one text, with the speaker's name before each turn.

    \\n\\nHuman: ...\\n\\nAssistant: ...                                       HH-RLHF
    USER: ...\\n\\n\\nASSISTANT: <functioncall> {...} <|endoftext|>\\n\\n\\n    Glaive

Between turns of Glaive's are two line ends or more:
https://huggingface.co/datasets/glaiveai/glaive-function-calling-v2
"""

from __future__ import annotations

import re

from assets.text.chat_messages import ASSISTANT, ChatError

BEGINS = ("\n\nHuman:", "USER:")  # of the texts of a dataset
OF_HUMANS = re.compile(r"(?:\A|\n\n)(Human|Assistant):")
OF_USERS = re.compile(r"(?:\A|(?<=\n\n))(USER|ASSISTANT|FUNCTION RESPONSE):")
LEFT = re.compile(r"<\|endoftext\|>|^(?:USER|ASSISTANT|FUNCTION RESPONSE):", re.MULTILINE)


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
    said = said.removesuffix("<|endoftext|>")
    if found := LEFT.search(said):
        raise ChatError(f"chat turn has `{found[0]}` in it - at `$.{name}`")
    if speaker != "ASSISTANT":
        return [{"role": speaker.lower().replace(" ", "_"), "content": said.strip()}]
    text, *calls = (each.strip() for each in said.split("<functioncall>"))
    answer = [{"role": ASSISTANT, "content": text}] if text or not calls else []
    return [*answer, *({"role": "function_call", "content": call} for call in calls)]
