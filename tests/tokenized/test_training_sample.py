"""The training sample: what each source gives of it, and which documents are taken."""

from prelude import given, hashlib, pl, pytest, st
from tables import cases

from assets.tokenized.sample_files import (
    is_sampled,
    sample_quotas,
    sample_warnings,
    wanted_bytes,
    wider_share,
)
from resources.settings.tokenizer import TokenizerConfig


@cases("""
    size | weights                | quotas
    100  | None                   | {"web": 60, "books": 40}
    100  | {"web": 1, "books": 3} | {"web": 25, "books": 75}
    100  | {"books": 0.1}         | {"web": 0, "books": 100}
    800  | {"web": 1, "books": 1} | {"web": 400, "books": 400}
    900  | {"web": 1, "books": 3} | {"web": 500, "books": 400}
    5000 | {"web": 1, "books": 3} | {"web": 600, "books": 400}
    5000 | None                   | {"web": 600, "books": 400}
    5000 | {"web": 2}             | {"web": 600, "books": 0}
""")
def test_the_sample_is_shared_out_by_weight_and_what_is_short_goes_to_the_others(
    size: int, weights: dict[str, float] | None, quotas: dict[str, int]
) -> None:
    config = TokenizerConfig(sample_bytes=size, weights=weights)
    assert sample_quotas({"web": 600, "books": 400}, config) == quotas


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 10**12), min_size=1),
    st.dictionaries(st.sampled_from("abcdef"), st.floats(1e-6, 1e6), min_size=1) | st.none(),
    st.integers(1, 2**31 - 1),
)
def test_quotas_never_exceed_what_there_is_nor_the_sample(
    available: dict[str, int], weights: dict[str, float] | None, size: int
) -> None:
    quotas = sample_quotas(available, TokenizerConfig(sample_bytes=size, weights=weights))
    there = {s: n for s, n in available.items() if weights is None or s in weights}
    assert all(0 <= quotas[source] <= available[source] for source in available)
    assert min(size, sum(there.values())) - len(available) <= sum(quotas.values()) <= size


def doc_ids(count: int) -> pl.Series:
    ids = [hashlib.sha256(str(row).encode()).hexdigest()[:32] for row in range(count)]
    return pl.Series("doc_id", ids, dtype=pl.String)


def test_sample_depends_on_the_document_and_the_seed_alone() -> None:
    ids = doc_ids(1000)
    taken = is_sampled(ids, 0.3, seed=1)
    assert is_sampled(ids.reverse(), 0.3, seed=1).reverse().equals(taken)
    assert is_sampled(ids[500:], 0.3, seed=1).equals(taken[500:])
    assert not is_sampled(ids, 0.3, seed=2).equals(taken)


def test_a_larger_sample_holds_the_smaller_and_the_extreme_ids() -> None:
    ids = pl.Series([*doc_ids(500), "f" * 32, "0" * 32])
    small, large = (is_sampled(ids, share, seed=0) for share in (0.2, 0.6))
    assert not (small & ~large).any()
    assert is_sampled(ids, 1.0, seed=0).all()


@pytest.mark.parametrize(
    ("share", "drawn", "expected"),
    [
        *((0.0, 0, 0.1), (0.1, 0, 0.2), (0.1, 10, 0.2), (0.1, 80, 0.125), (0.1, 90, 0.1)),
        *((0.7, 10, 1.0), (1.0, 10, 1.0)),
    ],
    ids=["first", "nothing came", "little came", "most came", "enough", "the rest", "no more"],
)
def test_a_share_is_widened_until_enough_is_drawn(
    share: float, drawn: int, expected: float
) -> None:
    assert wider_share(share, drawn, quota=100, available=1000) == pytest.approx(expected)


def test_what_the_config_asks_for_does_not_depend_on_what_there_is() -> None:
    weighted = TokenizerConfig(sample_bytes=800, weights={"web": 3, "books": 1, "code": 4})
    assert wanted_bytes({"web": 6000, "books": 4}, weighted) == {"web": 600, "books": 200}
    assert wanted_bytes({"web": 60, "books": 40}, TokenizerConfig()) == {"web": 60, "books": 40}


def test_a_source_that_gives_too_little_is_named() -> None:
    (warning,) = sample_warnings({"a": 100, "b": 1000, "c": 0}, {"a": 80, "b": 799, "c": 0})
    assert warning.startswith("source 'b' gives 799 bytes of the 1,000 of")
