"""The split of a phase's positions over steps and ranks: arithmetic on a cursor, nothing stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from corpus_loader.errors import CorpusError


@dataclass(frozen=True)
class Step:
    """A step of one rank: the positions [first, stop), and the cursor of all ranks after it."""

    first: int
    stop: int
    cursor: int

    @property
    def samples(self) -> int:
        """Number of samples."""
        return self.stop - self.first

    def positions(self) -> npt.NDArray[np.int64]:
        """Return the positions, int64 [samples]."""
        return np.arange(self.first, self.stop, dtype=np.int64)


@dataclass(frozen=True)
class Split:
    """An epoch of `epoch_samples` samples, split into steps and these over ranks.

    A step takes the next world_size x batch_size samples after the cursor; rank r the r-th part.
    The rest at the end of an epoch is split evenly (a rank may get nothing if fewer samples are
    left than ranks), or left out with `drop_last`. Raises CorpusError for an impossible split.
    """

    epoch_samples: int
    rank: int
    world_size: int
    batch_size: int
    drop_last: bool

    def __post_init__(self) -> None:
        """Refuse an impossible split."""
        if self.batch_size < 1 or self.world_size < 1:
            raise CorpusError(
                f"batch_size is {self.batch_size} and world_size {self.world_size}; both must be 1 "
                "or more"
            )
        if not 0 <= self.rank < self.world_size:
            raise CorpusError(
                f"rank is {self.rank} of world_size {self.world_size}; it must be 0 to "
                f"{self.world_size - 1}"
            )
        least = self.step_samples if self.drop_last else self.world_size
        if self.epoch_samples < least:
            raise CorpusError(
                f"the phase has {self.epoch_samples:,} samples; {self.world_size:,} ranks"
                + (f" with batches of {self.batch_size:,} and drop_last" if self.drop_last else "")
                + f" need {least:,}. Use fewer ranks, or give the phase more tokens."
            )

    @property
    def step_samples(self) -> int:
        """Samples of a full step, over all ranks."""
        return self.world_size * self.batch_size

    def __len__(self) -> int:
        """Steps of a whole epoch."""
        full, rest = divmod(self.epoch_samples, self.step_samples)
        return full if self.drop_last or not rest else full + 1

    def steps(self, cursor: int, skip: int = 0, every: int = 1) -> Iterator[Step]:
        """Yield every `every`-th step after the first `skip`, from the cursor to its epoch's end.

        The cursor after the last step is the epoch's end, whatever was dropped.
        """
        size = self.step_samples
        end = self.epoch_end(cursor)
        for start in range(cursor + skip * size, end, every * size):
            left = min(size, end - start)
            if left < size and self.drop_last:
                return
            first = start + left * self.rank // self.world_size
            stop = start + left * (self.rank + 1) // self.world_size
            is_last = end - start - left < (size if self.drop_last else 1)
            yield Step(first, stop, end if is_last else start + size)

    def epoch_end(self, cursor: int) -> int:
        """Return the end of the epoch that contains the cursor."""
        return (cursor // self.epoch_samples + 1) * self.epoch_samples
