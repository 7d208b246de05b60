"""transformers' Trainer on a corpus; run it again to go on from the last whole checkpoint.

    pip install --find-links dist 'tokenmill-loader[torch]' transformers accelerate
    torchrun --nproc-per-node 2 examples/train_hugging_face.py corpus_store --steps 10

With any other number of processes it goes on at the same sample. With --validate-every 10, the loss
on the documents that are held out of training (`holdout`) is printed, in all and by source.
"""

from __future__ import annotations

from options import HAS_GPU, open_batches, open_validation, parse
from transformers import LlamaConfig, LlamaForCausalLM, TrainingArguments

from corpus_loader.trainers.hugging_face_trainer import CorpusTrainer


def main() -> None:
    """Train a very small Llama."""
    options = parse(__doc__, can_validate=True)
    options.out.mkdir(parents=True, exist_ok=True)
    args = TrainingArguments(
        str(options.out),
        max_steps=options.steps,
        per_device_train_batch_size=options.batch_size,
        gradient_accumulation_steps=options.accumulate,
        save_steps=1,
        eval_strategy="steps" if options.validate_every else "no",
        eval_steps=options.validate_every,
        use_cpu=not HAS_GPU,
        bf16=HAS_GPU,
        report_to=[],
        disable_tqdm=True,
    )
    batches = open_batches(options, args.process_index, args.world_size)
    held_out = None
    if options.validate_every:
        held_out = open_validation(options, args.process_index, args.world_size)
    mixture = batches.dataset.loader.mixture
    config = LlamaConfig(
        vocab_size=mixture.vocab_size,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
    )
    trainer = CorpusTrainer(LlamaForCausalLM(config), args, corpus=batches, eval_dataset=held_out)
    trainer.train(resume_from_checkpoint=True)


if __name__ == "__main__":
    main()
