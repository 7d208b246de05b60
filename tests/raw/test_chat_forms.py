"""Public forms of supervised data: each is read into the same messages, or refused by name."""

from prelude import Any, given, json, pytest, re, st
from public_chats import (
    ANSWER,
    CALL,
    CALLING,
    CALLS,
    GLAIVE,
    GLAIVE_CALL,
    GPT,
    HUMAN,
    OBSERVED,
    TEXTS,
    TOOL,
    USER,
    WEATHER,
)
from tables import cases

from assets.raw.chat_records import chat_text
from assets.text.chat_messages import TOOLS, ChatError, Message, split_messages
from pipeline_defs.commands.build.layouts import chat_field_of

SAID = {
    "s": Message("system", "s"),
    "u": Message("user", "q"),
    "a": Message("assistant", "a"),
    "2": (Message("user", "q2"), Message("assistant", "a2")),
}


def read(field: str, record: dict[str, Any]) -> list[Message]:
    return split_messages(chat_text(record, field)[0])


@pytest.mark.parametrize("form", TEXTS)
def test_a_form_of_texts_is_read(form: str) -> None:
    field, record, said = TEXTS[form]
    turns = {"22": [*SAID["2"]]}.get(said[2:], [])
    expected = [SAID[each] for each in said.removesuffix("22")] + turns
    assert read(field, record) == expected


@pytest.mark.parametrize("form", TEXTS | CALLS)
def test_init_proposes_the_field_of_the_conversation(form: str) -> None:
    field, record, *_ = (TEXTS | CALLS)[form]
    assert chat_field_of([record] * 3) == field


@pytest.mark.parametrize("form", CALLS)
def test_a_form_with_calls_of_tools_is_read(form: str) -> None:
    field, record, calls, about = CALLS[form]
    tools, *messages = read(field, record)
    assert tools.role == TOOLS
    assert json.loads(tools.content) == [TOOL]
    result = Message("tool", "12", about=about)
    assert messages == [SAID["u"], Message("assistant", "", tool_calls=calls), result, SAID["a"]]


def test_the_calls_of_xlam_answer_a_query() -> None:
    record = {
        "id": 1,
        "query": "q",
        "tools": json.dumps([WEATHER]),
        "answers": json.dumps([CALL, CALL]),
    }
    tools, question, answer = read("answers", record)
    assert json.loads(tools.content) == [TOOL]
    assert question == SAID["u"]
    assert [each["function"] for each in json.loads(answer.tool_calls)] == [CALL, CALL]


def test_calls_that_answer_messages_are_calls() -> None:
    record = {"tools": [TOOL], "prompt": [USER], "completion": json.dumps([CALL])}
    answer = read("completion", record)[-1]
    assert (answer.content, answer.tool_calls) == (
        "",
        json.dumps([{"type": "function", "function": CALL}], separators=(",", ":")),
    )


def test_a_prompt_beside_the_json_of_messages_is_not_its_question() -> None:
    record = {"prompt": [USER], "messages": json.dumps([USER, ANSWER])}
    assert read("messages", record) == [SAID["u"], SAID["a"]]


OF_GLAIVE = (
    "You are a helpful assistant with access to the following functions. Use them if required"
)


def test_the_functions_of_glaive_are_tools_and_not_a_part_of_the_system_prompt() -> None:
    other = {**WEATHER, "name": "news"}
    functions = "\n\n".join(json.dumps(each, indent=4) for each in (WEATHER, other))
    record = {"system": f"SYSTEM: {OF_GLAIVE} -\n{functions}\n\n", "chat": GLAIVE % GLAIVE_CALL}
    tools, system, *_ = read("chat", record)
    assert system == Message("system", OF_GLAIVE)
    assert [each["function"] for each in json.loads(tools.content)] == [WEATHER, other]


