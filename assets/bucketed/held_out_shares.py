"""The share of each source that is held out: `holdout` asks for a share, or a number of tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from assets.deduped.index.ledger import Order
from resources.settings.holdout import MOST_SHARE
from resources.settings.pipeline import Settings


def shares_of(
    settings: Settings,
    before: Mapping[str, list[float]],
    tokens_of: Callable[[Sequence[str]], int],
) -> dict[str, Any]:
    """Return the config of a manifest: the share of each source, and of `tokens` what is kept.

    A number of tokens becomes a share once: `tokens` has both, by the source that asks for it, as
    `before` has them of the last run. Sources whose share is not known yet, as none of their
    documents has tokens, are missing. `tokens_of` returns the tokens that sources have.
    """
    shares, kept, askers = dict[str, float](), dict[str, list[float]](), askers_of(settings)
    for name, asker in askers.items():
        config = settings.source(name).holdout or settings.holdout
        if config is None or config.tokens is None:
            shares[name] = 0.0 if config is None else config.share or 0.0
            continue
        found = kept.get(asker) or before.get(asker)
        if found is None or found[0] != config.tokens:
            among = [each for each, other in askers.items() if other == asker]
            if not (tokens := tokens_of(among)):
                continue
            found = [config.tokens, min(MOST_SHARE, config.tokens / tokens)]
        kept[asker], shares[name] = found, found[1]
    return {"shares": shares, "tokens": kept}


def askers_of(settings: Settings) -> dict[str, str]:
    """Return by source the one whose `holdout` it has: itself, or "" for that of all."""
    return {source.name: source.name if source.holdout else "" for source in settings.sources}


def kept_in(settings: Settings, order: Order) -> dict[str, list[float]]:
    """Return the numbers of tokens that another build's ledger has, as `shares_of` takes them."""
    askers = askers_of(settings)
    return {
        askers[source]: [*part.holdout_tokens]
        for (source, _), part in order.items()
        if part.holdout_tokens is not None and source in askers
    }
