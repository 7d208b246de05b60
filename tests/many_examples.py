"""Random tests that take seconds: CI has a tenth of their examples, `make faults` all."""

from __future__ import annotations

from hypothesis import settings


def many_examples(number: int) -> settings:
    """So many examples with --hypothesis-profile=search, else a tenth of them, and at least 5."""
    is_search = settings.get_current_profile_name() == "search"
    return settings(max_examples=number if is_search else max(5, number // 10))
