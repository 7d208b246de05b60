"""Read input files for their digests while `corpus build` imports Dagster, on a core that is idle.

`raw` plans with these digests: 1 GB in the page cache takes 0.3 s of CPU. Those of a source are
kept when all of its files are read, as after an observation; planning reads the others.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from assets.raw.places.observed_inputs import observe_inputs
from resources.corpus import Corpus
from resources.engine.fork_server import end_with_parent


@contextmanager
def early_digests(corpus: Corpus) -> Iterator[None]:
    """Read files in a process of its own, as many as it reads in the meantime.

    It is killed at the end: planning never waits for it, nor reads a file beside it.
    """
    reader = multiprocessing.get_context("fork").Process(
        target=read_local_sources, args=(corpus,), daemon=True
    )
    reader.start()
    try:
        yield
    finally:
        reader.kill()
        reader.join()


def read_local_sources(corpus: Corpus) -> None:
    """Read the files of the sources on this machine; planning reports what is wrong with them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the build ends this
    end_with_parent()
    for source in corpus.settings.sources:
        if not any("://" in place for place in source.where):
            with suppress(Exception):
                observe_inputs(corpus, source.name, {})
