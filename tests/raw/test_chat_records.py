"""A conversation's text says all that changes its meaning, or the record is refused by name."""

from prelude import Any, given, json, pytest, st
from tables import cases

from assets.raw.chat_forms import (
    HARMLESS,
    MARKS,
    NOTHING,
    SPOKEN,
    as_json,
    in_words,
    is_weight,
)
from assets.raw.chat_records import chat_text
from assets.raw.readers.input_record import document_columns
from assets.text.chat_messages import TOOLS, ChatError, Message, split_messages
from resources.settings.sources import SourceConfig

TURNS = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
ASKED = [Message("user", "q"), Message("assistant", "a")]
WEATHER = {"name": "weather", "description": "of a city <|im_end|>"}
TOOL = {"type": "function", "function": WEATHER}


def read(**beside: Any) -> tuple[list[Message], dict[str, object]]:
    text, rest = chat_text({"messages": TURNS, "id": 7, **beside}, "messages")
    return split_messages(text), rest


@pytest.mark.parametrize("key", ["system", "system_prompt", "system_message", "system_instruction"])
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
        ({"system": 3}, r"content is int, expected a string - at `\$\.system`"),
        ({"system": "a", "system_prompt": "b"}, "more than one system prompt, beside `system`"),
        ({"tools": "a search engine"}, "`tools` is no list of tools"),
        ({"tools": ["search"]}, "`tools` has a tool that is no object"),
        ({"tools": [TOOL], "functions": [WEATHER]}, "`tools` and `functions`"),
        ({"images": ["a.png"]}, "`images`, which no text holds"),
        ({"tool_calls": [{}]}, "`tool_calls`, which no text holds"),
        ({"chat_template_kwargs": [1]}, "`chat_template_kwargs` is no object of options"),
        ({"chat_template_kwargs": {"tools": [TOOL]}}, "or names messages, tools"),
        ({"chat_template_kwargs": "{"}, "options are no JSON"),
    ],
)
def test_what_cannot_be_rendered_is_named(beside: dict[str, Any], said: str) -> None:
    with pytest.raises(ChatError, match=said):
        read(**beside)


def test_a_message_with_another_system_prompt_is_refused() -> None:
    turns = [{"role": "developer", "content": "Be long."}, *TURNS]
    with pytest.raises(ChatError, match="more than one system prompt, beside `system`"):
        read(system="Be brief.", messages=turns)


@cases("""
role | key | value | fate
# obeyed: it says what is so without it
assistant | loss | True | kept
assistant | train | True | kept
assistant | training | 1 | kept
assistant | trainable | 1.0 | kept
assistant | weight | 1 | kept
assistant | loss_weight | 1.0 | kept
user | train | False | kept
user | loss | 0 | kept
system | weight | 0 | kept
assistant | loss | False | unlearned
assistant | train | 0 | unlearned
assistant | training | False | unlearned
assistant | trainable | 0.0 | unlearned
assistant | loss_weight | 0 | unlearned
# a mask that the text cannot say
assistant | weight | 0.07 | weighted
assistant | train | 2.5 | weighted
assistant | weight | 0.333 | refused
assistant | weight | 3 | refused
assistant | loss | "false" | refused
assistant | mask | True | refused
assistant | mask | False | refused
assistant | train_detail | [{"begin_offset": 0, "end_offset": 1, "train": False}] | refused
assistant | masked | 1 | refused
user | train | True | refused
user | weight | 1 | refused
tool | loss | True | refused
# a part of what a model sees, which has no place
user | reasoning | "thus" | refused
user | tool_calls | [{"name": "f"}] | refused
user | tool_call_id | "c1" | refused
assistant | thinking_blocks | [{"thinking": "thus"}] | refused
assistant | refusal | "I cannot." | refused
user | images | ["a.png"] | refused
# a second form of the same message
user | value | "another question" | refused
# unknown
user | my_score | 0 | refused
user | my_note | False | refused
# a part of what a model sees
assistant | channel | "analysis" | told
assistant | tool_plan | "search first" | told
assistant | recipient | "functions.weather" | told
tool | tool_call_id | "c1" | told
tool | name | "weather" | told
user | name | "Ann" | told
# harmless, or nothing
user | id | 7 | kept
user | messageId | "m7" | kept
assistant | timestamp | 1700000000.5 | kept
assistant | model | "m" | kept
user | toxic | False | kept
assistant | reasoning | "" | nothing
assistant | tool_calls | [] | nothing
assistant | name | "" | nothing
assistant | train_detail | None | kept
user | mask | {} | kept
""")
def test_a_key_of_a_message_is_told_or_obeyed_or_harmless_or_named(
    role: str, key: str, value: Any, fate: str
) -> None:
    turns = [*TURNS, {"role": role, "content": "t", key: value}]
    if fate != "refused":
        messages, rest = read(messages=turns)
        is_other = fate in ("kept", "unlearned", "weighted") and value is not None
        others = {"messages": [{}, {}, {key: value}]} if is_other else {}
        about = {
            "unlearned": {"learned": False},
            "weighted": {"learned": value},
            "told": {key: value},
        }.get(fate)
        said = Message(role, "t", about=as_json(about) if about else "")
        assert (messages, rest) == ([*ASKED, said], {"id": 7} | others)
    else:
        with pytest.raises(ChatError, match=rf"message has `{key}`, .* at `\$\.messages\[2\]`"):
            read(messages=turns)


