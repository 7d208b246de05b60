"""Training loops of trainers, as docs/loader.md shows them; see training.py for what they get."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from torch import distributed as dist  # noqa: TID253  whoever imports this module uses torch

from corpus_loader.prove.training import Trained, Training

Learn = Callable[[int, dict[str, Any]], bool]
OfFolder = Callable[[str], Any]


def ddp(job: Training) -> Trained:
    """DistributedDataParallel on gloo, with torch.distributed.checkpoint as torchtitan has it."""
    dist.init_process_group("gloo")
    trained = in_group(job)
    # DDP has to be gone by now: the last that holds the group ends its threads, which want the GIL
    # that DDP has. Of 32 trainings of two ranks, some 14 hung at their end.
    dist.destroy_process_group()
    return trained


def in_group(job: Training) -> Trained:
    """Train with DistributedDataParallel."""
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    from torch.nn.parallel import DistributedDataParallel

    model, accumulate = job.model(), job.start.accumulate
    parallel, optimizer = DistributedDataParallel(model), job.optimizer(model)

    def state() -> dict[str, Any]:
        weights, moments = get_state_dict(model, optimizer)
        return {"model_state_dict": weights, "optim_state_dict": moments}

    def load(folder: str) -> None:
        loaded = state()
        checkpoint.load(loaded, checkpoint_id=folder)
        set_state_dict(model, optimizer, **loaded)

    def learn(taken: int, inputs: dict[str, Any]) -> bool:
        (parallel(**inputs).loss / accumulate).backward()
        if is_step := taken % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
        return is_step

    return model, run(job, learn, load, lambda at: checkpoint.save(state(), checkpoint_id=at))


def accelerate(job: Training) -> Trained:
    """Accelerate, with the loader outside of `prepare`."""
    from accelerate import Accelerator

    own = job.model()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=job.start.accumulate)
    model, optimizer = accelerator.prepare(own, job.optimizer(own))

    def load(folder: str) -> None:
        accelerator.load_state(folder)
        # It counts batches where the rank has a file, and a rank that is new has none: ranks would
        # step after other batches. Nothing is accumulated in a checkpoint.
        accelerator.step = 0

    def learn(_: int, inputs: dict[str, Any]) -> bool:
        with accelerator.accumulate(model):
            accelerator.backward(model(**inputs).loss)
            optimizer.step()
            optimizer.zero_grad()
        return bool(accelerator.sync_gradients)

    cursor = run(job, learn, load, accelerator.save_state)
    accelerator.end_training()
    return own, cursor


def run(job: Training, learn: Learn, load: OfFolder, save: OfFolder) -> int:
    """Resume, learn and save until the job is done; return the loader's cursor.

    `learn` tells whether the optimizer took a step. The file of the loader's state names the newest
    whole checkpoint: it is written after it.
    """
    place, steps = job.folder / "corpus_loader.json", 0
    if place.exists():
        saved = json.loads(place.read_text())
        steps = saved["steps"]
        load(str(job.folder / f"step-{steps}"))
        job.batches.load_state_dict(saved["loader"])
    for taken, batch in enumerate(job.all_batches(), 1):
        if not learn(taken, job.form(batch)):
            continue
        steps += 1
        loader = job.batches.state_dict()
        if steps % job.start.save_every == 0:
            save(str(job.folder / f"step-{steps}"))
            if dist.is_initialized():
                dist.barrier()
            if job.rank == 0:
                draft = place.with_suffix(".new")
                draft.write_text(json.dumps({"steps": steps, "loader": loader}))
                draft.replace(place)
        if job.is_done(loader["cursor"]):
            break
    return int(loader["cursor"])


def lightning(job: Training) -> Trained:
    """Lightning, with LightningBatches and its callback."""
    from lightning.pytorch import LightningModule, Trainer
    from lightning.pytorch.callbacks import ModelCheckpoint

    from corpus_loader.trainers.lightning_callback import LightningBatches

    batches, start = LightningBatches(job.batches, form=job.form), job.start
    place = batches.callback()

    class Module(LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = job.model()

        def training_step(self, batch: Any, index: int) -> Any:
            return self.model(**batch).loss

        def on_train_batch_end(self, *others: Any) -> None:
            self.trainer.should_stop |= job.is_done(place.saved)

        def configure_optimizers(self) -> Any:
            return job.optimizer(self.model)

    module, quiet = Module(), dict.fromkeys(["enable_progress_bar", "enable_model_summary"], False)
    saving = ModelCheckpoint(job.folder, every_n_train_steps=start.save_every, save_last=True)
    Trainer(
        accelerator="cpu",
        devices=start.ranks,
        strategy="ddp" if start.ranks > 1 else "auto",
        max_epochs=-1,
        accumulate_grad_batches=start.accumulate,
        callbacks=[place, saving],
        logger=False,
        **quiet,
    ).fit(module, batches, ckpt_path="last")
    return module.model, place.saved


def hugging_face(job: Training) -> Trained:
    """The Trainer of transformers, as CorpusTrainer, on a very small Llama."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, TrainerCallback, TrainingArguments

    from corpus_loader.prove.training import VOCABULARY, short
    from corpus_loader.trainers.forms import hugging_face as in_rows
    from corpus_loader.trainers.hugging_face_trainer import CorpusTrainer

    class Llama(LlamaForCausalLM):  # type: ignore[misc]
        accepts_loss_kwargs = False  # so the Trainer divides losses by the accumulated batches

        def forward(self, labels: Any = None, samples: Any = None, **inputs: Any) -> Any:
            output = super().forward(**inputs)
            if labels is not None:
                output.loss = self.ledger.loss(output.logits, labels, samples)
            return output

    class StopWhenDone(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            control.should_training_stop = job.is_done(job.batches.state_dict()["cursor"])

    def form(batch: Any) -> dict[str, Any]:
        inputs = in_rows(batch := short(batch))
        return {**inputs, "input_ids": inputs["input_ids"] % VOCABULARY, **job.learned(batch)}

    job.form = form  # type: ignore[method-assign]
    torch.manual_seed(0)
    sizes = dict.fromkeys(["hidden_size", "intermediate_size"], 8)
    heads = dict.fromkeys(["num_hidden_layers", "num_attention_heads"], 1)
    model = Llama(LlamaConfig(vocab_size=VOCABULARY, **sizes, **heads))
    model.ledger = job.ledger()
    optimizer = job.optimizer(model)
    args = TrainingArguments(
        str(job.folder),
        max_steps=1_000_000,
        per_device_train_batch_size=job.start.batch_size,
        gradient_accumulation_steps=job.start.accumulate,
        save_steps=job.start.save_every,
        save_total_limit=2,
        logging_strategy="no",
        max_grad_norm=0,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
    )
    schedule = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)
    optimizers, stop = (optimizer, schedule), StopWhenDone()
    CorpusTrainer(
        model, args, corpus=job.batches, form=form, optimizers=optimizers, callbacks=[stop]
    ).train(resume_from_checkpoint=True)
    return model, job.batches.state_dict()["cursor"]
