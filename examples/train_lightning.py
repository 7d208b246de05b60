"""Lightning on a corpus; run it again to go on from the last checkpoint.

pip install --find-links dist 'tokenmill-loader[torch]' lightning  # after `make wheels`
torchrun --nproc-per-node 2 examples/train_lightning.py corpus_store --steps 10
"""

from __future__ import annotations

import os
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from options import HAS_GPU, open_batches, parse
from small_model import SmallModel, loss_of

from corpus_loader.trainers.forms import next_token
from corpus_loader.trainers.lightning_callback import LightningBatches


class Training(LightningModule):
    """One model, one loss."""

    def __init__(self, model: SmallModel) -> None:
        super().__init__()
        self.model = model

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        """Loss of a batch."""
        inputs, labels = batch
        return loss_of(self.model(inputs["input"]), labels)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Make the optimizer."""
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main() -> None:
    """Train a small model, with a checkpoint after every step."""
    options = parse(__doc__)
    rank, world_size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    corpus = open_batches(options, rank, world_size)
    batches = LightningBatches(corpus, form=next_token)
    saving = ModelCheckpoint(
        options.out, filename="step-{step}", every_n_train_steps=1, save_last=True
    )
    trainer = Trainer(
        accelerator="gpu" if HAS_GPU else "cpu",
        precision="bf16-mixed" if HAS_GPU else "32-true",
        devices=world_size,
        strategy="ddp" if world_size > 1 else "auto",
        max_steps=options.steps,
        accumulate_grad_batches=options.accumulate,
        callbacks=[batches.callback(), saving],
        logger=False,
        enable_progress_bar=False,
    )
    last = options.out / "last.ckpt"
    model = SmallModel(corpus.dataset.loader.mixture.vocab_size)
    trainer.fit(Training(model), batches, ckpt_path=str(last) if last.exists() else None)


if __name__ == "__main__":
    main()
