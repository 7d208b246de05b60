"""Text that a chat template renders, and the spans of it that are learned."""

from prelude import Any, Path, given, json, pytest, re, st
from tables import cases

from assets.text.chat_messages import TOOLS, Message
from assets.tokenized.chat_template_files import CHATML, find_template
from assets.tokenized.chat_templates import ChatTemplate, TemplateRefusal
from assets.tokenized.encode_chats import conversations_of_turns
from assets.tokenized.render_chats import render_chat
from assets.tokenized.tokenizer import TokenizerError
from resources.settings.tokenizer import TokenizerConfig

END = re.compile(re.escape("<|im_end|>"))
CHAT = [Message("user", "Hi"), Message("assistant", "Yes."), Message("user", "Bye")]
PLAIN = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.mark.parametrize("source", [CHATML, PLAIN], ids=["generation", "prefix"])
def test_content_and_end_of_turn_are_learned(source: str) -> None:
    text, learned, _ = render_chat(ChatTemplate(source), CHAT, END)
    assert [text[a:b] for a, b in learned] == ["Yes.<|im_end|>"]


GREETED = [Message("assistant", "Hello."), *CHAT]


@pytest.mark.parametrize(
    "before",
    ["", "{{ 'Be kind.\n' if messages[0].role != 'system' }}", "{{ messages[0].content[:0] }}"],
    ids=["nothing", "a preamble", "none of no messages"],
)
def test_a_turn_that_begins_is_learned_as_later_ones_are(before: str) -> None:
    text, learned, _ = render_chat(ChatTemplate(before + PLAIN), GREETED, END)
    assert [text[a:b] for a, b in learned] == ["Hello.<|im_end|>", "Yes.<|im_end|>"]


@pytest.mark.parametrize(
    "other",
    [PLAIN.replace("|>assistant", "|>model"), PLAIN.partition("{% if add")[0]],
    ids=["another", "none"],
)
def test_a_turn_that_begins_without_the_generation_prompt_refuses(other: str) -> None:
    with pytest.raises(TemplateRefusal, match="not known what is learned"):
        render_chat(ChatTemplate(other), GREETED, END)


def test_a_refusal_is_the_templates_own() -> None:
    with pytest.raises(TemplateRefusal, match="roles must alternate"):
        render_chat(ChatTemplate("{{ raise_exception('roles must alternate') }}"), CHAT, END)


WITH_TOOLS = [Message(TOOLS, '[{"name":"weather"}]'), Message("system", "Brief."), *CHAT]


