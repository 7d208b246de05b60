"""Conversations that a chat template refuses: a source of which it refuses many fails by itself.

A template that wants turns to alternate, or has no place for a system message, would leave most of
a source out with no more than a count.
"""

from __future__ import annotations

from typing import Any

import polars as pl
from msgspec import UnsetType

from assets.tokenized.chat.encode_chats import REFUSED
from assets.tokenized.tokenized_records import TOKENIZED, TokenizedManifest
from resources.corpus import Corpus
from resources.store.records import Manifest
from resources.store.store import StoreError

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