@pytest.mark.parametrize(
    ("call", "content", "arguments"),
    [
        ("""{"name": "f", "arguments": '{"text": "It\\'s"}'}""", "", ['{"text": "It\'s"}']),
        ("""{"name": "f", "arguments": '{"text": "it's, \\n"}'}""", "", ['{"text": "it\'s, \\n"}']),
        ("""{"name": "f", "arguments": {"a": 1}}""", "", [{"a": 1}]),
        ("""{"name": "f"}""", "", [{}]),
        (
            """{"name": "f", "arguments": '{}'}<|endoftext|>\n\n\nASSISTANT: <functioncall>"""
            """ {"name": "f", "arguments": '{}'}""",
            "",
            ["{}", "{}"],
        ),
    ],
    ids=["an apostrophe", "without its backslash", "an object", "none", "two"],
)
def test_a_call_of_glaive_is_read(call: str, content: str, arguments: list[Any]) -> None:
    answer = read("chat", {"chat": GLAIVE % call})[1]
    assert answer.content == content
    assert [each["function"]["arguments"] for each in json.loads(answer.tool_calls)] == arguments


def test_a_text_before_a_call_of_glaive_is_said_with_it() -> None:
    chat = (GLAIVE % GLAIVE_CALL).replace("<functioncall>", "I look.\n<functioncall>")
    answer = read("chat", {"chat": chat})[1]
    assert answer.content == "I look." and "weather" in answer.tool_calls


@cases(r"""
    turn | said
    "<functioncall> {'name': 'f'}" | no JSON
    "<functioncall> f(1)" | no JSON
    "<functioncall>" | content is blank
    "" | content is blank
    "a <|endoftext|> b" | turn has `<|endoftext|>` in it
    "a\nUSER: q" | turn has `USER:` in it
""")
def test_a_turn_of_glaive_that_is_not_clear_is_named(turn: str, said: str) -> None:
    chat = f"USER: q\n\n\nASSISTANT: {turn} <|endoftext|>\n\n\n"
    with pytest.raises(ChatError, match=re.escape(said)):
        chat_text({"chat": chat}, "chat")


@pytest.mark.parametrize("arguments", ["{a", "[1]", "", "[" * 99_999])
def test_arguments_of_glaive_that_are_no_object_are_named(arguments: str) -> None:
    chat = GLAIVE % f"""{{"name": "f", "arguments": '{arguments}'}}"""
    with pytest.raises(ChatError, match="arguments that are no JSON object"):
        chat_text({"chat": chat}, "chat")


@pytest.mark.parametrize("chat", ["USER: q\n\n\nUSER: r", "USER: q ASSISTANT: a", "USER: q"])
def test_a_transcript_without_an_answer_is_refused(chat: str) -> None:
    with pytest.raises(ChatError, match="nothing is learned|no list of messages"):
        chat_text({"chat": chat}, "chat")


@pytest.mark.parametrize("functions", ["{'name': 'f'}", '{"name": "f"', "{" * 99_999, '{"a": 1} b'])
def test_functions_that_are_no_json_are_named(functions: str) -> None:
    record = {"system": f"SYSTEM: s -\n{functions}", "chat": GLAIVE % GLAIVE_CALL}
    with pytest.raises(ChatError, match=r"functions are no JSON .* at `\$\.system`"):
        chat_text(record, "chat")


def test_tools_that_a_system_prompt_defines_are_not_said_twice() -> None:
    """As of Hermes, whose system prompt has them between tags."""
    system = {"from": "system", "value": f"s <tools>{json.dumps([TOOL])}</tools>"}
    answer = {"from": "gpt", "value": f"<tool_call>{json.dumps(CALL)}</tool_call>"}
    record = {"tools": json.dumps([TOOL]), "conversations": [system, HUMAN, answer]}
    assert [each.role for each in read("conversations", record)] == ["system", "user", "assistant"]


def test_calls_in_turns_of_their_own_belong_to_the_answer_before() -> None:
    turns = [HUMAN, {**GPT, "value": "I look."}, CALLING, CALLING, OBSERVED, OBSERVED, GPT]
    messages = read("conversations", {"conversations": turns, "tools": [TOOL]})[1:]
    assert [each.role for each in messages] == ["user", "assistant", "tool", "tool", "assistant"]
    assert messages[1].content == "I look."
    assert len(json.loads(messages[1].tool_calls)) == 2


