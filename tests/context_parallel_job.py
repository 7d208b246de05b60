"""One rank of context parallelism over gloo, which reads a corpus with a small model of attention.

    context_parallel_job.py STORE RENDEZVOUS RANK RANKS

The ranks exchange keys and values as Llama 3's do (all-gather). What they say of each token is
compared with what one process says of the whole row, and `check_leak_over_ranks` is asked about
this model and about one that sees all of the row. Prints the number of tokens compared.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import distributed, nn

from corpus_loader import CorpusError, CorpusLoader, LoaderOptions
from corpus_loader.torch_dataset import CorpusDataset
from corpus_loader.trainers.forms import chunks_of_rank, context_parallel, next_token
from corpus_loader.trainers.leaks import check_leak_over_ranks

VOCAB, WIDTH, LAYERS = 60_000, 16, 2
TOLERANCE = 1e-5  # of logits, which are about 1


class Attention(nn.Module):
    """Layers of attention over keys and values of all ranks; it is told who sees whom."""

    def __init__(self, apart: bool = True) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.embedding = torch.randn(VOCAB, WIDTH, generator=generator)
        self.position = torch.randn(4096, WIDTH, generator=generator)
        self.projections = torch.randn(LAYERS, 3, WIDTH, WIDTH, generator=generator) / WIDTH**0.5
        self.apart = apart

    def read(self, inputs: dict[str, Any], places: list[torch.Tensor], rank: int) -> torch.Tensor:
        """Return the logits of the tokens of a rank, whose ranks have tokens at these places."""
        edges = inputs["cu_seqlens_q_padded"]
        own, everyone = places[rank], torch.cat(places)
        document = [torch.searchsorted(edges, each, right=True) for each in (own, everyone)]
        sees = everyone[None] <= own[:, None]
        if self.apart:
            sees &= document[0][:, None] == document[1][None]
        state = self.embedding[inputs["tokens"][0]] + self.position[inputs["position_ids"][0]]
        for query, key, value in self.projections:
            keys, values = (self.gather(state @ each, len(places)) for each in (key, value))
            score = (state @ query @ keys.T / WIDTH**0.5).masked_fill(~sees, float("-inf"))
            state = state + score.softmax(-1) @ values
        return (state @ self.embedding[:1000].T / WIDTH)[None]

    def gather(self, part: torch.Tensor, ranks: int) -> torch.Tensor:
        """Return the rows of all ranks."""
        if ranks == 1:
            return part
        parts = [torch.empty_like(part) for _ in range(ranks)]
        distributed.all_gather(parts, part.contiguous())
        return torch.cat(parts)


def main(store: str, rendezvous: str, rank: int, ranks: int) -> None:
    """Compare, and check the leak."""
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=ranks
    )

    def reader(model: Attention) -> Any:
        def read(inputs: dict[str, Any]) -> torch.Tensor:
            edges = inputs["cu_seqlens_q_padded"]
            return model.read(inputs, [chunks_of_rank(edges, r, ranks) for r in range(ranks)], rank)

        return read

    model, compared = Attention(), 0
    options = LoaderOptions(with_documents=True, dtype="int64")
    for batch in CorpusDataset(CorpusLoader(store, "main", batch_size=2, options=options)):
        own = context_parallel(batch, rank, ranks)
        places = chunks_of_rank(batch["cu_seqlens"], rank, ranks)
        whole = context_parallel(batch, 0, 1)
        expected = model.read(whole, [chunks_of_rank(batch["cu_seqlens"], 0, 1)], 0)[0]
        order = chunks_of_rank(batch["cu_seqlens"], 0, 1)
        in_place = torch.empty_like(expected)
        in_place[order] = expected
        change = (reader(model)(own)[0] - in_place[places]).abs().max()
        assert change < TOLERANCE, f"rank {rank}: {change}"
        labels = next_token(batch)[1].reshape(-1)
        assert own["labels"][0].tolist() == labels[places].tolist()
        learned = (own["labels"] >= 0).sum()
        distributed.all_reduce(learned)
        assert learned == (labels >= 0).sum() == batch["loss_mask"].sum()
        compared += places.numel()
    check_leak_over_ranks(reader(model), VOCAB)
    try:
        check_leak_over_ranks(reader(Attention(apart=False)), VOCAB)
    except CorpusError as error:
        assert "sees other documents" in str(error)
    else:
        raise AssertionError("a leak is not seen")
    sys.stdout.write(str(compared))
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
