"""`hf`: a dataset card of the Hugging Face hub: a header in YAML before the Markdown."""

from __future__ import annotations

import re
from typing import Any

import yaml

from pipeline_defs.commands.share.facts import HUB, Facts
from pipeline_defs.commands.share.forms.markdown import filled

CODE = re.compile(r"[a-z]{2,3}")  # of a language, as the hub takes it
UNITS = "KMBT"


def render(facts: Facts, **header: Any) -> str:
    """Return the card; `header` are more keys of its YAML, as `configs`."""
    known = yaml.safe_dump(header_of(facts) | header, sort_keys=False, allow_unicode=True)
    return f"---\n{known}---\n\n{filled('hf', facts)}"


def header_of(facts: Facts) -> dict[str, Any]:
    """Return the keys of the header that facts give."""
    links = [facts.known(f"sources.{source}.link") or "" for source in facts.sources]
    found = {
        "pretty_name": facts.known("disclosure.title"),
        "license": (facts.known("disclosure.license") or "unknown").lower(),
        "language": [r[0] for r in facts.told("corpus.languages") if CODE.fullmatch(r[0])],
        "size_categories": [size_category(facts.told("corpus.documents"))],
        "task_categories": ["text-generation"],
        "source_datasets": [link.removeprefix(HUB) for link in links if link.startswith(HUB)],
        "tags": ["tokenmill"],
    }
    return {key: value for key, value in found.items() if value}


def size_category(documents: int) -> str:
    """Return the hub's name of a number of documents: n<1K, 1K<n<10K, ... n>1T."""
    digits = max(3, len(str(documents)))
    low, high = (
        f"{10 ** (n % 3)}{UNITS[n // 3 - 1]}" for n in (min(digits, 13) - 1, min(digits, 12))
    )
    return "n<1K" if digits == 3 else f"{low}<n<{high}" if digits < 13 else "n>1T"
