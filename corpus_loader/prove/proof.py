"""Proofs: trainings that are killed and started again, until all of their samples are learned."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from corpus_loader.loader import CorpusLoader
from corpus_loader.prove.plan import LASTS, MOST_BATCH, Job, Request, plan_start
from corpus_loader.prove.ranks import LOG, RESULT, run_ranks

MOST_FAULTS = 3  # starts that hang or fail, after which a proof is given up
LOG_LINES = 40  # of ranks that fail, to tell why
NEAR = 0.01  # of a count that went through float32


class Samples(NamedTuple):
    """Samples of a training: those that were learned, lost, and learned more than once."""

    learned: int
    lost: int
    twice: int


@dataclass
class Proof:
    """What came of a trainer: samples of each training; what starts that hung or failed said."""

    trainer: str
    kills: int = 0
    starts: int = 0
    trainings: int = 0
    hung: int = 0
    ranks: set[int] = field(default_factory=set)
    samples: list[Samples] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.faults or any(one.lost or one.twice for one in self.samples))


def prove(request: Request, proof: Proof, loop: str, folder: Path) -> None:
    """Train and kill until there were so many kills, each training to its end."""
    total = CorpusLoader(request.store, request.phase, batch_size=1).split.epoch_samples
    while proof.kills < request.kills and len(proof.faults) < MOST_FAULTS:
        last = LASTS[proof.trainings % len(LASTS)]
        own = folder / f"{proof.trainer}-{proof.trainings}"
        own.mkdir()
        run_training(proof, Job(request, total, last, loop, own))


def run_training(proof: Proof, job: Job) -> None:
    """Run a training from its first start to its end, and add what it learned to a proof."""
    request, result, end = job.request, job.folder / RESULT, "killed"
    proof.trainings += 1
    while end == "killed" and not result.exists():
        start = plan_start(f"{request.seed} {proof.trainer} {proof.starts}", request.ranks)
        if proof.kills == request.kills:
            start = start._replace(kill_at=0)
        end = run_ranks(job, start)
        proof.starts += 1
        # A kill between the last sample and the end of the process interrupts no training.
        proof.kills += end == "killed" and not result.exists()
        proof.hung += end == "hung"
        proof.ranks.add(start.ranks)
    if end in ("hung", "failed") or not result.exists():
        lines = (job.folder / LOG).read_text(errors="replace").splitlines()[-LOG_LINES:]
        what = f"{proof.trainer}, start {proof.starts}, {start.ranks} ranks: {end}"
        proof.faults.append("\n  ".join([what, *lines]))
    if result.exists():
        found = json.loads(result.read_text())
        most_dropped = 0 if job.last else MOST_BATCH * request.ranks - 1
        times = np.array(found["times"]).reshape(-1, job.samples)
        proof.samples.append(judge(times, found["cursor"], most_dropped))


def judge(times: npt.NDArray[np.float64], cursor: int, most_dropped: int) -> Samples:
    """Count the samples of a training.

    times [epochs, samples]: how often each was learned; cursor: samples of all epochs before the
    place of the loader, which will give those after it; most_dropped: samples that may be left out
    at the end of an epoch.
    """
    is_given = np.arange(times.size).reshape(times.shape) < cursor
    lost = is_given & (times < 1 - NEAR)
    is_left_out = np.flip(np.logical_and.accumulate(np.flip(times < NEAR, 1), 1), 1)
    is_left_out[:, : times.shape[1] - most_dropped] = False
    lost &= ~is_left_out
    twice = times > np.where(is_given, 1, 0) + NEAR
    return Samples(*(int(which.sum()) for which in (times > NEAR, lost, twice)))
