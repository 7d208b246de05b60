"""Stock chat templates of the model families: the text of transformers, and the masks of TRL.

TRL has the templates, and for most of them a copy that marks what is learned (`_training`). These
copies render other text for some conversations, which are not compared, and mark in some families
a part of the generation prompt, or the line end behind a turn: HEADS and `bare` say where.
"""

import datetime
import importlib.util
from typing import Any

from format_folders import peer
from jinja2 import TemplateError
from prelude import Path, json, pytest, re

from assets.raw.chat_records import chat_text
from assets.text.chat_messages import split_messages
from assets.tokenized.chat_templates import (
    TEMPLATE_FAULTS,
    TODAY,
    ChatTemplate,
    TemplateRefusal,
)
from assets.tokenized.encode_chats import conversations_of_turns
from assets.tokenized.render_chats import Rendered, render_chat

SPECIAL = re.compile(
    r"<\|[^|<>]*\|>|<｜[^｜]*｜>|</?s>|<(?:start|end)_of_turn>|<eos>|<bos>|\[/?[A-Z_]+\]|<[a-z_]+\|>|<\|[a-z_]+>"
)
TOKENS = {  # bos_token and eos_token of a family
    "cohere": ("<|BOS_TOKEN|>", "<|END_OF_TURN_TOKEN|>"),
    "deepseek": ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"),
    "gemma": ("<bos>", "<eos>"),
    "llama3": ("<|begin_of_text|>", "<|eot_id|>"),
    "lfm2": ("<|startoftext|>", "<|im_end|>"),
    "phi3": ("<s>", "<|endoftext|>"),
}
HEADS = {  # of the generation prompt, which the copies of these families mark
    "deepseek": "<｜Assistant｜>",
    "gptoss": "<|start|>assistant",
    "muse_glimmer": "<|start|>assistant",
    "nemotron": "<think>\n",
    "qwen2_5": "\n",
    "qwen3_5": "<think>\n",
    "qwen3_6": "<think>\n",
}
FAMILIES = (
    *("cohere", "cohere2", "deepseek_r1_distill", "deepseekv3", "gemma", "gemma3", "gemma4_v5"),
    *("glm4moe", "gptoss", "lfm2", "lfm2_v2", "llama3", "llama3_1", "llama3_2", "muse_glimmer"),
    *("nemotron_3_nano", "nemotron_3_ultra", "phi3", "phi3_5", "qwen2_5", "qwen3"),
    *("qwen3_5_think", "qwen3_6", "qwen3_instruct_2507"),
)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def answer(text: str, **said: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **said}


def calling(*cities: str, text: str = "", **said: Any) -> dict[str, Any]:
    calls = [
        {
            "id": f"c{number}abcdefg",
            "type": "function",
            "function": {"name": "get_weather", "arguments": {"city": city}},
        }
        for number, city in enumerate(cities)
    ]
    return answer(text, tool_calls=calls, **said)


def result(text: str, number: int = 0) -> dict[str, Any]:
    told = {"tool_call_id": f"c{number}abcdefg", "name": "get_weather"}
    return {"role": "tool", "content": text, **told}


SYSTEM = {"role": "system", "content": "Be brief."}
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather.",
        "parameters": {
            "type": "object",
            "required": ["city"],
            "properties": {"city": {"type": "string", "description": "City."}},
        },
    },
}
CHATS = {
    "one": [user("Hi"), answer("Hello there.")],
    "three": [user("a"), answer("b"), user("c"), answer("d"), user("e"), answer("f")],
    "system": [SYSTEM, user("Hi"), answer("Hello."), user("x"), answer("y")],
    "ends with a question": [user("Hi"), answer("Hello."), user("Bye")],
    "blanks": [user(" Hi \n"), answer("\n Hello.\n\n"), user("Bye "), answer(" See you. ")],
    "code": [
        user("write"),
        answer("```python\nx = {1: [2]}\n```\n<b>&\"'</b>"),
        user("1"),
        answer("1"),
    ],
    "same": [user("yes"), answer("yes"), user("yes"), answer("yes")],
    "begins": [answer("Hello."), user("Hi"), answer("Yes.")],
    "system, begins": [SYSTEM, answer("Hello."), user("Hi"), answer("Yes.")],
    "twice": [user("Hi"), answer("One."), answer("Two.")],
    "two questions": [user("Hi"), user("there"), answer("Yes.")],
    "think in the text": [user("b"), answer("<think>\ntwo\n</think>\n\n4"), user("c"), answer("d")],
    "call": [user("weather?"), calling("Bern"), result("12"), answer("It is 12.")],
    "call, text": [user("weather?"), calling("Bern", text="I look."), result("12"), answer("12.")],
    "call, last": [user("weather?"), calling("Bern")],
    "call, two": [
        user("w?"),
        calling("Bern", "Rome"),
        result("12"),
        result("20", 1),
        answer("12, 20."),
    ],
    "call, again": [
        SYSTEM,
        user("w?"),
        calling("Bern"),
        result("12"),
        calling("Rome"),
        result("20"),
        answer("12 and 20."),
        user("b"),
        answer("c"),
    ],
    "reasoning": [user("2+2"), answer("4", reasoning="two and two")],
    "reasoning, two": [
        user("2+2"),
        answer("4", reasoning="two and two"),
        user("3+3"),
        answer("6", reasoning="three and three"),
    ],
    "reasoning, call": [
        user("w?"),
        calling("Bern", reasoning="I must look"),
        result("12"),
        answer("It is 12.", reasoning="so 12"),
    ],
}
LEFT_OUT = re.compile("the template leaves out (what the assistant message says|`tools`)")
# Gemma writes the content of a turn with calls behind their results.
UNKNOWN = {("gemma4_v5", "call, text")}


