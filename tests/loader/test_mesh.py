"""Data-parallel ranks under other kinds of parallelism."""

from dataclasses import dataclass
from itertools import product

from prelude import given, pytest, st
from tables import cases

from corpus_loader import CorpusError
from corpus_loader.trainers.mesh import rank_in_order, rank_of


@dataclass
class NamedMesh:
    """The names, sizes and place of a mesh."""

    mesh_dim_names: tuple[str, ...] | None
    shape: tuple[int, ...]
    coordinate: tuple[int, ...] | None

    def get_coordinate(self) -> tuple[int, ...] | None:
        return self.coordinate


@cases("""
    names                                    | shape        | coordinate   | expected
    ("dp", "tp")                             | (4, 2)       | (3, 1)       | (3, 4)
    ("pp", "dp", "tp")                       | (2, 3, 2)    | (1, 2, 0)    | (2, 3)
    ("dp_replicate", "dp_shard", "cp", "tp") | (2, 4, 2, 2) | (1, 3, 0, 1) | (7, 8)
    ("tp", "dp")                             | (2, 4)       | (1, 2)       | (2, 4)
    ("anything",)                            | (8,)         | (5,)         | (5, 8)
    ("tp",)                                  | (8,)         | (5,)         | (0, 1)
    ("pp", "tp")                             | (2, 4)       | (1, 3)       | (0, 1)
    ("dp", "ep")                             | (4, 1)       | (3, 0)       | (3, 4)
""")
def test_ranks_that_share_samples_have_one_data_rank(
    names: tuple[str, ...],
    shape: tuple[int, ...],
    coordinate: tuple[int, ...],
    expected: tuple[int, int],
) -> None:
    assert rank_of(NamedMesh(names, shape, coordinate)) == expected


@pytest.mark.parametrize(
    ("mesh", "message"),
    [
        (NamedMesh(None, (2, 2), (0, 0)), "no names of its dimensions"),
        (NamedMesh(("dp", "tp"), (2, 2), None), "not in the mesh"),
        (
            NamedMesh(("x", "y"), (2, 2), (0, 0)),
            "dimensions x, y, and it is not known whether x, y s",
        ),
        (
            NamedMesh(("dp_replicate", "dp_shard_in_ep", "tp"), (2, 2, 2), (0, 0, 0)),
            "dp_shard_in_ep s",
        ),
    ],
)
def test_a_mesh_that_does_not_tell_is_refused(mesh: NamedMesh, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        rank_of(mesh)


def test_dimensions_of_other_names_can_be_given() -> None:
    mesh = NamedMesh(("batch", "ep"), (4, 2), (3, 1))
    assert rank_of(mesh, data=["batch"]) == (3, 4)


def test_ranks_in_the_order_of_megatron() -> None:
    assert rank_in_order(3, {"tp": 8}) == rank_in_order(3, {"tp": 4, "pp": 2}) == (0, 1)
    sizes = {"tp": 2, "cp": 1, "dp": 3, "pp": 2}

    ranks = [rank_in_order(rank, sizes).rank for rank in range(12)]
    assert ranks == [0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2]
    with pytest.raises(CorpusError, match="rank is 12, which tp 2 x cp 1 x dp 3 x pp 2"):
        rank_in_order(12, sizes)


@given(st.lists(st.integers(1, 4), min_size=4, max_size=4))
def test_every_data_rank_has_as_many_processes(sizes: list[int]) -> None:
    names = ("pp", "dp_replicate", "dp_shard", "tp")
    places = product(*(range(size) for size in sizes))
    found = [rank_of(NamedMesh(names, tuple(sizes), place)) for place in places]

    data_ranks = sizes[1] * sizes[2]
    assert {each.world_size for each in found} == {data_ranks}
    counts = [sum(each.rank == rank for each in found) for rank in range(data_ranks)]
    assert counts == [sizes[0] * sizes[3]] * data_ranks
