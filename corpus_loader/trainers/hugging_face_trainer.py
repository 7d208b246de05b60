"""The Trainer of transformers on a corpus: exact resume with any number of ranks.

    args = TrainingArguments("out", max_steps=1000, per_device_train_batch_size=8)
    loader = CorpusLoader(store, rank=args.process_index, world_size=args.world_size, batch_size=8,
                          options=LoaderOptions(with_documents=True))
    trainer = CorpusTrainer(model, args, corpus=CorpusDataLoader(CorpusDataset(loader)))
    trainer.train(resume_from_checkpoint=True)  # the newest whole checkpoint, if there is one

With eval_dataset, a CorpusDataLoader of split="validation", `evaluate` gives the mean loss of all
held-out tokens as eval_loss, and those of each source as eval_books_loss.

A checkpoint's folder has the loader's state, which is written last: a folder without it is of a
save that was killed, and no checkpoint. Older ones are removed after that. The Trainer itself
resumes by reading batches again to skip them, which takes hours and is wrong for another number of
ranks: it is told not to.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch  # noqa: TID253  whoever imports this module uses torch
from torch import distributed  # noqa: TID253
from torch.nn import functional  # noqa: TID253
from transformers import Trainer, TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, rotate_checkpoints

from corpus_loader.loader import CorpusLoader
from corpus_loader.places.errors import CorpusError
from corpus_loader.torch_dataset import CorpusDataLoader, CorpusDataset
from corpus_loader.trainers.forms import IGNORED, Tensors, hugging_face, learned
from corpus_loader.trainers.leaks import check_leak

STATE_FILE = "corpus_loader.json"
TRAINER_STATE_NAME = "trainer_state.json"
logger = logging.getLogger(__name__)


class EndlessBatches:
    """Batches of one epoch after the other, which end with `max_steps`.

    With loss_weights, float32 and as many as labels, if the phase has some.
    """

    def __init__(self, corpus: CorpusDataLoader, form: Callable[[Tensors], Any]) -> None:
        self.corpus = corpus
        self.form = form

    def __iter__(self) -> Iterator[Any]:
        """Yield batches from where the loader is."""
        weights = torch.from_numpy(self.corpus.dataset.loader.loss_weights)
        is_weighted = bool((weights != 1).any())
        while True:
            for batch in self.corpus:
                inputs = self.form(batch)
                if is_weighted:
                    of_rows = weights[batch["sources"]][:, None].expand(batch["tokens"].shape)
                    inputs["loss_weights"] = of_rows.reshape(inputs["labels"].shape)
                yield inputs


class SaveLoader(TrainerCallback):  # type: ignore[misc]
    """Write the loader's state into the folder of each checkpoint."""

    def __init__(self, corpus: CorpusDataLoader, most_checkpoints: int | None) -> None:
        self.corpus, self.most_checkpoints = corpus, most_checkpoints

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Remove the state of an earlier save of this step, whose files are written again."""
        if control.should_save and state.is_world_process_zero:
            (folder_of(args, state) / STATE_FILE).unlink(missing_ok=True)

    def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Write it once the other files are there, by one process: it is the same on all."""
        if distributed.is_available() and distributed.is_initialized():
            distributed.barrier()
        if state.is_world_process_zero:
            write_state(folder_of(args, state) / STATE_FILE, self.corpus.state_dict())
            rotate_checkpoints(
                args.output_dir, self.most_checkpoints, state.best_model_checkpoint, use_mtime=True
            )


