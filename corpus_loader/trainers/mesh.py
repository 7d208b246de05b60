"""The data-parallel rank of a process under tensor, context and pipeline parallelism.

Ranks that differ in tensor, context or pipeline parallelism only take the same samples; the others
share the samples out. A loader is opened with the result:

    data = rank_of(mesh)                        # torch's DeviceMesh, with names
    loader = CorpusLoader(store, rank=data.rank, world_size=data.world_size)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from corpus_loader.places.errors import CorpusError

# Names that torch, torchtitan and Accelerate give to dimensions over which batches are split.
DATA_DIMENSIONS = ("dp", "dp_replicate", "dp_shard", "data", "replicate", "shard", "fsdp", "ddp")
# Names of dimensions whose processes take the same samples.
SHARED_DIMENSIONS = ("tp", "cp", "pp", "sp", "tensor", "context", "pipeline", "sequence")


class DataRank(NamedTuple):
    """Rank and number of ranks among those that take different samples."""

    rank: int
    world_size: int


class Mesh(Protocol):
    """The part of torch's DeviceMesh that is used here."""

    @property
    def mesh_dim_names(self) -> tuple[str, ...] | None:
        """Names of its dimensions, the outermost first."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of its dimensions."""

    def get_coordinate(self) -> Sequence[int] | None:
        """Place of this process; None if it is not in the mesh."""


def rank_of(mesh: Mesh, data: Sequence[str] | None = None) -> DataRank:
    """Return the data-parallel rank of this process in a mesh.

    `data` names the dimensions over which batches are split, by default those of DATA_DIMENSIONS;
    those that the mesh does not have are passed over. A mesh of SHARED_DIMENSIONS alone takes the
    samples of one rank, and one of a single dimension of any other name splits batches over it.
    Raises CorpusError for a mesh without names, with other names than these and no `data`, or
    without this process.
    """
    names, coordinate = mesh.mesh_dim_names, mesh.get_coordinate()
    if names is None:
        raise CorpusError(
            "the mesh has no names of its dimensions. Make it with mesh_dim_names=('dp', 'tp')."
        )
    if coordinate is None:
        raise CorpusError("this process is not in the mesh, so it takes no samples")
    sizes = dict(zip(names, mesh.shape, strict=True))
    unknown = unknown_in(sizes, DATA_DIMENSIONS)
    if data is None and unknown and len(sizes) > 1:
        raise unknown_dimensions(sizes, unknown)
    place = dict(zip(names, coordinate, strict=True))
    return data_rank(sizes, place, DATA_DIMENSIONS if data is None else data)


def rank_in_order(rank: int, sizes: Mapping[str, int], data: Sequence[str] = ("dp",)) -> DataRank:
    """Return the data-parallel rank of a global rank whose dimensions have these sizes.

    `sizes` has the innermost dimension first, whose neighbours have neighbouring ranks, as
    Megatron-LM's default order does: {"tp": 4, "cp": 2, "dp": 8, "pp": 2}. Raises CorpusError for a
    rank that they do not have.
    """
    place, rest = dict[str, int](), rank
    for name, size in sizes.items():
        rest, place[name] = divmod(rest, size)
    if rank < 0 or rest:
        shape = " x ".join(f"{name} {size}" for name, size in sizes.items())
        raise CorpusError(f"rank is {rank}, which {shape} does not have")
    outermost_first = dict(reversed([*sizes.items()]))
    return data_rank(outermost_first, place, data)


def data_rank(sizes: Mapping[str, int], place: Mapping[str, int], data: Sequence[str]) -> DataRank:
    """Return rank and number of ranks over the dimensions in `data`, the outermost first."""
    own = [name for name in sizes if name in data]
    unknown = unknown_in(sizes, data)
    if not own and unknown and len(sizes) > 1:
        raise unknown_dimensions(sizes, unknown)
    rank, world_size = 0, 1
    for name in own or unknown:
        rank = rank * sizes[name] + place[name]
        world_size *= sizes[name]
    return DataRank(rank, world_size)


def unknown_in(sizes: Mapping[str, int], data: Sequence[str]) -> list[str]:
    """Return the dimensions of several processes that are neither in `data` nor shared."""
    known = (*data, *SHARED_DIMENSIONS)
    return [name for name, size in sizes.items() if size > 1 and name not in known]


def unknown_dimensions(sizes: Mapping[str, int], unknown: Sequence[str]) -> CorpusError:
    """Return the error of a mesh of which it is not known what splits batches."""
    return CorpusError(
        f"the mesh has the dimensions {', '.join(sizes)}, and it is not known whether "
        f"{', '.join(unknown)} split batches. Name those that do: rank_of(mesh, data=[...])."
    )
