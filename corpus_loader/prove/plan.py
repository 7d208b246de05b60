"""What is done to a training at each of its starts, drawn from a seed."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, NamedTuple

EPOCHS = 2  # that are trained
MOST_BATCH = MOST_ACCUMULATED = MOST_STEPS = 3
MOST_EVENTS = 30  # of a rank until a kill
LASTS: tuple[dict[str, Any], ...] = ({}, {"pad_last": True}, {"drop_last": False})


class Request(NamedTuple):
    """What is proved, and how hard: the options of `python -m corpus_loader.prove`."""

    store: str
    phase: str
    kills: int
    seed: int
    ranks: int
    samples: int
    timeout: float


class Job(NamedTuple):
    """A training that is killed and started again.

    epoch_samples: of the phase; last: options of the loader for the end of an epoch; loop: the
    function that trains, as "module:function"; folder: of checkpoints.
    """

    request: Request
    epoch_samples: int
    last: dict[str, Any]
    loop: str
    folder: Path

    @property
    def samples(self) -> int:
        """Samples of an epoch that are read."""
        return min(self.epoch_samples, self.request.samples)


class Start(NamedTuple):
    """A start of a training: its processes, and when they are killed.

    save_every: steps of the optimizer; kill_at: the event of the rank `killer` after which all
    ranks are killed; pause_seconds: from then to the first kill; gap_seconds: from that to the
    others, which meanwhile go on.
    """

    ranks: int
    batch_size: int
    accumulate: int
    save_every: int
    kill_at: int
    killer: int
    pause_seconds: float
    gap_seconds: float


def plan_start(key: str, most_ranks: int) -> Start:
    """Draw a start: the same for the same key."""
    draw = Random(key)
    ranks = draw.randint(1, most_ranks)
    kill_at = draw.randint(1, MOST_EVENTS)
    return Start(
        ranks=ranks,
        batch_size=draw.randint(1, MOST_BATCH),
        accumulate=draw.randint(1, MOST_ACCUMULATED),
        save_every=draw.randint(1, MOST_STEPS),
        kill_at=kill_at,
        killer=draw.randrange(ranks),
        # The first event is the start itself: the kill comes while ranks join, or load.
        pause_seconds=draw.uniform(0, 1.0 if kill_at == 1 else 0.02),
        gap_seconds=draw.choice((0.0, draw.uniform(0, 0.1))),
    )