class CorpusTrainer(Trainer):  # type: ignore[misc]
    """transformers' Trainer whose training batches are those of a corpus.

    `form` makes a batch of the loader's tensors, by default `hugging_face`. With
    `documents_apart=False` a model may see other documents of its row. All others are the
    Trainer's. The loss of a phase with `loss_weights` is the weighted sum over its learned tokens,
    divided by their number. Raises CorpusError without `max_steps`, for a loader of validation, for
    an `eval_dataset` of a phase, for loaders of other ranks or batches than those of the training,
    or for another loss of a phase with `loss_weights`.
    """

    control: Any
    loss_weights: torch.Tensor
    compute_loss_func: Any

    def __init__(
        self,
        *positional: Any,
        corpus: CorpusDataLoader,
        form: Callable[[Tensors], Any] = hugging_face,
        documents_apart: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(*positional, **options)
        self.corpus = corpus
        self.form = form
        self.documents_apart = documents_apart
        if corpus.dataset.loader.mixture.is_validation:
            raise CorpusError(
                "corpus is what is held out of training. Open its loader with split='train'."
            )
        self.check_ranks(corpus)
        is_named = isinstance(self.eval_dataset, Mapping)
        for held in self.eval_dataset.values() if is_named else [self.eval_dataset]:
            self.check_validation(held)
        if self.args.max_steps <= 0:
            raise CorpusError(
                "max_steps is not set, by which the training ends: its batches have no end. An "
                f"epoch of the phase has {len(corpus.dataset):,} batches for each rank."
            )
        self.check_batch_size(corpus)
        if corpus.dataset.loader.mixture.has_loss_weights:
            if self.compute_loss_func is not None:
                raise CorpusError(
                    "the phase has loss_weights, which compute_loss_func does not see: take one out"
                )
            self.compute_loss_func = self.weighted_loss
        self.args.ignore_data_skip = True
        # The Trainer would remove older checkpoints before the loader's state is in the new one.
        self.add_callback(SaveLoader(corpus, self.args.save_total_limit))
        self.args.save_total_limit = None

    def check_ranks(self, corpus: CorpusDataLoader) -> None:
        """Raise CorpusError for a loader of other ranks than those of the training."""
        split = corpus.dataset.loader.split
        ranks = self.args.process_index, self.args.world_size
        if (split.rank, split.world_size) != ranks:
            raise CorpusError(
                f"the loader is for rank {split.rank} of {split.world_size}, this process is rank "
                f"{ranks[0]} of {ranks[1]}. Give CorpusLoader rank=args.process_index and "
                "world_size=args.world_size."
            )

    def check_batch_size(self, corpus: CorpusDataLoader) -> None:
        """Raise CorpusError for a loader whose batches have another size than the arguments say."""
        size, said = corpus.dataset.loader.split.batch_size, self.args.train_batch_size
        if size != said:
            raise CorpusError(
                f"the loader has batch_size={size}, the training arguments say {said} samples for "
                "each process (per_device_train_batch_size). Give both the same."
            )

    def check_validation(self, held: object) -> None:
        """Raise CorpusError for an `eval_dataset` of a corpus that cannot be evaluated."""
        if isinstance(held, CorpusDataset | CorpusLoader):
            raise CorpusError(
                f"eval_dataset is a {type(held).__name__}. Give "
                "CorpusDataLoader(CorpusDataset(loader)) of it."
            )
        if not isinstance(held, CorpusDataLoader):
            return
        self.check_ranks(held)
        loader = held.dataset.loader
        if not (loader.mixture.is_validation and loader.reader.with_documents):
            raise CorpusError(
                "eval_dataset reads a phase, or has no documents. Open its loader with "
                "split='validation' and LoaderOptions(with_documents=True)."
            )

    def evaluate(
        self, eval_dataset: Any = None, ignore_keys: Any = None, metric_key_prefix: str = "eval"
    ) -> dict[str, float]:
        """Return the mean losses of held-out tokens, in nats; of other datasets, as the Trainer."""
        held = self.eval_dataset if eval_dataset is None else eval_dataset
        if not isinstance(held, CorpusDataLoader):
            found: dict[str, float] = super().evaluate(held, ignore_keys, metric_key_prefix)
            return found
        sums = self.loss_by_source(held)
        names = ["", *(f"_{name}" for name in held.dataset.loader.sources)]
        losses, counts = torch.cat([sums.sum(0, keepdim=True), sums]).unbind(1)
        means = (losses / counts).tolist()
        metrics = {
            f"{metric_key_prefix}{name}_loss": loss for name, loss in zip(names, means, strict=True)
        }
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        return metrics

    def loss_by_source(self, held: CorpusDataLoader) -> torch.Tensor:
        """Add up the loss and the tokens of each source over all ranks: float64 [sources, 2]."""
        model, sums = self.model_wrapped, torch.zeros(len(held.dataset.loader.sources), 2).double()
        model.eval()
        for batch in held:
            inputs = {name: one for name, one in self.form(batch).items() if name != "labels"}
            with torch.no_grad(), self.compute_loss_context_manager():
                logits = model(**self._prepare_inputs(inputs)).logits
            labels = learned(batch)[:, 1:].to(logits.device)
            of_tokens = logits.float().view(*batch["tokens"].shape, -1)[:, :-1].transpose(1, 2)
            losses = functional.cross_entropy(of_tokens, labels, reduction="none").sum(1)
            of_rows = torch.stack([losses, (labels >= 0).sum(1)], 1)
            sums.index_add_(0, batch["sources"], of_rows.double().cpu())
        if self.args.world_size > 1:
            sums = self.accelerator.reduce(sums.to(self.args.device))
        return sums.cpu()

    def compute_loss(self, model: Any, inputs: Any, *positional: Any, **options: Any) -> Any:
        """Compute the loss as the Trainer does, by the weights of a batch that has some."""
        self.loss_weights = inputs.pop("loss_weights", torch.ones(()))
        return super().compute_loss(model, inputs, *positional, **options)

    def weighted_loss(
        self, outputs: Any, labels: torch.Tensor, num_items_in_batch: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return the weighted sum of the losses of tokens, over the number of learned ones."""
        logits, following = outputs.logits[:, :-1].float(), labels[:, 1:]
        losses = functional.cross_entropy(logits.transpose(1, 2), following, reduction="none")
        weighted = (losses * self.loss_weights[:, 1:].to(losses.device)).sum()
        count = (following != IGNORED).sum() if num_items_in_batch is None else num_items_in_batch
        return weighted / count

    def get_train_dataloader(self) -> EndlessBatches:
        """Return the batches of the corpus."""
        return EndlessBatches(self.corpus, self.form)

    def train(self, resume_from_checkpoint: str | bool | None = None, **others: Any) -> Any:
        """Train, from a checkpoint and the loader's state in it if one is given.

        True: from the newest that is whole, or from the start if no save has ended yet. Raises
        CorpusError first if the model sees other documents of a packed row.
        """
        mixture = self.corpus.dataset.loader.mixture
        is_packed = mixture.sequence_length is not None and not mixture.one_bucket_batches
        if is_packed and self.documents_apart:
            check_leak(self.model, self.form, self.compute_loss_context_manager)
        folder = resume_from_checkpoint
        if folder is True:
            folder = newest_checkpoint(self.args.output_dir)
        if folder:
            self.corpus.load_state_dict(read_state(Path(folder) / STATE_FILE))
        return super().train(resume_from_checkpoint=folder or None, **others)


def folder_of(args: Any, state: Any) -> Path:
    """Return the folder of the checkpoint of the current step."""
    return Path(args.output_dir, f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}")


def write_state(path: Path, state: Mapping[str, Any]) -> None:
    """Write the loader's state whole, or not at all."""
    draft = path.with_suffix(".part")
    with draft.open("w") as file:
        file.write(json.dumps(state))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def newest_checkpoint(folder: str | Path) -> str | None:
    """Return the newest checkpoint that is whole, None if no save has ended.

    Raises CorpusError if all are of a training without CorpusTrainer.
    """
    found = [path for path in Path(folder).glob(f"{PREFIX_CHECKPOINT_DIR}-*") if path.is_dir()]
    steps = {int(number): path for path in found if (number := path.name.split("-")[1]).isdigit()}
    for _, path in sorted(steps.items(), reverse=True):
        try:
            read_state(path / STATE_FILE)
        except CorpusError as error:
            logger.warning("%s", error)
        else:
            return str(path)
    if ended := [path for path in steps.values() if (path / TRAINER_STATE_NAME).is_file()]:
        raise CorpusError(
            f"no checkpoint in {folder} has the loader's state ({STATE_FILE}), and {ended[0].name} "
            "has all else: it is of a training without CorpusTrainer. Name another output_dir, or "
            "start without a checkpoint."
        )
    return None


def read_state(path: Path) -> dict[str, Any]:
    """Read the loader's state of a checkpoint; CorpusError if there is none."""
    try:
        state: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise CorpusError(
            f"{path} cannot be read ({error}): the checkpoint is not whole, or of a training "
            "without CorpusTrainer. Resume from an earlier one."
        ) from error
    return state
