"""Chat template of a corpus, and the sources of whose conversations it refuses many.

The template is that of the config, of the files beside a loaded tokenizer, or ChatML. A source that
it refuses often fails by itself: a template that wants turns to alternate would leave most of a
source out with no more than a count.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
from msgspec import UnsetType

from assets.tokenized.chat_templates import ChatTemplate, TemplateRefusal
from assets.tokenized.render_chats import NOTHING, PROBE, Rendering
from assets.tokenized.tokenized_records import TOKENIZED, TokenizedManifest
from assets.tokenized.tokenizer import TokenizerError
from resources.corpus import Corpus
from resources.settings.named_files import read_named_file
from resources.settings.tokenizer import TokenizerConfig
from resources.store.records import Manifest
from resources.store.store import StoreError

CHATML = """\
{%- set ns = namespace(messages=messages) %}
{%- if tools %}
{{- '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' %}
{{- messages[0].content + '\\n\\n' }}
{%- set ns.messages = messages[1:] %}
{%- endif %}
{{- '<tools>' }}
{%- for tool in tools %}{{- '\\n' + (tool | tojson(separators=(',', ':'))) }}{%- endfor %}
{{- '\\n</tools><|im_end|>\\n' }}
{%- endif %}
{%- for message in ns.messages %}
{{- '<|im_start|>' + message['role'] + '\\n' }}
{%- if message['role'] == 'assistant' %}
{%- generation %}
{%- if message['reasoning'] %}
{{- '<think>\\n' + message['reasoning'] + '\\n</think>\\n\\n' }}
{%- endif %}
{{- message['content'] }}
{%- if message['tool_calls'] %}
{%- for call in message['tool_calls'] %}
{{- '\\n' if message['content'] or not loop.first }}
{{- '<tool_call>\\n{"name":' + (call.function.name | tojson) + ',"arguments":' }}
{{- (call.function.arguments | tojson(separators=(',', ':'))) + '}\\n</tool_call>' }}
{%- endfor %}
{%- endif %}
{{- '<|im_end|>' }}{% endgeneration %}
{%- else %}{{ message['content'] + '<|im_end|>' }}
{%- endif %}
{{- '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""
MOST_FILE_BYTES = 8 << 20
TOKENIZER_CONFIG, TEMPLATE_FILE = "tokenizer_config.json", "chat_template.jinja"
VARIABLES = ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token")


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
        Rendering(template, PROBE, NOTHING, "").text()
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


REFUSED = "refused_by_template"  # why a conversation is rejected
MOST_REFUSED = 0.05  # of a source's conversations, where `max_bad_share` gives no other share
SHOWN_REASONS = 5  # of a part
SHOWN_CHARACTERS = 300


def refusal_reasons(rejected: pl.DataFrame) -> dict[str, int]:
    """Count what a template said to the conversations that it refused (REJECTED_SCHEMA)."""
    said = rejected.filter(reason=REFUSED)["error"].str.slice(0, SHOWN_CHARACTERS)
    counts = said.value_counts(name="count").sort("count", "error", descending=[True, False])
    return dict(counts.head(SHOWN_REASONS).iter_rows())


def too_many_refused(corpus: Corpus, manifest: Manifest[Any, Any]) -> str | None:
    """Return why a manifest of `tokenized` is refused: the share that its template refuses."""
    name, stats = manifest.partition, manifest.stats
    refused = stats.rejected.get(REFUSED, 0)
    given = corpus.settings.source(name).max_bad_share
    most = MOST_REFUSED if given is None else given
    if refused <= most * stats.rows_in:
        return None
    reasons = stats.numbers.template_refusals
    said = {} if isinstance(reasons, UnsetType) else reasons
    first = max(said, key=lambda reason: (said[reason], reason), default="unknown")
    return (
        f"tokenized[{name}]: the chat template refuses {refused:,} of {stats.rows_in:,} "
        f"conversations ({refused / stats.rows_in:.1%}), above {most:.1%}, most often since: "
        f"{first}. Later stages do not read them. Name another template in "
        "tokenizer.chat_template, correct the conversations, or set `max_bad_share` of the "
        "source, and build again."
    )


def usable_tokenized(corpus: Corpus, source: str) -> TokenizedManifest:
    """Return the newest manifest of a source; StoreError if its chat template refuses too many."""
    manifest = corpus.store.newest(TOKENIZED, source)
    if reason := too_many_refused(corpus, manifest):
        raise StoreError(reason)
    return manifest
