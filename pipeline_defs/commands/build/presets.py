"""`corpus presets`: the named lists of rules, or one of them as YAML."""

from __future__ import annotations

import sys
from typing import Annotated

import yaml
from cyclopts import Parameter

from assets.filtered.rules.rules import rules_for
from resources.errors import UsageError, unknown_name
from resources.settings.filtering.filters import FilterConfig
from resources.settings.filtering.presets import PRESETS


def presets(
    name: Annotated[str | None, Parameter(help="Preset to print as pipeline.yaml has it.")] = None,
    /,
) -> int:
    """Print the names of the presets and how many rules each sets, or one as YAML."""
    if name is None:
        for preset in PRESETS:
            rules = rules_for(FilterConfig.model_validate({"presets": [preset]}).rules)
            sys.stdout.write(f"{preset}: {len(rules)} rules\n")
        return 0
    if name not in PRESETS:
        raise UsageError(unknown_name("preset", name, PRESETS))
    sys.stdout.write(yaml.safe_dump(PRESETS[name], sort_keys=False))
    return 0
