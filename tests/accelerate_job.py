"""A job of two ranks: what each gets of a corpus under Accelerate, or under DDP alone.

    python accelerate_job.py OUT '[{...}, ...]'   with RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT

writes OUT.RANK.json: for each run asked for, the rows of every step and the states after them.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator, DataLoaderConfiguration
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from corpus_loader import CorpusLoader, LoaderOptions
from corpus_loader.torch_dataset import CorpusDataLoader, CorpusDataset

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
DEFAULTS = {
    "way": "accelerate",  # or "ddp"
    "what": {},  # of the corpus, beside the phase
    "ranks": False,  # CorpusLoader is told the rank and the world size
    "options": {},  # of the loader
    "config": {},  # of Accelerate's DataLoaders
    "workers": 0,
    "epochs": 1,
    "state": None,  # to resume from
}


def open_dataset(asked: dict[str, Any]) -> CorpusDataset:
    """The dataset that a run asks for."""
    split = {"rank": RANK, "world_size": WORLD} if asked["ranks"] else {}
    options = LoaderOptions(**asked["options"])
    what = split | asked["what"]
    return CorpusDataset(CorpusLoader(asked["store"], batch_size=4, options=options, **what))


def open_batches(asked: dict[str, Any], dataset: CorpusDataset, model: Any) -> tuple[Any, Any]:
    """(batches, model) as the way of the run has them, resumed from its state."""
    workers, state = asked["workers"], asked["state"]
    if asked["way"] == "ddp":
        own = CorpusDataLoader(dataset, num_workers=workers)
        if state:
            own.load_state_dict(state)
        return own, DistributedDataParallel(model)
    accelerator = Accelerator(
        cpu=True, dataloader_config=DataLoaderConfiguration(**asked["config"])
    )
    plain = DataLoader(dataset, batch_size=None, num_workers=workers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, _, batches = accelerator.prepare(model, optimizer, plain)
    if state:
        dataset.load_state_dict(state)
        if not asked.get("forgets_the_epoch"):
            batches.set_epoch(dataset.loader.epoch)
    return batches, model


def run(asked: dict[str, Any]) -> dict[str, Any]:
    """Train for some epochs; every step needs all ranks."""
    seen: dict[str, Any] = {"steps": [], "states": [], "repeated": [], "sources": []}
    try:
        dataset = open_dataset(asked)
        batches, model = open_batches(asked, dataset, torch.nn.Linear(1, 1))
        for _ in range(asked["epochs"]):
            for batch in batches:
                assert all(isinstance(value, torch.Tensor) for value in batch.values())
                model(batch["tokens"][:, :1].float()).mean().backward()
                seen["steps"].append(batch["tokens"][:, 0].tolist())
                seen["repeated"].append(batch["is_repeated"].tolist())
                seen["sources"].append(batch["sources"].tolist())
                seen["states"].append(dataset.state_at(batch["cursor"]))
        seen["own_state"] = dataset.state_dict()
    except Exception as error:  # noqa: BLE001  the other runs go on; the test reads it
        seen["error"] = f"{type(error).__name__}: {error}"
    return seen


def main() -> None:
    """Do the runs asked for, one after the other."""
    out, asked = sys.argv[1:]
    torch.distributed.init_process_group("gloo")
    seen = [run(DEFAULTS | one) for one in json.loads(asked)]
    Path(f"{out}.{RANK}.json").write_text(json.dumps(seen))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
