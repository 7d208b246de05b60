"""Accelerate on a corpus; run it again to go on from the last checkpoint.

    pip install --find-links dist 'tokenmill-loader[torch]' accelerate  # after `make wheels`
    torchrun --nproc-per-node 2 examples/train_accelerate.py corpus_store --steps 10

The batches stay out of `prepare`: every rank reads its own samples, and nothing is broadcast.
"""

from __future__ import annotations

import json

import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device
from options import HAS_GPU, open_batches, parse
from small_model import SmallModel, loss_of

from corpus_loader.trainers.forms import next_token


def main() -> None:
    """Train a small model, with a checkpoint after every step."""
    options = parse(__doc__)
    accelerator = Accelerator(
        cpu=not HAS_GPU,
        mixed_precision="bf16" if HAS_GPU else "no",
        gradient_accumulation_steps=options.accumulate,
    )
    batches = open_batches(options, accelerator.process_index, accelerator.num_processes)
    model = SmallModel(batches.dataset.loader.mixture.vocab_size)
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-3))
    place, steps = options.out / "corpus_loader.json", 0
    if place.exists():
        saved = json.loads(place.read_text())
        steps = saved["steps"]
        accelerator.load_state(str(options.out / f"step-{steps}"))
        accelerator.step = 0  # of accumulated batches: ranks that are new would have another count
        batches.load_state_dict(saved["loader"])
    while steps < options.steps:
        for batch in batches:
            inputs, labels = next_token(
                send_to_device(batch, accelerator.device, non_blocking=True)
            )
            with accelerator.accumulate(model):
                loss = loss_of(model(inputs["input"]), labels)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            if not accelerator.sync_gradients:
                continue
            steps += 1
            accelerator.save_state(str(options.out / f"step-{steps}"))
            if accelerator.is_main_process:
                written = place.with_suffix(".new")
                written.write_text(json.dumps({"steps": steps, "loader": batches.state_dict()}))
                written.replace(place)
            if steps == options.steps:
                break
    accelerator.end_training()


if __name__ == "__main__":
    main()
