"""The state that a command publishes, and a line of standard error on what it is without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from assets.mixed.complete_state_files import CompleteState, complete_state
from pipeline_defs.commands.terminal import warn
from resources.corpus import Corpus

State = Annotated[
    str | None, Parameter(help="Tag of the state (default: the newest complete one).")
]


def state_to_publish(corpus: Corpus, tag: str | None, sources: Sequence[str] = ()) -> CompleteState:
    """Return what may go out, and say what is not in it; StoreError as `complete_state`."""
    state = complete_state(corpus, tag, sources)
    warn(state.without)
    return state