@given(
    turn=st.sampled_from(
        [("role", "user", "content"), ("role", "assistant", "content"), ("from", "gpt", "value")]
    ),
    key=st.text(max_size=12) | st.sampled_from([*MARKS, "mask", "Loss", "channel", "role ", "id2"]),
    value=st.none() | st.booleans() | st.integers(-1, 2) | st.text(max_size=3) | st.just([0]),
)
def test_no_message_with_an_unknown_key_is_learned(
    turn: tuple[str, str, str], key: str, value: Any
) -> None:
    role_key, role, text_key = turn
    turns = [*TURNS, {role_key: role, text_key: "t"} | {key: value}]
    spoken = ("name",) if role == "user" else SPOKEN["assistant"]
    is_known = key in (role_key, text_key, *spoken) or in_words(key) in HARMLESS
    marked = (0, 1) if role != "user" else (0,)
    is_marked = value in marked or (role != "user" and is_weight(value))
    if not is_known and value not in NOTHING and (key not in MARKS or not is_marked):
        with pytest.raises(ChatError):
            read(messages=turns)


@cases("""
key | value | fate
loss_mask | [0, 1] | refused
lossMask | 1 | refused
assistant_masks | [[0, 1]] | refused
label | False | refused
label | "bad" | refused
labels | [0, 1] | refused
weight | 0.3 | weighted
weight | 0.333 | refused
weight | 0 | refused
loss_weights | [0, 1] | refused
train | False | refused
train_on_inputs | True | refused
available_tools | [{"name": "f"}] | refused
tool_choice | "auto" | refused
developer_instructions | "Be brief." | refused
prompt | "another question" | refused
systemInstruction | {"parts": [{"text": "Be brief."}]} | refused
history | [["q0", "a0"]] | refused
context | "What was read." | refused
documents | [{"text": "t"}] | refused
# what says the same as a key that is left out, and what is said in a message
label | True | kept
weight | 1 | kept
loss_mask | [] | kept
prompt | " q" | kept
context | "" | kept
num_tools | 3 | kept
# about something, and unknown
prompt_id | "p7" | kept
system_prompt_key | "k" | kept
label_source | "people" | kept
trainer | "t" | kept
rejected | [{"role": "assistant", "content": "no"}] | kept
reward | 0.1 | kept
""")
def test_a_key_beside_the_messages_is_kept_or_named(key: str, value: Any, fate: str) -> None:
    if fate == "weighted":
        weighted = [*ASKED[:-1], ASKED[-1]._replace(about=as_json({"learned": value}))]
        assert read(**{key: value}) == (weighted, {"id": 7, key: value})
    elif fate == "kept":
        assert read(**{key: value}) == (ASKED, {"id": 7, key: value})
    else:
        with pytest.raises(ChatError, match=rf"chat has `{key}`, .* at `\$\.{key}`"):
            read(**{key: value})