def test_tools_are_rendered_with_the_system_prompt() -> None:
    text, learned, _ = render_chat(ChatTemplate(CHATML), WITH_TOOLS, END)
    system = 'Brief.\n\n<tools>\n{"name":"weather"}\n</tools>'
    assert text.startswith(f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\nHi")
    assert [text[a:b] for a, b in learned] == ["Yes.<|im_end|>"]


@pytest.mark.parametrize(
    ("source", "messages", "said"),
    [
        (PLAIN, WITH_TOOLS, "leaves out `tools`"),
        (PLAIN, [Message(TOOLS, "[{"), *CHAT], "is no JSON"),
        (PLAIN.replace("{{ m.content }}", "{{ m.content if m.role != 'system' }}"),
         WITH_TOOLS[1:], "leaves out what the system message says"),
    ],
    ids=["tools", "broken", "system"],
)  # fmt: skip
def test_a_template_that_leaves_something_out_refuses(
    source: str, messages: list[Message], said: str
) -> None:
    with pytest.raises(TemplateRefusal, match=said):
        render_chat(ChatTemplate(source), messages, END)


WITH_RESULT = [*WITH_TOOLS[1:], Message("tool", "1"), Message("assistant", "</think>It is 1.")]


@pytest.mark.parametrize("result", ["1", "a", "8 degrees"])
@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool"])
def test_a_template_that_leaves_out_a_turn_refuses(role: str, result: str) -> None:
    first = 1 if role == "system" else 2  # the message that is left out may be the first
    chat = [*WITH_TOOLS[first:4], Message("tool", result), Message("assistant", "It is 1.")]
    without = PLAIN.replace("in messages", f"in messages if m.role != {role!r}")
    with pytest.raises(TemplateRefusal, match=f"leaves out what the {role} message says"):
        render_chat(ChatTemplate(without), chat, END)


@pytest.mark.parametrize(
    "content",
    ["m.content | tojson", "m.content.split('</think>')[-1]", "m.content | replace('1', 'one')"],
)
def test_a_turn_in_another_form_is_not_left_out(content: str) -> None:
    source = PLAIN.replace("m.content", content)
    text, learned, _ = render_chat(ChatTemplate(source), WITH_RESULT, END)
    assert len(learned) == 2 and text.count("<|im_end|>") == len(WITH_RESULT)


ASKED = [Message("user", "Q?"), Message("assistant", "A."), Message("user", "R?")]
TWICE = [*ASKED, Message("assistant", "B.")]
CALLS = '[{"type":"function","function":{"name":"weather","arguments":{"city":"Bern"}}}]'
WITH_CALL = [
    Message("user", "Q?"),
    Message("assistant", "", tool_calls=CALLS),
    Message("tool", "12"),
    Message("assistant", "B."),
]
THOUGHT = [m if m.role == "user" else m._replace(reasoning="so") for m in TWICE]
HEAD = "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
TURN = "<|start|>{{ m.role }}\n{{ m.content }}"
CALL_OF = (
    "{% for c in m.tool_calls %}<|call|>{{ c.function.name }}{{ c.function.arguments }}{% endfor %}"
)
SPECIAL = re.compile(r"<\|[a-z]+\|>")


@cases(r"""
    name | begin | turn | end | learned
    # a token ends the conversation, and another one each turn
    harmony | "" | "<|end|>" | "<|return|>" | ["A.<|end|>", "B.<|return|>"]
    # the conversation has a token behind its last turn
    phi | "" | "<|end|>\n" | "<|end|>\n<|eos|>" | ["A.<|end|>", "B.<|end|>"]
    # the next turn begins with the token that ends this one
    glm | "" | "" | "" | ["A.<|start|>", "B."]
    # no special token ends a turn
    plain | "" | "\n###\n" | "\n###\n" | ["A.\n###\n<|start|>", "B.\n###\n"]
""")
def test_the_token_that_ends_a_turn_is_learned_where_it_stands(
    name: str, begin: str, turn: str, end: str, learned: list[str]
) -> None:
    last = f"{{{{ {end!r} if loop.last and not add_generation_prompt else {turn!r} }}}}"
    source = f"{{% for m in messages %}}{TURN}{last}{{% endfor %}}{HEAD}"
    text, spans, _ = render_chat(ChatTemplate(source), TWICE, SPECIAL)
    assert [text[a:b] for a, b in spans] == learned


@pytest.mark.parametrize(
    ("opened", "learned"),
    [
        ("<think>\n", ["so</think>A.<|end|>", "so</think>B.<|end|>"]),
        ("<|think|>", ["so</think>A.<|end|>", "so</think>B.<|end|>"]),
        ("<think>\n\n</think>", ["so</think>A.<|end|>", "so</think>B.<|end|>"]),
    ],
    ids=["a line", "a special token", "closed"],
)
def test_what_the_generation_prompt_opens_is_not_learned(opened: str, learned: list[str]) -> None:
    thought = "{% if m.thinking %}{{ think }}{{ m.thinking }}</think>{% endif %}"
    turn = f"<|start|>{{{{ m.role }}}}\n{thought}{{{{ m.content }}}}<|end|>\n"
    source = f"{{% for m in messages %}}{turn}{{% endfor %}}{HEAD}".replace(
        "assistant\n{% endif %}", f"assistant\n{{{{ {opened!r} }}}}{{% endif %}}"
    )
    think = opened.removesuffix("\n</think>")
    template = ChatTemplate(source, (("think", think),))
    text, spans, _ = render_chat(template, THOUGHT, SPECIAL)
    assert [text[a:b] for a, b in spans] == learned


def test_the_head_of_a_turn_may_be_written_by_the_question_before_it() -> None:
    """As of DeepSeek, whose answers to the results of tools have no head of their own."""
    source = (
        "{% for m in messages %}{% if m.role == 'user' %}<|user|>{{ m.content }}<|assistant|>"
        "{% elif m.role == 'tool' %}<|result|>{{ m.content }}<|results|>"
        "{% elif m.content is none %}" + CALL_OF + "<|calls|><|end|>"
        "{% else %}{{ m.content }}<|end|>{% endif %}{% endfor %}"
    )
    text, spans, _ = render_chat(ChatTemplate(source), WITH_CALL, SPECIAL)
    called = '<|call|>weather{"city": "Bern"}<|calls|><|end|>'
    assert text == f"<|user|>Q?<|assistant|>{called}<|result|>12<|results|>B.<|end|>"
    assert [text[a:b] for a, b in spans] == [called, "B.<|end|>"]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{{ c.function.arguments | tojson }}", '{"city": "Bern"}'),
        ("{{ c.function.arguments }}", '{"city": "Bern"}'),
        ("{{ '=' + c.function.arguments + '.' }}", '={"city": "Bern"}.'),
        ("{{ c.function.arguments.city }}", "Bern"),
        ("{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}", "city=Bern"),
    ],
)
@pytest.mark.parametrize(
    "calls", [CALLS, CALLS.replace('{"city":"Bern"}', '"{\\"city\\": \\"Bern\\"}"')]
)
def test_arguments_are_an_object_and_a_text(written: str, said: str, calls: str) -> None:
    call = CALL_OF.replace("{{ c.function.arguments }}", written)
    source = f"{{% for m in messages %}}{TURN}{call}<|end|>{{% endfor %}}{HEAD}"
    chat = [m._replace(tool_calls=calls) if m.tool_calls else m for m in WITH_CALL]
    text, spans, _ = render_chat(ChatTemplate(source), chat, SPECIAL)
    assert [text[a:b] for a, b in spans] == [f"<|call|>weather{said}<|end|>", "B.<|end|>"]