@pytest.mark.parametrize(
    "said",
    [
        {"content": "a", "reasoning_content": "r"},
        {"content": "a", "reasoning": "r"},
        {"content": "a", "thinking": "r", "reasoning": "r"},
        {"content": [{"type": "thinking", "thinking": "r", "signature": "x"}, {"text": "a"}]},
    ],
    ids=["deepseek", "openrouter", "harmony", "anthropic"],
)
def test_reasoning_is_no_content(said: dict[str, Any]) -> None:
    messages = read("messages", {"messages": [USER, {"role": "assistant", **said}]})
    assert messages[1] == Message("assistant", "a", reasoning="r")


def test_options_of_the_template_come_first() -> None:
    options = {"enable_thinking": False, "custom_instructions": "s", "xml_tools": []}
    messages = read("messages", {"messages": [USER, ANSWER], "chat_template_kwargs": options})
    assert messages[0].role == "options"
    assert json.loads(messages[0].content) == {"enable_thinking": False, "custom_instructions": "s"}


REFUSED = {
    "an image": (
        [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, ANSWER],
        "`?image_url",
    ),
    "audio": (
        [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}, ANSWER],
        "input_audio",
    ),
    "a call in gemini's form": (
        [{"role": "user", "parts": [{"functionCall": {}}]}],
        "functionCall",
    ),
    "a call without a name": (
        [USER, {"role": "assistant", "tool_calls": [{}]}],
        "names no function",
    ),
    "a call of another type": (
        [USER, {"role": "assistant", "tool_calls": [{"type": "custom", "name": "f"}]}],
        "names no function",
    ),
    "a call that says more": (
        [USER, {"role": "assistant", "tool_calls": [{**CALL, "thought": "t"}]}],
        "has `thought`",
    ),
    "calls that are no list": ([USER, {"role": "assistant", "tool_calls": 3}], "are int"),
    "calls that are no json": (
        [USER, {"from": "function_call", "value": "weather(Bern)"}],
        "no JSON",
    ),
    "calls that are too deep": (
        [USER, {"role": "assistant", "tool_calls": "[" * 9_999 + "]" * 9_999}],
        "no JSON",
    ),
    "two forms of reasoning": ([USER, {**ANSWER, "reasoning": "r", "thinking": "s"}], "two forms"),
    "reasoning as a list": ([USER, {**ANSWER, "reasoning": ["r"]}], "`reasoning` as list"),
    "only a reasoning": ([USER, {**ANSWER, "content": "", "reasoning": "r"}], "is blank"),
    "null": ([USER, {"role": "assistant", "content": None}], "is null"),
    "pairs and others": ([{"input": "q", "output": "a"}, USER], "no question with its answer"),
    "an odd part": ([{"role": "user", "content": [3]}, ANSWER], "a part that is no object"),
    "olmo's environment": (
        [USER, ANSWER, {"role": "environment", "content": "1"}],
        "'environment'",
    ),
    "one text": (["q"], "no object"),
    "axolotl's segments": (
        [{"label": True, "text": "a"}],
        "role None",
    ),
}


@pytest.mark.parametrize("form", REFUSED)
def test_what_no_text_can_say_is_named(form: str) -> None:
    messages, said = REFUSED[form]
    with pytest.raises(ChatError, match=said):
        chat_text({"messages": messages}, "messages")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "role",
                    "content",
                    "from",
                    "value",
                    "type",
                    "text",
                    "name",
                    "arguments",
                    "id",
                    "input",
                ]
            ),
            inner
            | st.sampled_from(["user", "assistant", "tool", "text", "tool_use", "tool_result"]),
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(
    answer=st.dictionaries(
        st.sampled_from(["content", "tool_calls", "function_call", "reasoning", "name", "weight"]),
        VALUES,
    )
)
def test_whatever_a_message_has_it_is_read_or_refused(answer: dict[str, Any]) -> None:
    try:
        messages = read("messages", {"messages": [USER, {"role": "assistant", **answer}]})
    except ChatError:
        return
    assert messages[0] == SAID["u"]
    assert all(isinstance(part, str) for message in messages for part in message)
