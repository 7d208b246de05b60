"""Values of every preset as they are frozen in tests/golden/presets.yaml.

    python tests/frozen_presets.py      # writes the file again

Write it again only for a change that is meant: compare the lines that git shows with the source
that resources/settings/filtering/presets.py names, and give that source in the commit.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml


class _OnOneLine(yaml.SafeDumper):
    """One line per value, a list on one line."""


_OnOneLine.add_representer(
    list, lambda dumper, items: dumper.represent_sequence("tag:yaml.org,2002:seq", items, True)
)
FROZEN = Path(__file__).parent / "golden" / "presets.yaml"


def expanded(name: str) -> dict[str, Any]:
    """Return the settings of a preset, with the defaults of every section that it sets."""
    from resources.settings.filtering.filters import FilterConfig
    from resources.settings.filtering.presets import PRESETS

    layer = PRESETS[name]
    config = FilterConfig.model_validate({"presets": [name]}).model_dump(mode="json")
    rules = {group: config["rules"][group] for group in layer.get("rules", {})}
    sections = {key: config[key] for key in layer if key != "rules"}
    return {**sections, "rules": rules}


def frozen() -> dict[str, dict[str, Any]]:
    """Return what the file says."""
    presets: dict[str, dict[str, Any]] = yaml.safe_load(FROZEN.read_text(encoding="utf-8"))
    return presets


def write() -> None:
    """Write the values of all presets."""
    from resources.settings.filtering.presets import PRESETS

    values = {name: expanded(name) for name in PRESETS}
    text = yaml.dump(values, Dumper=_OnOneLine, sort_keys=False, allow_unicode=True, width=200)
    FROZEN.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    write()