@pytest.mark.parametrize("source", [CHATML, PLAIN], ids=["generation", "prefix"])
def test_a_turn_that_is_marked_otherwise_is_not_learned(source: str) -> None:
    chat = [*TWICE[:1], TWICE[1]._replace(about='{"learned":false}'), *TWICE[2:]]
    text, spans, _ = render_chat(ChatTemplate(source), chat, END)
    assert [text[a:b] for a, b in spans] == ["B.<|im_end|>"]


@pytest.mark.parametrize("source", [CHATML, PLAIN], ids=["generation", "prefix"])
def test_a_turn_has_its_weight_if_the_source_says_so(source: str) -> None:
    chat = [*TWICE[:1], TWICE[1]._replace(about='{"learned":0.07}'), *TWICE[2:]]
    text, spans, weights = render_chat(ChatTemplate(source, learn="weights"), chat, END)
    assert [text[a:b] for a, b in spans] == ["A.<|im_end|>", "B.<|im_end|>"]
    assert weights == [7, 100]
    assert render_chat(ChatTemplate(source), TWICE, END).weights == [100, 100]
    with pytest.raises(TemplateRefusal, match="message 1 has the weight 0.07, which a source with"):
        render_chat(ChatTemplate(source), chat, END)


@pytest.mark.parametrize("source", [CHATML, PLAIN], ids=["generation", "prefix"])
def test_messages_of_other_roles_are_learned_if_the_source_says_so(source: str) -> None:
    chat = [*TWICE[:2], TWICE[2]._replace(about='{"learned":false}'), *TWICE[3:], *TWICE[:1]]
    questions = ["Q?<|im_end|>", "Q?<|im_end|>"]
    for roles, expected in (
        (("user",), questions),
        (("assistant", "user"), [questions[0], "A.<|im_end|>", "B.<|im_end|>", questions[1]]),
    ):
        text, spans, weights = render_chat(ChatTemplate(source, roles=roles), chat, END)
        assert [text[a:b] for a, b in spans] == expected
        assert weights == [100] * len(expected)
    changed = source.replace("m.content", "m.content | replace('Q', 'q')")
    if source == PLAIN:
        with pytest.raises(TemplateRefusal, match="not known what is learned of it"):
            render_chat(ChatTemplate(changed, roles=("user",)), chat, END)


@pytest.mark.parametrize("source", [CHATML, PLAIN], ids=["generation", "prefix"])
def test_only_the_last_answer_is_learned_if_the_source_says_so(source: str) -> None:
    for chat in (TWICE, [*TWICE, Message("user", "more?")]):
        text, spans, _ = render_chat(ChatTemplate(source, learn="last"), chat, END)
        assert [text[a:b] for a, b in spans] == ["B.<|im_end|>"]
    unlearned = [*TWICE[:3], TWICE[3]._replace(about='{"learned":false}')]
    assert render_chat(ChatTemplate(source, learn="last"), unlearned, END).learned == []


def test_each_turn_is_learned_in_a_conversation_that_ends_there() -> None:
    chat = [
        *WITH_TOOLS[:2],
        *THOUGHT,
        Message("user", "S?"),
        *WITH_CALL[1:],
        Message("user", "Bye"),
    ]
    found = conversations_of_turns(chat)
    assert [len(each) for each in found] == [4, 6, 10]
    for each, first in zip(found, (2, 4, 6), strict=True):
        assert [m._replace(about="") for m in each] == chat[: len(each)]
        unlearned = [m.about == '{"learned": false}' for m in each]
        assert unlearned == [number < first for number in range(len(each))]


def test_a_turn_of_which_nothing_is_learned_has_no_conversation() -> None:
    unlearned = TWICE[1]._replace(about='{"learned":false}')
    assert [len(each) for each in conversations_of_turns([ASKED[0], unlearned, *TWICE[2:]])] == [4]
    assert conversations_of_turns([ASKED[0], unlearned]) == [[ASKED[0], unlearned]]


