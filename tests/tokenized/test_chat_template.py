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
