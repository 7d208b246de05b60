"""`shards`: shuffled output files and their formats."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator

FormatName = Literal[
    "parquet", "megatron", "mds", "webdataset", "litdata", "datatrove", "npy", "arrow"
]


FORMAT_NAMES: tuple[FormatName, ...] = get_args(FormatName)


class ShardConfig(BaseModel):
    """Shards: how large, in what order, in which formats."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    target_bytes: int = Field(
        default=64 << 20,
        ge=1024,
        le=2 << 30,  # MDS and litData address a shard's bytes with 32 bits
        description="bytes of token ids in a shard, padding included, before compression",
    )
    formats: tuple[FormatName, ...] = Field(
        default=("parquet", "megatron"),
        min_length=1,
        description="file formats written for every shard, each in a folder of its own; "
        "corpus_loader reads megatron",
    )
    seed: int = Field(
        default=0, ge=0, description="names the permutation of every source and bucket"
    )

    @field_validator("formats")
    @classmethod
    def check_named_once(cls, formats: tuple[FormatName, ...]) -> tuple[FormatName, ...]:
        """A format is written once."""
        if len(set(formats)) < len(formats):
            raise ValueError(f"formats must differ, got {list(formats)}")
        return formats

    def data(self) -> dict[str, int]:
        """What decides about the rows of a shard and their order: all but the formats."""
        return self.model_dump(exclude={"formats"})
