"""`eu`: the public summary of training content by the template for Article 53(1)(d) of the AI Act.

Sections are those of July 2025; docs/disclose.md tells what was compared with the official text.
"""

from __future__ import annotations

from typing import Any

from pipeline_defs.commands.share.facts import Facts
from pipeline_defs.commands.share.forms.markdown import filled, period

OFFICIAL = (
    *("bg", "cs", "da", "de", "el", "en", "es", "et", "fi", "fr", "ga", "hr"),
    *("hu", "it", "lt", "lv", "mt", "nl", "pl", "pt", "ro", "sk", "sl", "sv"),
)
BANDS = ("Less than 1 billion", "1 billion to 10 trillion", "More than 10 trillion")
LARGE = 0.03  # of the text of all public data sets together: docs/disclose.md


def render(facts: Facts) -> str:
    """Return the summary."""
    tokens = facts.told("corpus.tokens")
    found = {row[0].split("-")[0] for row in facts.told("corpus.languages")}
    sizes = {source: facts.of(source, "text_bytes") for source in facts.sources_of("public")}
    return filled(
        "eu",
        facts,
        size_band=BANDS[(tokens >= 10**9) + (tokens > 10**13)] + " tokens",
        kinds=sorted({facts.of(source, "domain") for source in facts.sources}),
        latest=latest(facts),
        official=sorted(found.intersection(OFFICIAL)),
        large_share=f"{LARGE:.0%}",
        large=[source for source, size in sizes.items() if size > LARGE * sum(sizes.values())],
    )


def latest(facts: Facts) -> Any:
    """Return the last date of collection, or the keys to set."""
    dates = [facts.of(source, "collected") for source in facts.sources]
    untold = [date for date in dates if isinstance(date, str)]
    return untold or period(max(last for _, last in dates))
