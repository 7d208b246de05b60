"""A process of its own, in which Polars has no threads, that looks at what early_kernels loads."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from assets.stages import used_stages
from pipeline_defs.early_kernels import early_kernels
from pipeline_defs.load_corpus import load_corpus
from resources.engine.ready_process import first_found, iterate_there

LOADED = ("numba", "assets.raw.kernels.json_lines", "assets.sharded.kernels.place_rows")
LONGEST_SECONDS = 120


def loaded() -> Iterator[int]:
    """Yield how many of the modules the process has."""
    yield sum(name in sys.modules for name in LOADED)


def look() -> str:
    """Return how much there is to compute, and how many modules are loaded in the end."""
    corpus = load_corpus()
    with early_kernels(corpus, list(used_stages(corpus.settings).values())):
        amount = first_found()
        if amount is None:
            return "none"
        end = time.monotonic() + (LONGEST_SECONDS if amount == "little" else 1)
        while (found := [*iterate_there(loaded)]) != [len(LOADED)] and time.monotonic() < end:
            time.sleep(0.05)
    return f"{amount} {found[0]}"


if __name__ == "__main__":
    sys.stdout.write(look())
