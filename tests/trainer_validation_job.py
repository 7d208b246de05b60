"""Validation under the Trainer of transformers: what `evaluate` gives before and in a training.

    torchrun ... trainer_validation_job.py STORE OUT

writes OUT.RANK.json: the metrics of `evaluate`, and those logged after the first step.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM, TrainingArguments

from corpus_loader import CorpusLoader, LoaderOptions
from corpus_loader.torch_dataset import CorpusDataLoader, CorpusDataset
from corpus_loader.trainers.hugging_face_trainer import CorpusTrainer


def small_model() -> LlamaForCausalLM:
    """A model with the same random weights in every process."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16}
    heads = {"num_hidden_layers": 1, "num_attention_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=1000, **sizes, **heads))


def main() -> None:
    """Evaluate, and train for a step with an evaluation after it."""
    store, out = sys.argv[1:]
    args = TrainingArguments(
        out,
        max_steps=1,
        per_device_train_batch_size=2,
        eval_strategy="steps",
        eval_steps=1,
        use_cpu=True,
        report_to=[],
    )

    def batches(**what: Any) -> CorpusDataLoader:
        """The batches of this rank."""
        ranks = {"rank": args.process_index, "world_size": args.world_size}
        options = LoaderOptions(with_documents=True)
        return CorpusDataLoader(
            CorpusDataset(CorpusLoader(store, batch_size=2, options=options, **ranks, **what))
        )

    trainer = CorpusTrainer(
        small_model(), args, corpus=batches(), eval_dataset=batches(split="validation")
    )
    before = trainer.evaluate()
    trainer.train()
    logged = [one for one in trainer.state.log_history if one["step"] and "eval_loss" in one]
    found = {"before": before, "logged": logged, "again": trainer.evaluate()}
    Path(f"{out}.{args.process_index}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
