"""A trained tokenizer that stays: what changed of the config that it was trained under."""

from __future__ import annotations

import json
from collections.abc import Collection, Container, Mapping, Sequence
from typing import Any, NamedTuple

from resources.settings.tokenizer import UNTRAINED, TokenizerConfig

MARKS = frozenset({"begin_of_document", "end_of_document"})  # put around documents, not trained
# Keys that a config leaves out at their defaults, which earlier versions had as well.
UNSTATED = {key: TokenizerConfig.model_fields[key].default for key in ("pattern", "digits")}
SHOWN_SOURCES = 5
RETRAIN_COMMAND = "corpus tokenizer retrain"


class Encoded(NamedTuple):
    """Documents of a source that are encoded: their number, text and tokens."""

    source: str
    documents: int
    text_bytes: int
    tokens: int


def config_of(config: TokenizerConfig) -> dict[str, Any]:
    """Return the JSON of the keys that a tokenizer and its marks are made of."""
    return config.model_dump(mode="json", exclude=set(UNTRAINED))


def training_changes(
    then: Mapping[str, Any], now: Mapping[str, Any], sources: Collection[str]
) -> dict[str, tuple[Any, Any]]:
    """Return (value then, value now) of the keys that would train another tokenizer.

    Keys that an earlier version did not have are no change, nor is the weight of a source that is
    gone: those of the others are relative to each other. Nor are special tokens beyond those of the
    config: `fill_in_the_middle` may be switched off again.
    """
    if then.get("path") is not None and now["path"] is None:
        return {"path": (then["path"], None)}
    then, now = {**UNSTATED, **then}, {**UNSTATED, **now}
    before = dict(then)
    if before.get("weights"):
        weights: Mapping[str, float] = before["weights"]
        before["weights"] = {name: weight for name, weight in weights.items() if name in sources}
    if "special_tokens" in before:
        before["special_tokens"] = before["special_tokens"][: len(now["special_tokens"])]
    return {
        key: (then[key], value)
        for key, value in now.items()
        if key in then and key not in MARKS and before[key] != value
    }


def refusal(
    changes: Mapping[str, tuple[Any, Any]], encoded: Sequence[Encoded], fill_tokens: Container[str]
) -> str:
    """Write why another tokenizer is not trained, what it would cost, and how to get it.

    `fill_tokens` are special tokens that `fill_in_the_middle` adds.
    """
    changed = ", ".join(
        f"{key} from {json.dumps(then)} to {json.dumps(now)}"
        for key, (then, now) in changes.items()
    )
    then, now = changes.get("special_tokens", ((), ()))
    is_for_filling = any(token in fill_tokens for token in now if token not in then)
    note = ", which fill_in_the_middle of a source adds to," if is_for_filling else ""
    keys = " and ".join(key + (note if key == "special_tokens" else "") for key in changes)
    return (
        f"tokenizer: pipeline.yaml changes {changed}, but the published tokenizer was made with "
        f"the former, and `retrain: never` keeps it. {cost(encoded)} Set {keys} back to keep it, "
        f"or run `{RETRAIN_COMMAND}` to train the next one."
    )


def cost(encoded: Sequence[Encoded]) -> str:
    """Write a sentence on what another tokenizer encodes again."""
    if not encoded:
        return "No source is encoded yet."
    return f"Another one would encode again {encoded_again(encoded)}."


def encoded_again(encoded: Sequence[Encoded]) -> str:
    """Write how much is encoded, in all and by source, the largest first."""
    largest = sorted(encoded, key=lambda each: (-each.tokens, each.source))
    shown = [f"{each.source} ({amount(each)})" for each in largest[:SHOWN_SOURCES]]
    if (more := len(encoded) - SHOWN_SOURCES) > 0:
        shown.append(f"{more:,} more")
    if len(encoded) == 1:
        return shown[0]
    counts = zip(*(each[1:] for each in encoded), strict=True)
    everything = Encoded("", *map(sum, counts))
    return f"{len(encoded):,} sources, {amount(everything)}: {', '.join(shown)}"


def amount(encoded: Encoded) -> str:
    """Write documents, tokens and MB of text."""
    return (
        f"{encoded.documents:,} documents, {encoded.tokens:,} tokens, "
        f"{encoded.text_bytes / 1e6:,.1f} MB of text"
    )
