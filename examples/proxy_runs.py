"""Train a small model on each mixture of a swarm, and measure it on what is held out.

    corpus mix swarm --tokens 150000 --runs 16            # swarm.yaml, swarm-ratios.csv
    corpus build --config swarm.yaml
    python examples/proxy_runs.py corpus_store swarm-ratios.csv swarm-metrics.csv
    corpus mix fit swarm-ratios.csv swarm-metrics.csv

The corpus needs `holdout`. A metric is the loss on what is held out of one source, in nats a token.
Every run begins with the same weights, and trains for one epoch of its phase with a rate that falls
to a tenth. On two cores, 16 runs of 150,000 tokens of the sample corpus take six minutes of CPU,
with `tokenizer.vocab_size: 4000` and `buckets.sequence_length: 512`. In earnest, on a GPU:

    ... --width 512 --heads 8 --layers 8 --batch-size 64   # of runs of 500 million tokens

A run that is in the metrics already is not repeated: start the command again after an interruption,
or on another machine with other rows of the ratios.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from pathlib import Path

import torch
from train_gpt import DEVICE, Shape, losses_by_source, start

from corpus_loader import CorpusLoader, LoaderOptions

WITH_DOCUMENTS = LoaderOptions(with_documents=True)
LAST_RATE = 0.1  # of the first


def read_runs(path: Path) -> list[str]:
    """Names of the runs in a table; none if there is no such file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [row["run"] for row in csv.DictReader(file)]


def measure(options: argparse.Namespace, run: str) -> dict[str, float]:
    """Train on the phase of a run; its loss on what is held out of each source."""
    size = options.batch_size
    loader = CorpusLoader(options.store, run, batch_size=size, options=WITH_DOCUMENTS)
    sizes = {size: getattr(options, size) for size in ("width", "heads", "layers")}
    training = start(loader, device=options.device, **sizes)
    steps = options.steps or loader.mixture.epoch_samples // size
    if not steps:
        raise ValueError(f"{run} has fewer samples than a batch of {size}: make longer runs")
    falling = torch.optim.lr_scheduler.LinearLR(training.optimizer, 1, LAST_RATE, steps)
    for _, batch in zip(range(steps), training.batches(), strict=False):
        training.step(*batch)
        falling.step()
    held_out = CorpusLoader(
        options.store, batch_size=size, options=WITH_DOCUMENTS, split="validation"
    )
    return losses_by_source(training.model, held_out)


def main() -> None:
    """Train the runs that have no metrics, and add a row for each as it ends."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("store", help="folder of the corpus")
    parser.add_argument("ratios", type=Path, help="written by `corpus mix swarm`")
    parser.add_argument("metrics", type=Path, help="to write")
    parser.add_argument("--steps", type=int, help="default: one epoch of the phase")
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--device", type=torch.device, default=DEVICE)
    for size in ("width", "heads", "layers"):
        parser.add_argument(f"--{size}", type=int, default=getattr(Shape, size))
    options = parser.parse_args()
    done = read_runs(options.metrics)
    for run in read_runs(options.ratios):
        if run in done:
            continue
        began = time.perf_counter()
        losses = measure(options, run)
        with options.metrics.open("a", newline="") as file:
            writer = csv.DictWriter(file, ["run", *losses])
            if not file.tell():
                writer.writeheader()
            writer.writerow({"run": run, **losses})
        told = ", ".join(f"{source} {loss:.3f}" for source, loss in losses.items())
        sys.stdout.write(f"{run}: {told} ({time.perf_counter() - began:.0f} s)\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
