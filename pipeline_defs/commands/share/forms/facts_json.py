"""`json`: the table of facts, each with its manifests and its query; `--since` reads it."""

from __future__ import annotations

import msgspec

from pipeline_defs.commands.share.facts import Facts
from resources.store.records import to_json


def render(facts: Facts) -> str:
    """Return the facts as JSON."""
    return to_json(msgspec.to_builtins(facts)).decode()
