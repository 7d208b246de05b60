"""DDP in a device mesh on a corpus, as torchtitan's loop does it; run it again to go on.

    pip install --find-links dist 'tokenmill-loader[torch]'  # after `make wheels`
    torchrun --nproc-per-node 4 examples/train_mesh.py corpus_store --steps 5

Half of the processes, if they are even in number, are for tensor parallelism: they get the samples
of their neighbour, as `rank_of(mesh)` says. Checkpoints are torch.distributed.checkpoint's.
"""

from __future__ import annotations

import json
import os

import torch
import torch.distributed as dist
from options import HAS_GPU, open_batches, parse
from small_model import SmallModel, loss_of
from torch.distributed import checkpoint
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

from corpus_loader.trainers.forms import next_token
from corpus_loader.trainers.mesh import rank_of


def join() -> torch.device:
    """Join the group of processes; return the device of this one."""
    if HAS_GPU:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if HAS_GPU else "gloo")
    return torch.device("cuda" if HAS_GPU else "cpu")


def main() -> None:
    """Train a small model, with a checkpoint after every step."""
    options, device = parse(__doc__), join()
    tensor_parallel = 2 if dist.get_world_size() % 4 == 0 else 1
    shape = (dist.get_world_size() // tensor_parallel, tensor_parallel)
    mesh = init_device_mesh(device.type, shape, mesh_dim_names=("dp", "tp"))
    data = rank_of(mesh)
    batches = open_batches(options, data.rank, data.world_size)
    model = SmallModel(batches.dataset.loader.mixture.vocab_size).to(device)
    parallel = DistributedDataParallel(model, process_group=mesh.get_group("dp"))
    optimizer, taken = torch.optim.AdamW(model.parameters(), lr=1e-3), 0
    place, steps = options.out / "corpus_loader.json", 0
    if place.exists():
        saved = json.loads(place.read_text())
        steps = saved["steps"]
        weights, moments = get_state_dict(model, optimizer)
        state = {"model": weights, "optimizer": moments}
        checkpoint.load(state, checkpoint_id=options.out / f"step-{steps}")
        set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
        batches.load_state_dict(saved["loader"])
    while steps < options.steps:
        for batch in batches:
            inputs, labels = next_token({name: each.to(device) for name, each in batch.items()})
            with torch.autocast(device.type, torch.bfloat16, enabled=HAS_GPU):
                loss = loss_of(parallel(inputs["input"]), labels) / options.accumulate
            loss.backward()
            taken += 1
            if taken % options.accumulate:
                continue
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
            state = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer), strict=True))
            checkpoint.save(state, checkpoint_id=options.out / f"step-{steps}")
            if dist.get_rank() == 0:
                written = place.with_suffix(".new")
                written.write_text(json.dumps({"steps": steps, "loader": batches.state_dict()}))
                written.replace(place)
            if steps == options.steps:
                break
    del parallel  # else it may wait for threads of the group for ever
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
