"""Training loops that are wrong on purpose, for the proof that has to find it."""

from __future__ import annotations

import time
from typing import Any

import torch

from corpus_loader.prove import loops
from corpus_loader.prove.training import Trained, Training


def moved(job: Training, batches: int) -> Trained:
    """Save the loader's state of some batches later than what is learned, or before."""
    state, step = job.batches.state_dict, job.start.ranks * job.start.batch_size

    def of_other_batch() -> dict[str, Any]:
        found = state()
        return found | {"cursor": max(0, found["cursor"] + batches * step)}

    job.batches.state_dict = of_other_batch
    return loops.ddp(job)


def ahead(job: Training) -> Trained:
    """Save the state of the next batch."""
    return moved(job, 1)


def behind(job: Training) -> Trained:
    """Save the state before the last batch."""
    return moved(job, -1)


def leaking(job: Training) -> Trained:
    """Give the model all documents of a row."""
    form = job.form

    def in_one(batch: Any) -> dict[str, Any]:
        inputs = form(batch)
        return inputs | {"mask": torch.ones_like(inputs["mask"]).tril()}

    job.form = in_one
    return loops.ddp(job)


def stuck(job: Training) -> Trained:
    """Wait for a rank that does not come."""
    time.sleep(600)
    return loops.ddp(job)
