"""Options that the examples share, and the loader that they ask for."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch

from corpus_loader import CorpusLoader, LoaderOptions
from corpus_loader.torch_dataset import CorpusDataLoader, CorpusDataset

HAS_GPU = torch.cuda.is_available()


def parse(description: str | None, *, can_validate: bool = False) -> argparse.Namespace:
    """Read the command line of an example."""
    parser = argparse.ArgumentParser(description=(description or "").split("\n")[0])
    parser.add_argument("store", help="folder or URL of the corpus")
    parser.add_argument("--phase", default="general")
    parser.add_argument("--steps", type=int, default=20, help="steps of the optimizer, in all")
    parser.add_argument("--batch-size", type=int, default=2, help="samples of a rank")
    parser.add_argument("--accumulate", type=int, default=2, help="batches of a step")
    parser.add_argument("--out", type=Path, default=Path("checkpoints"), help="for checkpoints")
    if can_validate:
        parser.add_argument("--validate-every", type=int, help="steps; the corpus needs `holdout`")
    return parser.parse_args()


def open_batches(options: argparse.Namespace, rank: int, world_size: int) -> CorpusDataLoader:
    """Open the batches of one rank."""
    return open_split(options, rank, world_size, phase=options.phase)


def open_validation(options: argparse.Namespace, rank: int, world_size: int) -> CorpusDataLoader:
    """Open what is held out of training, for one rank."""
    return open_split(options, rank, world_size, split="validation")


def open_split(
    options: argparse.Namespace, rank: int, world_size: int, **which: Any
) -> CorpusDataLoader:
    """Open a phase, or what is held out, with its documents."""
    loader = CorpusLoader(
        options.store,
        rank=rank,
        world_size=world_size,
        batch_size=options.batch_size,
        options=LoaderOptions(with_documents=True),
        **which,
    )
    return CorpusDataLoader(CorpusDataset(loader), pin_memory=HAS_GPU)