def source_of(name: str) -> str:
    found = importlib.util.find_spec("trl")  # its import takes seconds
    folder = Path(found.origin or "") if found else peer("trl").__file__
    return (Path(folder).parent / "chat_templates" / f"{name}.jinja").read_text()


def of_family(table: dict[str, Any], name: str, default: Any) -> Any:
    return next((each for key, each in table.items() if name.startswith(key)), default)


def rendered_by_transformers(
    source: str, name: str, chat: str, is_marked: bool
) -> tuple[str, list[str]] | None:
    """Text and marked parts, None if the template refuses; with null for a content without text."""
    utils = peer("transformers").utils.chat_template_utils
    bos, eos = of_family(TOKENS, name, ("<s>", "</s>"))
    for blank in ("", None):
        messages = json.loads(json.dumps(CHATS[chat]))
        for message in messages:
            thought = message.get("reasoning")
            message |= {"reasoning_content": thought, "thinking": thought} if thought else {}
            if message.get("tool_calls") and not message["content"]:
                message["content"] = blank
        try:
            texts, spans = utils.render_jinja_template(
                [messages],
                tools=[TOOL] if "call" in chat else None,
                chat_template=source,
                return_assistant_tokens_mask=is_marked,
                bos_token=bos,
                eos_token=eos,
            )
        except (TemplateError, *TEMPLATE_FAULTS):
            continue
        return texts[0], [texts[0][a:b] for a, b in spans[0]] if is_marked else []
    return None


def rendered_here(source: str, name: str, chat: str) -> Rendered:
    bos, eos = of_family(TOKENS, name, ("<s>", "</s>"))
    template = ChatTemplate(source, (("bos_token", bos), ("eos_token", eos)))
    tools = {"tools": [TOOL]} if "call" in chat else {}
    text, _ = chat_text({"messages": CHATS[chat], **tools}, "messages")
    return render_chat(template, split_messages(text), SPECIAL)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return cls(TODAY.year, TODAY.month, TODAY.day, tzinfo=tz)

    utils = peer("transformers").utils.chat_template_utils
    monkeypatch.setattr(utils, "datetime", Clock)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_text_is_that_of_transformers_or_something_is_left_out(name: str) -> None:
    source, num_same = source_of(name), 0
    for chat in CHATS:
        theirs = rendered_by_transformers(source, name, chat, is_marked=False)
        if theirs is None:
            continue
        try:
            ours = rendered_here(source, name, chat)
        except TemplateRefusal as refusal:
            assert LEFT_OUT.match(str(refusal)) or (name, chat) in UNKNOWN, f"{chat}: {refusal}"
            continue
        num_same += 1
        assert ours.text == theirs[0], chat
    assert num_same >= 7


THINKING = {
    "answers": [
        *(user("2+2"), answer("4", reasoning="<1>"), user("3+3"), answer("6", reasoning="<2>")),
        *(user("4+4"), answer("8", reasoning="<3>")),
    ],
    "calls": [
        *(
            user("Bern?"),
            calling("Bern", reasoning="<1>"),
            result("12"),
            answer("12", reasoning="<2>"),
        ),
        *(
            user("Rome?"),
            calling("Rome", reasoning="<3>"),
            result("20"),
            answer("20", reasoning="<4>"),
        ),
    ],
}


@pytest.mark.parametrize("name", ["gemma4_v5", "glm4moe", "nemotron_3_nano", "qwen3", "qwen3_6"])
@pytest.mark.parametrize("chat", THINKING)
def test_turns_that_are_split_have_each_reasoning_once(name: str, chat: str) -> None:
    template = ChatTemplate(source_of(name), is_split=True)
    text, _ = chat_text({"messages": THINKING[chat], "tools": [TOOL]}, "messages")
    turns = conversations_of_turns(split_messages(text))
    rendered = [render_chat(template, turn, SPECIAL) for turn in turns]
    learned = "".join(text[a:b] for text, spans, _ in rendered for a, b in spans)
    thoughts = [turn["reasoning"] for turn in THINKING[chat] if "reasoning" in turn]
    assert [learned.count(each) for each in thoughts] == [1] * len(thoughts)


def bare(part: str, name: str) -> str:
    """A part that a copy marks, without what is no more than the prompt or what follows a turn."""
    return part.removeprefix(of_family(HEADS, name, "")).rstrip("\n")


@pytest.mark.parametrize("name", FAMILIES)
def test_what_is_learned_is_what_trl_marks(name: str) -> None:
    if name in ("llama3_1", "llama3_2", "gemma4_v5"):
        pytest.skip("TRL has no copy with marks of this template")
    source, marked, num_same = source_of(name), source_of(f"{name}_training"), 0
    for chat in CHATS:
        theirs = rendered_by_transformers(marked, name, chat, is_marked=True)
        try:
            text, learned, _ = rendered_here(source, name, chat)
        except TemplateRefusal:
            continue
        if theirs is None or theirs[0].removesuffix("<|user|>") != text:
            continue
        num_same += 1
        ours = [text[a:b] for a, b in learned]
        expected = [bare(part, name) for part in theirs[1] if part != "<|endoftext|>"]
        if (
            name == "glm4moe" and CHATS[chat][-1]["role"] == "assistant"
        ):  # the copy ends with the head of a question that nobody asks
            expected[-1] = expected[-1].removesuffix("<|user|>").removesuffix("<|observation|>")
        assert [part.rstrip("\n") for part in ours] == expected, chat
    assert num_same >= 4
