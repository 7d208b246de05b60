"""Batches as training frameworks expect them, from the tensors of a CorpusDataset.

The loader must give documents: CorpusLoader(..., options=LoaderOptions(with_documents=True)). A
label is the token itself (`hugging_face`, whose models shift by themselves) or the next one
(`next_token`), and IGNORED where nothing is learned: in padding, in a repeated row, for the first
token of a document, which does not follow from the one before it, and for the tokens of a
conversation that are not the assistant's.
"""

from __future__ import annotations

import torch  # noqa: TID253  whoever imports this module uses torch

from corpus_loader.places.errors import CorpusError

Tensors = dict[str, torch.Tensor]
ModelInputs = dict[str, torch.Tensor | int | str]
IGNORED = -100  # ignore_index of torch's cross_entropy


def hugging_face(batch: Tensors) -> ModelInputs:
    """Return input_ids, labels and position_ids, int64 [rows, length], and use_cache, False.

    Positions begin at 0 in each document, by which most models of transformers tell packed
    documents apart, but not if they fill a cache, as they do by default outside of their Trainer:
    it is switched off here. Others need `hugging_face_masked` (gpt-oss, OPT, MPT), or see all of
    a row whatever they are given (Mamba, Bamba, Bloom): `check_leak` tells.
    """
    return {**row_tensors(batch), "use_cache": False}


def hugging_face_masked(batch: Tensors) -> ModelInputs:
    """Return the same with attention_mask, float32 [rows, 1, length, length], for eager and sdpa.

    It is 0 where `document_mask` is True, and the least number elsewhere. A model whose layers look
    back over a window reads it in place of the window.
    """
    mask = document_mask(batch)
    least = torch.finfo(torch.float32).min
    added = torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, least)
    return {**hugging_face(batch), "attention_mask": added}


def row_tensors(batch: Tensors) -> Tensors:
    """Return input_ids, labels and position_ids, int64 [rows, length]."""
    check_documents(batch)
    return {
        "input_ids": batch["tokens"],
        "labels": learned(batch),
        "position_ids": batch["position_ids"].long(),
    }


def hugging_face_flat(batch: Tensors) -> ModelInputs:
    """Return the same in one row without padding between documents, int64 [1, rows x length].

    With cu_seq_lens_q and _k, int32 [documents + 1], and max_length_q and _k, as
    DataCollatorWithFlattening gives them to attention over segments of varying length.
    """
    flat = {name: tensor.reshape(1, -1) for name, tensor in row_tensors(batch).items()}
    edges, longest = batch["cu_seqlens"].int(), int(batch["max_seqlen"])
    return {
        **flat,
        "use_cache": False,
        "cu_seq_lens_q": edges,
        "cu_seq_lens_k": edges,
        "max_length_q": longest,
        "max_length_k": longest,
    }


def next_token(batch: Tensors) -> tuple[Tensors, torch.Tensor]:
    """Return ({"input", "positions"}, labels), int64 [rows, length]: torchtitan's form.

    labels[i] is the token after i; that of the last token of a row is IGNORED.
    """
    check_documents(batch)
    labels = torch.full_like(batch["tokens"], IGNORED)
    labels[:, :-1] = learned(batch)[:, 1:]
    return {"input": batch["tokens"], "positions": batch["position_ids"].long()}, labels


def context_parallel(batch: Tensors, rank: int, ranks: int) -> ModelInputs:
    """Return the part of a batch that one of the ranks of context parallelism reads.

    tokens, labels (as in `next_token`) and position_ids, int64 [1, rows x length / ranks]. Each
    document is cut into 2 x ranks chunks, of which a rank has the one that it counts from the
    start, then the one that it counts from the end: all ranks have as many tokens, and as much work
    in causal attention. This is the order of Transformer Engine's thd_get_partitioned_indices.
    With them, of the whole batch, the fields of Megatron Core's PackedSeqParams: qkv_format,
    cu_seqlens_q and _kv without padding, int32 [segments + 1], cu_seqlens_q_padded and _kv_padded
    with it, max_seqlen_q and _kv.

    Raises CorpusError for documents that cannot be cut so: they are padded if the corpus is made
    with buckets.pad_documents_to.
    """
    inputs, labels = next_token(batch)
    edges, longest = batch["cu_seqlens"].int(), int(batch["max_seqlen"])
    places = chunks_of_rank(edges, rank, ranks)
    own = {"tokens": inputs["input"], "labels": labels, "position_ids": inputs["positions"]}
    lengths = {"cu_seqlens": batch["cu_seqlens_unpadded"].int(), "max_seqlen": longest}
    return {
        **{name: tensor.reshape(-1)[places][None] for name, tensor in own.items()},
        "qkv_format": "thd",
        **{f"{name}_{of}": value for name, value in lengths.items() for of in ("q", "kv")},
        **{f"cu_seqlens_{of}_padded": edges for of in ("q", "kv")},
    }


def chunks_of_rank(edges: torch.Tensor, rank: int, ranks: int) -> torch.Tensor:
    """Return the places in a flat batch of the tokens that a rank reads, int64 [tokens / ranks].

    In: the segments' offsets, int32 [segments + 1]. Raises CorpusError if the tokens of one are no
    multiple of 2 x ranks, or if there is no such rank.
    """
    if not 0 <= rank < ranks:
        raise CorpusError(f"rank is {rank}; it must be from 0 to {ranks - 1}, of {ranks} ranks")
    lengths, chunks = edges.diff().long(), 2 * ranks
    if bool((lengths % chunks).any()):
        worst = int(lengths[lengths % chunks > 0][0])
        raise CorpusError(
            f"a document has {worst:,} tokens, which {ranks} ranks cannot cut into {chunks} chunks "
            f"of one length. Set buckets.pad_documents_to to {chunks}, and build from `bucketed` on"
        )
    size = lengths // chunks
    starts = torch.stack([edges[:-1] + rank * size, edges[1:] - (rank + 1) * size], 1).reshape(-1)
    sizes = size.repeat_interleave(2)
    before = sizes.cumsum(0) - sizes
    within = torch.arange(int(sizes.sum()), device=edges.device)
    return within + (starts - before).repeat_interleave(sizes)


def document_ids(batch: Tensors) -> torch.Tensor:
    """Number the documents of each row from 1, int64 [rows, length]; padding is one of its own."""
    check_documents(batch)
    return (batch["position_ids"] == 0).cumsum(1)


def document_mask(batch: Tensors) -> torch.Tensor:
    """Mask bool [rows, 1, length, length]: True for an earlier token of the same document."""
    number = document_ids(batch)
    return torch.tril(number[:, :, None] == number[:, None, :])[:, None]


def learned(batch: Tensors) -> torch.Tensor:
    """Return the tokens that are learned, and IGNORED for all others."""
    return torch.where(batch["loss_mask"], batch["tokens"], IGNORED)


def check_documents(batch: Tensors) -> None:
    """Raise CorpusError for a batch without documents."""
    if "position_ids" not in batch:
        raise CorpusError(
            "the batch has no documents, so it is not known which tokens are learned. Open the "
            "loader with LoaderOptions(with_documents=True)."
        )
