"""`shards`: shuffled output files and their formats."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from resources.settings.frozen_model import FrozenModel
from resources.settings.key_types import EACH_ONCE
from resources.settings.plug_ins import check_plug_in

FORMAT_NAMES = (
    *("parquet", "megatron", "mds", "webdataset"),
    *("litdata", "datatrove", "npy", "arrow"),
)
MASK_FORMATS = ("parquet", "megatron")  # hold loss masks
FormatName = Annotated[
    str, AfterValidator(lambda name: check_plug_in("formats", name, FORMAT_NAMES))
]


class ShardConfig(FrozenModel):
    """Size, order and formats of shards."""

    target_bytes: int = Field(
        default=64 << 20,
        ge=1024,
        le=2 << 30,  # MDS and litData address a shard's bytes with 32 bits
        description="bytes of token ids in a shard, padding included, before compression",
    )
    formats: Annotated[tuple[FormatName, ...], EACH_ONCE] = Field(
        default=("parquet", "megatron"),
        min_length=1,
        description="file formats of every shard, each in its own folder: "
        f"{', '.join(FORMAT_NAMES)}, or one that a package adds; corpus_loader reads megatron",
    )
    seed: int = Field(
        default=0, ge=0, description="seed of the permutation of every source and bucket"
    )

    rewrite_share: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description="share of a generation's rows that may be marked as removed; beyond it, its "
        "other rows are written again with those of the newest",
    )
    ledger: str | None = Field(
        default=None,
        description="folder that `corpus shards ledger` wrote for another build: the first build "
        "of a store makes the same generations, in the same order",
    )

    def data(self) -> dict[str, int]:
        """Return the keys that the rows of a shard and their order depend on."""
        return self.model_dump(exclude={"formats", "rewrite_share", "ledger"})
