"""Whether a model sees other documents of a packed row: it is tried, since models differ in that.

A row of two documents is read, then one with another first document. What a model says of the
second is the same, but for rounding, if it does not see the first. `check_leak` tries a model of
transformers, `check_leak_over_ranks` one that several ranks read together.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch  # noqa: TID253  whoever imports this module uses torch

from corpus_loader.places.errors import CorpusError
from corpus_loader.trainers.forms import (
    ModelInputs,
    Tensors,
    chunks_of_rank,
    context_parallel,
    hugging_face,
    hugging_face_flat,
    hugging_face_masked,
)

Form = Callable[[Tensors], Any]
FORMS: tuple[Form, ...] = (hugging_face, hugging_face_masked, hugging_face_flat)
LENGTH = 16  # tokens of each document
MOST_CHANGE = 1e-4  # of the largest logit; leaks are > 4e-3
MOST_CHANGE_HALF = 2e-2  # bfloat16 rounds to 4e-3
CANNOT = (RuntimeError, TypeError, ValueError, IndexError, AttributeError)
logger = logging.getLogger(__name__)


def check_leak(
    model: Any, form: Form, context: Callable[[], AbstractContextManager[Any]] = nullcontext
) -> None:
    """Raise CorpusError if a model of transformers sees other documents in a batch of this form.

    The error names the forms in FORMS that keep documents apart. `context` is around each reading,
    for autocast. A model that cannot be read alone, as one whose weights are spread over ranks, is
    not checked, and a warning says so.
    """
    try:
        change = change_of_others(model, form, context)
    except CANNOT as error:
        logger.warning("whether the model sees other documents of a row is not known: %s", error)
        return
    if change <= most_change(model):
        return
    apart = [
        name_of(other) for other in FORMS if other is not form and is_apart(model, other, context)
    ]
    advice = (
        f"Give the trainer form={apart[0]}, with which they are apart"
        if apart
        else "No form keeps them apart: read rows of one document (buckets.mode: buckets)"
    )
    raise CorpusError(
        f"the model sees other documents of a row: when the first one changes, logits of the "
        f"second change by {change:.1%} of the largest, with form={name_of(form)}. {advice}, or "
        "documents_apart=False to train so."
    )


def check_leak_over_ranks(
    read: Callable[[ModelInputs], torch.Tensor],
    vocab_size: int,
    group: Any = None,
    device: torch.device | None = None,
) -> None:
    """Raise CorpusError on all ranks of context parallelism if one sees another document.

    `read` takes what `forms.context_parallel` returns, and returns the logits of these tokens, [1,
    tokens, vocab_size]. All ranks of `group`, of torch.distributed, call this at once. The second
    document ends with padding.
    """
    from torch import distributed

    rank, ranks = distributed.get_rank(group), distributed.get_world_size(group)
    length = 2 * ranks * LENGTH
    tokens = torch.randint(vocab_size, (3, length), generator=torch.Generator().manual_seed(0))
    logits = []
    for first in tokens[:2]:
        batch = packed(torch.cat([first, tokens[2]]), device, padding=ranks)
        with torch.no_grad():
            logits.append(read(context_parallel(batch, rank, ranks))[0].float())
    places = chunks_of_rank(batch["cu_seqlens"], rank, ranks)
    is_second = (places >= length) & (places < 2 * length - ranks)
    change = (logits[0] - logits[1])[is_second].abs().max() / logits[0].abs().max()
    distributed.all_reduce(change, distributed.ReduceOp.MAX, group)
    if not change <= MOST_CHANGE_HALF:
        raise CorpusError(
            f"a rank of context parallelism sees other documents of a row: when the first one "
            f"changes, logits of the second change by {float(change):.1%} of the largest. Give the "
            "attention cu_seqlens_q and cu_seqlens_q_padded, and all that is beside them"
        )


def is_apart(model: Any, form: Form, context: Callable[[], AbstractContextManager[Any]]) -> bool:
    """Return whether a model can read a form, and keeps documents apart in it."""
    try:
        return change_of_others(model, form, context) <= most_change(model)
    except CANNOT:
        return False


def change_of_others(
    model: Any, form: Form, context: Callable[[], AbstractContextManager[Any]]
) -> float:
    """Return the greatest change of a logit of the second document, as a share of the largest."""
    weight = model.get_input_embeddings().weight
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(weight.shape[0], (3, LENGTH), generator=generator)
    was_training = model.training
    model.eval()
    try:
        logits = []
        for first in tokens[:2]:
            batch = packed(torch.cat([first, tokens[2]]), weight.device)
            inputs = {name: one for name, one in form(batch).items() if name != "labels"}
            with torch.no_grad(), context():
                logits.append(model(**inputs).logits.reshape(2 * LENGTH, -1)[LENGTH:].float())
    finally:
        model.train(was_training)
    return float((logits[0] - logits[1]).abs().max() / logits[0].abs().max())


def packed(tokens: torch.Tensor, device: torch.device | None, padding: int = 0) -> Tensors:
    """Return a row of two documents of one length as a CorpusDataset gives it.

    The second one has `padding` tokens at its end.
    """
    length = len(tokens) // 2
    position = torch.arange(length)
    batch = {
        "tokens": tokens[None],
        "position_ids": torch.cat([position, position])[None],
        "loss_mask": torch.ones(1, 2 * length, dtype=torch.bool),
        "cu_seqlens": torch.tensor([0, length, 2 * length]),
        "cu_seqlens_unpadded": torch.tensor([0, length, 2 * length - padding]),
        "max_seqlen": torch.tensor(length),
    }
    return {name: tensor.to(device) for name, tensor in batch.items()}


def most_change(model: Any) -> float:
    """Return the change that is rounding."""
    is_half = model.get_input_embeddings().weight.dtype.itemsize < 4
    return MOST_CHANGE_HALF if is_half else MOST_CHANGE


def name_of(form: Form) -> str:
    """Return the name of a form."""
    return getattr(form, "__name__", type(form).__name__)
