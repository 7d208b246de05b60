"""What a chat template renders, and what of it is learned."""

import re

import pytest

from assets.text.chat_messages import Message
from assets.tokenized.chat.chat_template import CHATML, ChatTemplate, TemplateRefusal, render_chat

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