def test_the_reasoning_of_a_turn_that_is_split_is_not_left_out() -> None:
    last = "{% if loop.last %}{{ m.reasoning_content }}|{% endif %}{{ m.content }}"
    template = ChatTemplate(PLAIN.replace("{{ m.content }}", last), is_split=True)
    for chat in conversations_of_turns(THOUGHT):
        text, [(start, stop)], _ = render_chat(template, chat, END)
        assert text[start:stop] == f"so|{chat[-1].content}<|im_end|>"
    [twice] = conversations_of_turns([*THOUGHT[:2], THOUGHT[3]])
    with pytest.raises(TemplateRefusal, match="the assistant message says as reasoning"):
        render_chat(template, twice, END)


def test_earlier_reasoning_may_be_left_out_by_a_template_that_knows_it() -> None:
    last = "{% if loop.last %}{{ m.reasoning_content }}|{% endif %}{{ m.content }}"
    source = PLAIN.replace("{{ m.content }}", last)
    text, spans, _ = render_chat(ChatTemplate(source), THOUGHT, END)
    assert [text[a:b] for a, b in spans] == ["A.<|im_end|>", "so|B.<|im_end|>"]
    with pytest.raises(TemplateRefusal, match="the assistant message says as reasoning"):
        render_chat(ChatTemplate(PLAIN), [*THOUGHT[:3], TWICE[3]], END)
    for other in (PLAIN, source.replace("loop.last", "loop.first")):
        with pytest.raises(TemplateRefusal, match="the assistant message says as reasoning"):
            render_chat(ChatTemplate(other), THOUGHT, END)


@cases(r"""
    about | role | fate
    {"name": "Ann"} | user | refused
    {"channel": "analysis"} | assistant | refused
    {"name": "weather", "tool_call_id": "c1"} | tool | rendered
""")
def test_what_is_said_about_a_message_is_rendered(about: Any, role: str, fate: str) -> None:
    chat = [*TWICE, Message(role, "12", about=json.dumps(about)), Message("assistant", "C.")]
    if fate == "refused":
        with pytest.raises(TemplateRefusal, match=f"which is said about the {role} message"):
            render_chat(ChatTemplate(PLAIN), chat, END)
    else:
        assert len(render_chat(ChatTemplate(PLAIN), chat, END).learned) == 3


def test_a_template_that_leaves_out_a_call_or_an_option_refuses() -> None:
    with pytest.raises(TemplateRefusal, match="the assistant message says in calls"):
        render_chat(ChatTemplate(PLAIN), WITH_CALL, END)
    options = Message("options", '{"custom":"Be kind.","thinking":false}')
    with pytest.raises(TemplateRefusal, match="leaves out `custom`"):
        render_chat(ChatTemplate(PLAIN), [options, *TWICE], END)
    assert (
        "Be kind." in render_chat(ChatTemplate("{{ custom }}" + PLAIN), [options, *TWICE], END)[0]
    )


def test_the_clock_stands_still() -> None:
    source = "{{ strftime_now('%d %b %Y') }}" + PLAIN
    assert render_chat(ChatTemplate(source), TWICE, END).text.startswith("26 Jul 2024<|im_start|>")


def test_chatml_has_reasoning_and_calls() -> None:
    chat = [m._replace(reasoning="so") if m.tool_calls else m for m in WITH_CALL]
    text, spans, _ = render_chat(ChatTemplate(CHATML), chat, END)
    called = '<tool_call>\n{"name":"weather","arguments":{"city":"Bern"}}\n</tool_call>'
    thought = f"<think>\nso\n</think>\n\n{called}<|im_end|>"
    assert [text[a:b] for a, b in spans] == [thought, "B.<|im_end|>"]


TEXTS = st.text("aA 1\n<|>.{}é", max_size=6).map(lambda text: f"x{text}")
MARKED = PLAIN.replace(
    "{{ m.content }}<|im_end|>\n",
    "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}"
    "{% else %}{{ m.content }}<|im_end|>{% endif %}{{ '\n' }}",
)


@given(
    turns=st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), TEXTS), max_size=7),
    unlearned=st.sets(st.integers(0, 6)),
)
def test_what_is_learned_without_marks_is_what_a_template_would_mark(
    turns: list[tuple[str, str]], unlearned: set[int]
) -> None:
    chat = [
        Message(role, text, about='{"learned":false}' if number in unlearned else "")
        for number, (role, text) in enumerate([("user", "x"), *turns])
    ]
    assert render_chat(ChatTemplate(PLAIN), chat, END) == render_chat(
        ChatTemplate(MARKED), chat, END
    )


def test_a_template_that_asks_for_tools_and_documents_is_tried_with_none_of_them() -> None:
    asking = "{% if tools is not none or documents is not none %}{{ 1 / 0 }}{% endif %}"
    config = TokenizerConfig(chat_template=asking + PLAIN)
    assert find_template(config, Path()).source == asking + PLAIN
    with pytest.raises(TokenizerError, match="does not render a question and its answer"):
        find_template(TokenizerConfig(chat_template="{{ 1 / 0 }}"), Path())
