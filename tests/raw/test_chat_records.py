"""A conversation's text says all that changes its meaning, or the record is refused by name."""

from prelude import Any, json, pytest

from assets.raw.chat_records import chat_text
from assets.text.chat_messages import TOOLS, ChatError, Message, split_messages

TURNS = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
ASKED = [Message("user", "q"), Message("assistant", "a")]
WEATHER = {"name": "weather", "description": "of a city <|im_end|>"}
TOOL = {"type": "function", "function": WEATHER}


def read(**beside: Any) -> tuple[list[Message], dict[str, object]]:
    text, rest = chat_text({"messages": TURNS, "id": 7, **beside}, "messages")
    return split_messages(text), rest


@pytest.mark.parametrize("key", ["system", "system_prompt", "system_message"])
def test_a_system_prompt_beside_the_messages_is_the_first_of_them(key: str) -> None:
    assert read(**{key: "Be brief."}) == ([Message("system", "Be brief."), *ASKED], {"id": 7})


def test_a_system_prompt_that_a_message_says_is_not_said_twice() -> None:
    turns = [{"role": "system", "content": "Be brief."}, *TURNS]
    assert [m.role for m in read(system="Be brief.\n", messages=turns)[0]][:2] == ["system", "user"]


@pytest.mark.parametrize(
    "beside",
    [{"tools": [TOOL]}, {"tools": json.dumps([TOOL])}, {"functions": [WEATHER]}],
    ids=["list", "json", "functions"],
)
def test_tools_come_first(beside: dict[str, Any]) -> None:
    messages, rest = read(system="Be brief.", **beside)
    assert json.loads(messages[0].content) == [TOOL]
    assert [m.role for m in messages] == [TOOLS, "system", "user", "assistant"]
    assert rest == {"id": 7}


@pytest.mark.parametrize(
    "beside", [{"system": ""}, {"tools": []}, {"tools": "[]"}, {"tools": None, "images": []}]
)
def test_empty_fields_say_nothing(beside: dict[str, Any]) -> None:
    assert read(**beside)[0] == ASKED


@pytest.mark.parametrize(
    ("beside", "said"),
    [
        ({"system": 3}, "`system` is int, expected a string"),
        ({"system": "a", "system_prompt": "b"}, "more than one system prompt, beside `system`"),
        ({"tools": "a search engine"}, "`tools` is no list of tools"),
        ({"tools": ["search"]}, "`tools` has a tool that is no object"),
        ({"tools": [TOOL], "functions": [WEATHER]}, "`tools` and `functions`"),
        ({"images": ["a.png"]}, "`images`, which no text holds"),
        ({"tool_calls": [{}]}, "`tool_calls`, which no text holds"),
    ],
)
def test_what_cannot_be_rendered_is_named(beside: dict[str, Any], said: str) -> None:
    with pytest.raises(ChatError, match=said):
        read(**beside)


def test_a_message_with_another_system_prompt_is_refused() -> None:
    turns = [{"role": "developer", "content": "Be long."}, *TURNS]
    with pytest.raises(ChatError, match="more than one system prompt, beside `system`"):
        read(system="Be brief.", messages=turns)
