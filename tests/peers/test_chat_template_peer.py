"""Conversations have the ids and the masks that transformers gives them."""

from chat_corpus import TOKENS, chat
from format_folders import peer
from prelude import pl, pytest
from tokenizers import Tokenizer

from assets.text.chat_messages import Message, join_messages
from assets.tokenized.chat_template_files import CHATML, ChatTemplate
from assets.tokenized.encode_chats import encode_chats
from assets.tokenized.encode_documents import TokenFormat
from assets.tokenized.encoders import load_encoders
from assets.tokenized.tokenizer import train_bpe
from resources.settings.tokenizer import TokenizerConfig

STRANGE = [("user", " spaces \n\n and 風車?"), ("assistant", "  été\n\n```\nx = {1: 2}\n```\n")]
TWO_ANSWERS = [("user", "a"), ("assistant", "one"), ("assistant", "two"), ("tool", "t")]
LLAMA = """\
{{ bos_token }}{% for message in messages %}[{{ message['role'] | upper }}]
{% if message['role'] == 'assistant' %}{% generation %}{{ message['content'] | trim }}<|im_end|>
{% endgeneration %}{% else %}{{ message['content'] }}
{% endif %}{% endfor %}"""


@pytest.mark.parametrize("template", [CHATML, LLAMA], ids=["chatml", "trimmed"])
def test_ids_and_masks_are_those_of_transformers(template: str) -> None:
    transformers = peer("transformers")
    config = TokenizerConfig(vocab_size=400, special_tokens=(*TOKENS, "<s>"))
    chats = [*(chat(number) for number in range(12)), STRANGE, TWO_ANSWERS]
    trained = train_bpe([[content for each in chats for _, content in each]], config)
    tokenizer = Tokenizer.from_str(trained)
    documents = pl.DataFrame(
        {
            "doc_id": [f"{number:032x}" for number in range(len(chats))],
            "text": [join_messages(Message(*turn) for turn in each) for each in chats],
            "lang": ["en"] * len(chats),
        }
    )
    form = TokenFormat(tokenizer.get_vocab_size(), tokenizer.token_to_id(TOKENS[0]))
    ours = encode_chats(
        documents,
        load_encoders(trained),
        form,
        ChatTemplate(template, (("bos_token", "<s>"),)),
    ).encoded

    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>")
    for each, ids, mask in zip(chats, ours["tokens"], ours["loss_mask"], strict=True):
        encoded = theirs.apply_chat_template(
            [{"role": role, "content": content} for role, content in each],
            chat_template=template,
            return_dict=True,
            return_assistant_tokens_mask=True,
        )
        assert ids.to_list() == [*encoded["input_ids"], form.end_id]
        assert mask.to_list() == [*map(bool, encoded["assistant_masks"]), False]
