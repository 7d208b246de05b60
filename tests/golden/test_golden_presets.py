"""Every value of every preset is frozen: a threshold, a way of counting, a list of words."""

import pytest
from frozen_presets import expanded, frozen

from resources.settings.filtering.presets import PRESETS

HINT = "if it is meant, run `python tests/frozen_presets.py` and give the source in the commit"


@pytest.mark.parametrize("name", PRESETS)
def test_no_value_of_a_preset_changes(name: str) -> None:
    assert expanded(name) == frozen().get(name), HINT


def test_no_preset_disappears() -> None:
    assert list(frozen()) == list(PRESETS), HINT