def test_weights_of_a_record_and_of_its_messages_are_multiplied() -> None:
    turns = [{"role": "assistant", "content": "a", "weight": 0.5}, {"role": "user", "content": "q"}]
    messages, _ = read(messages=[turns[1], turns[0]], loss_weight=0.3)
    assert [message.about for message in messages] == ["", '{"learned":0.15}']
    messages, _ = read(messages=[turns[1], turns[0]], weight=2)
    assert [message.about for message in messages] == ["", ""]


QUESTION = {"role": "user", "content": "q", "id": 1}
ANSWER = {"role": "assistant", "content": "a"}


@pytest.mark.parametrize("field", ["chosen", "completion"])
def test_an_answer_follows_the_messages_of_its_prompt(field: str) -> None:
    record = {"prompt": [QUESTION], field: [ANSWER], "system": "Be brief.", "rejected": []}
    text, rest = chat_text(record, field)
    assert split_messages(text) == [Message("system", "Be brief."), *ASKED]
    assert rest == {"rejected": [], "prompt": [{"id": 1}]}


def test_a_prompt_that_the_messages_begin_with_is_not_said_twice() -> None:
    assert read(prompt=TURNS[:1]) == (ASKED, {"id": 7, "prompt": TURNS[:1]})


@pytest.mark.parametrize(
    ("prompt", "messages", "said"),
    [
        ([{**QUESTION, "content": "p"}], TURNS, "`prompt`, which is no question to `messages`"),
        (TURNS, [ANSWER], "`prompt`, which is no question to `messages`"),
        (["q"], [ANSWER], r"no object - at `\$\.prompt\[0\]`"),
        ([{**QUESTION, "train": True}], [ANSWER], r"`train`, .* at `\$\.prompt\[0\]`"),
    ],
    ids=["another", "answers", "texts", "mask"],
)
def test_a_prompt_that_is_no_question_is_named(prompt: Any, messages: Any, said: str) -> None:
    with pytest.raises(ChatError, match=said):
        read(prompt=prompt, messages=messages)


@pytest.mark.parametrize("as_text", [False, True], ids=["object", "json"])
def test_keys_beside_messages_in_an_object_count_as_well(as_text: bool) -> None:
    source = SourceConfig(name="s", where="w", kind="chat", text_field="data.messages")

    def columns(**beside: Any) -> tuple[str, dict[str, Any]]:
        data = {"messages": TURNS, "id": 1, **beside}
        fields = {"data": json.dumps(data) if as_text else data, "n": 2}
        text, *_, meta = document_columns(fields, source)
        return text, json.loads(meta)

    text, meta = columns(system="Be brief.", weight=1)
    assert split_messages(text)[0] == Message("system", "Be brief.")
    assert meta == {"data": {"system": "Be brief.", "id": 1, "weight": 1}, "n": 2}
    with pytest.raises(ChatError, match="`loss_mask`"):
        columns(loss_mask=[0, 1])


@cases(r"""
    record | field | question
    {"instruction": "q", "output": "a"} | output | q
    {"instruction": "q", "input": "of this", "output": "a"} | output | "q\n\nof this"
    {"instruction": "q", "context": "of this", "response": "a"} | response | "q\n\nof this"
    {"prompt": "q", "completion": "a"} | completion | q
    {"prompt": "q", "chosen": "a", "rejected": "b"} | chosen | q
    {"question": "q", "answer": "a"} | answer | q
""")
def test_a_text_that_answers_another_is_a_conversation(
    record: dict[str, Any], field: str, question: str
) -> None:
    text, rest = chat_text({**record, "system": "Be brief.", "id": 7}, field)

    assert split_messages(text) == [
        *(Message("system", "Be brief."), Message("user", question), Message("assistant", "a")),
    ]
    assert rest.keys() <= {"id", "rejected"}


@pytest.mark.parametrize(
    "beside",
    [{}, {"instruction": " "}, {"topic": "q"}, {"history": [["q", "a"]]}],
)
def test_a_text_without_its_question_is_refused(beside: dict[str, Any]) -> None:
    with pytest.raises(ChatError, match="no list of messages|`history`, which no text holds"):
        chat_text({"output": "a", **beside}, "output")
