"""Find the chat template of a corpus: of the config, beside a loaded tokenizer, or ChatML."""

from __future__ import annotations

import json
from pathlib import Path

from assets.text.chat_messages import Message
from assets.tokenized.chat.chat_template import CHATML, ChatTemplate, TemplateRefusal, render_with
from assets.tokenized.tokenizer import TokenizerError
from resources.settings.named_files import read_named_file
from resources.settings.tokenizer import TokenizerConfig

MOST_FILE_BYTES = 8 << 20
TOKENIZER_CONFIG, TEMPLATE_FILE = "tokenizer_config.json", "chat_template.jinja"
VARIABLES = ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token")
PROBE = (Message("user", "Hello"), Message("assistant", "Hello"))


def find_template(config: TokenizerConfig, folder: Path) -> ChatTemplate:
    """Return the chat template; `folder` is what paths of the config are relative to.

    Raises NamedFileError for a file that is missing, and TokenizerError for a template that does
    not render a question and its answer.
    """
    beside = None if config.path is None else (folder / config.path).parent
    known = read_config(beside)
    source = source_of(config, folder, beside, known)
    variables = {
        "bos_token": config.begin_of_document or "",
        "eos_token": config.end_of_document,
    } | spelled_variables(known)
    template = ChatTemplate(source, tuple(sorted(variables.items())))
    try:
        render_with(template, PROBE, False)
    except TemplateRefusal as error:
        raise TokenizerError(
            f"the chat template does not render a question and its answer: {error}. Correct it, or "
            "name another one in tokenizer.chat_template."
        ) from error
    return template


def source_of(
    config: TokenizerConfig, folder: Path, beside: Path | None, known: dict[str, object]
) -> str:
    """Return the text of the template."""
    if config.chat_template is not None:
        if "{" in config.chat_template:
            return config.chat_template
        return read_named_file(folder / config.chat_template, MOST_FILE_BYTES).decode()
    if beside is None:
        return CHATML
    if (beside / TEMPLATE_FILE).is_file():
        return read_named_file(beside / TEMPLATE_FILE, MOST_FILE_BYTES).decode()
    given = known.get("chat_template")
    if isinstance(given, list):  # several by name
        named = {each.get("name"): each.get("template") for each in given if isinstance(each, dict)}
        given = named.get("default")
    if not isinstance(given, str):
        raise TokenizerError(
            f"{beside / TOKENIZER_CONFIG} has no chat template, which the sources of `kind: chat` "
            "need. Put the file of the tokenizer there, or set tokenizer.chat_template."
        )
    return given


def read_config(beside: Path | None) -> dict[str, object]:
    """Return tokenizer_config.json of a folder; an empty one if there is none."""
    if beside is None or not (beside / TOKENIZER_CONFIG).is_file():
        return {}
    try:
        content = json.loads(read_named_file(beside / TOKENIZER_CONFIG, MOST_FILE_BYTES))
    except ValueError as error:
        raise TokenizerError(f"{beside / TOKENIZER_CONFIG} is no JSON: {error}.") from error
    return content if isinstance(content, dict) else {}


def spelled_variables(known: dict[str, object]) -> dict[str, str]:
    """Return the special tokens that a template may name, as tokenizer_config.json spells them."""
    found = {}
    for name in VARIABLES:
        value = known.get(name)
        value = value.get("content") if isinstance(value, dict) else value
        if isinstance(value, str):
            found[name] = value
    return found
