"""Text that a chat template renders, and the spans of it that are learned."""

from prelude import pytest, re

from assets.text.chat_messages import TOOLS, Message
from assets.tokenized.chat_template_files import CHATML, ChatTemplate, TemplateRefusal, render_chat

END = re.compile(re.escape("<|im_end|>"))
CHAT = [Message("user", "Hi"), Message("assistant", "Yes."), Message("user", "Bye")]
PLAIN = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.mark.parametrize("source", [CHATML, PLAIN], ids=["generation", "prefix"])
def test_content_and_end_of_turn_are_learned(source: str) -> None:
    text, learned = render_chat(ChatTemplate(source), CHAT, END)
    assert [text[a:b] for a, b in learned] == ["Yes.<|im_end|>"]


GREETED = [Message("assistant", "Hello."), *CHAT]


@pytest.mark.parametrize(
    "before",
    ["", "{{ 'Be kind.\n' if messages[0].role != 'system' }}", "{{ messages[0].content[:0] }}"],
    ids=["nothing", "a preamble", "none of no messages"],
)
def test_a_turn_that_begins_is_learned_as_later_ones_are(before: str) -> None:
    text, learned = render_chat(ChatTemplate(before + PLAIN), GREETED, END)
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
    text, learned = render_chat(ChatTemplate(CHATML), WITH_TOOLS, END)
    system = 'Brief.\n\n<tools>\n{"name":"weather"}\n</tools>'
    assert text.startswith(f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\nHi")
    assert [text[a:b] for a, b in learned] == ["Yes.<|im_end|>"]


@pytest.mark.parametrize(
    ("source", "messages", "said"),
    [
        (PLAIN, WITH_TOOLS, "does not render `tools`"),
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
    text, learned = render_chat(ChatTemplate(source), WITH_RESULT, END)
    assert len(learned) == 2 and text.count("<|im_end|>") == len(WITH_RESULT)
