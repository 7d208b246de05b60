"""The order of a phase: exact counts, a mix that holds in every block and rank, random access."""

import tracemalloc

from prelude import given, np, pairwise, pytest, settings, st

from corpus_loader.interleave import Interleaving
from corpus_loader.order import PhaseOrder, Samples, SourceOrder, SourceShape
from corpus_loader.permutation import derive_key, mix64, permute, permute_each

WEB_LIKE = (670_000, 150_000, 45_000, 45_000, 45_000, 25_000, 20_000)
COUNTS = st.lists(st.integers(0, 300), min_size=1, max_size=9).filter(any)
SKEWED = st.lists(st.sampled_from([1, 2, 3, 7, 50, 1000, 3000]), min_size=2, max_size=6)


def order_of(
    counts: tuple[int, ...] | list[int],
    block: int = 512,
    window: int | None = None,
    rows: tuple[int, ...] = (1000, 500),
) -> PhaseOrder:
    """An order over sources s0, s1, ... of the same shards."""
    sources = [SourceShape(f"s{i}", count, rows) for i, count in enumerate(counts)]
    return PhaseOrder(3, block, window, tuple(sources))


def everything(order: PhaseOrder, epoch: int = 0) -> Samples:
    """All samples of an epoch of a phase."""
    return order.samples(np.arange(len(order)) + epoch * len(order))


def list_of(samples: Samples) -> list[tuple[int, int, int]]:
    columns = (samples.source, samples.row, samples.epoch)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.slow
@settings(max_examples=150)
@given(COUNTS | SKEWED, st.integers(1, 40))
def test_counts_are_exact_and_every_block_is_within_two_of_its_share(
    counts: list[int], block: int
) -> None:
    order = order_of(counts, block)
    source = everything(order).source
    assert np.bincount(source, minlength=len(counts)).tolist() == counts
    for start in range(0, len(order), block):
        piece = source[start : start + block]
        share = np.array(counts) * piece.size / len(order)
        assert np.abs(np.bincount(piece, minlength=len(counts)) - share).max() < 2


@settings(max_examples=60)
@given(COUNTS | SKEWED, st.integers(1, 40))
def test_the_samples_of_a_source_come_in_their_order(counts: list[int], block: int) -> None:
    total, counts = sum(counts), [count for count in counts if count]
    places = np.arange(total)
    source, index = Interleaving(counts, block).lookup(places // block, places % block)
    for number, count in enumerate(counts):
        assert index[source == number].tolist() == list(range(count))


def test_blocks_of_a_rare_source_are_spread() -> None:
    for rare in (100, 10, 3):
        order = order_of((rare, 25_600 - rare, 25_600), 512)
        blocks = np.flatnonzero(everything(order).source == 0) // 512
        assert blocks.size == rare and np.diff(blocks, prepend=0, append=99).max() <= 200 / rare


def test_any_number_of_positions_in_any_order_gives_the_same_samples() -> None:
    order = order_of((300, 40, 5), 16, rows=(70, 30))
    whole = list_of(order.samples(np.arange(1000)))
    shuffled = np.random.default_rng(0).permutation(1000)
    assert list_of(order.samples(shuffled)) == [whole[p] for p in shuffled.tolist()]
    assert [list_of(order.samples([p]))[0] for p in range(0, 1000, 37)] == whole[::37]
    assert list_of(order.samples([])) == []
    order = order_of((70_000_000, 30_000_000), 4096)  # requests larger than a table are cut
    positions = np.arange(0, len(order), 70_001)  # a block each: 1,429 x 4,096 entries
    found = list_of(order.samples(positions))
    assert found[:900:100] == list_of(order.samples(positions[:900:100]))
    assert found[-1:] == list_of(order.samples(positions[-1:])) and len(found) == positions.size


@pytest.mark.parametrize("window", [None, 1, 3])
def test_an_epoch_takes_every_row_once_in_an_order_of_its_own(window: int | None) -> None:
    order = order_of((250, 90), 8, window, rows=(40, 1, 30, 29))
    rows: dict[tuple[int, int], list[int]] = {}
    for epoch in range(2):
        for source, row, source_epoch in list_of(everything(order, epoch)):
            rows.setdefault((source, source_epoch), []).append(row)
    assert [len(rows[0, epoch]) for epoch in range(5)] == [100] * 5
    assert [len(rows[1, epoch]) for epoch in range(2)] == [100, 80]  # the second one goes on
    assert all(len(set(found)) == len(found) for found in rows.values())
    assert all(first != second for first, second in pairwise(rows[0, e] for e in range(5)))


def test_rows_are_permuted_by_the_permutation_of_their_epoch() -> None:
    order = order_of((9000,), 1, rows=(2500, 2500))
    key = derive_key(3, "sample", "s0", 1)
    expected = permute(np.arange(4000), size=5000, key=key)
    assert order.samples(np.arange(5000, 9000)).row.tolist() == expected.tolist()


def test_windows_hold_so_many_shards() -> None:
    source = SourceShape("web", 600, (50,) * 12)
    rows, epoch = SourceOrder(1, 4, source).rows(np.arange(600))
    shards = (rows // 50).reshape(3, 200)
    assert [len(set(window.tolist())) for window in shards] == [4, 4, 4]
    assert len(set(shards.ravel().tolist())) == 12 and not epoch.any()
    assert all(len(set(window[:50].tolist())) == 4 for window in shards)  # and mixes them


def test_one_source_alone_is_what_the_phase_draws_of_it() -> None:
    order = order_of((250, 90), 8, None, rows=(60, 40))
    found = everything(order)
    rows, epoch = SourceOrder(3, None, order.sources[0]).rows(np.arange(250))
    mine = found.source == 0
    drawn = sorted(zip(found.epoch[mine].tolist(), found.row[mine].tolist(), strict=True))
    assert drawn == sorted(zip(epoch.tolist(), rows.tolist(), strict=True))


def test_ranks_see_the_mix_of_the_whole() -> None:
    order = order_of(WEB_LIKE)
    source = everything(order).source
    share = np.array(WEB_LIKE) / sum(WEB_LIKE)
    for ranks in (2, 8):
        mixtures = [
            np.bincount(source[rank::ranks], minlength=7) / source[rank::ranks].size
            for rank in range(ranks)
        ]
        assert np.abs(np.array(mixtures) / share - 1).max() < 0.05  # sources in turn: 2.2


def test_sources_without_samples_are_left_out() -> None:
    assert set(everything(order_of((0, 5, 0, 5, 0), 4)).source.tolist()) == {1, 3}


@pytest.mark.parametrize("size", [10**9, 10**12, 10**15])
def test_long_phases_are_looked_up_anywhere_without_memory(size: int) -> None:
    counts = [size // 2, size // 3, size - size // 2 - size // 3 - 1, 1]
    order = order_of(counts, rows=(size // 4, size // 4))
    positions = np.array([0, 1, size // 2, size - 2, size - 1, 7 * size + 5])
    order.samples(positions)
    tracemalloc.start()
    found = order.samples(positions)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
    assert len(set(list_of(found))) == positions.size
    last = order.samples(np.arange(size - 512, size))
    assert np.abs(np.bincount(last.source, minlength=4) - np.array(counts) / size * 512).max() < 2


@pytest.mark.parametrize("total", [1_999_999_999, 2_000_000_011])
def test_numbers_on_both_sides_of_int64_agree(total: int) -> None:
    counts = [total // 7, total // 3, total - total // 7 - total // 3]
    block = np.array([0, 1, total // 1024, total // 512 - 1])
    source, index = Interleaving(counts, 512).lookup(block, np.array([0, 511, 100, 300]))
    upto = np.cumsum(counts).tolist()
    for b, s, i in zip(block.tolist(), source.tolist(), index.tolist(), strict=True):
        ends = [
            [(2 * t * u + total) // (2 * total) for u in (0, *upto)]
            for t in (b * 512, b * 512 + 512)
        ]
        first, last = (end[s + 1] - end[s] for end in ends)
        assert first <= i < last


def test_orders_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\['s0'\], which have no rows"):
        order_of((5,), rows=())
    with pytest.raises(ValueError, match="batch_samples is 0"):
        order_of((5,), block=0)
    with pytest.raises(ValueError, match="window_shards is 0"):
        order_of((5,), window=0)
    with pytest.raises(ValueError, match="65,537 sources; there can be 65,536"):
        order_of((1,) * 65_537)
    with pytest.raises(ValueError, match="position -1 of a phase of 5"):
        order_of((5,)).samples([3, -1])
    with pytest.raises(ValueError, match="of a phase of 0 samples"):
        order_of((0,)).samples([0])


def test_permutations_of_many_groups_are_those_of_each() -> None:
    sizes = np.array([1, 300, 4096, 4097, 70_000, 5])
    keys = np.array([9, 8, 7, 6, 5, 2**64 - 1], np.uint64)
    group = np.random.default_rng(1).integers(0, 6, 500)
    indices = (np.arange(500) % sizes[group]).astype(np.uint64)
    expected = [
        int(permute([i], size=int(sizes[g]), key=int(keys[g]))[0])
        for i, g in zip(indices.tolist(), group.tolist(), strict=True)
    ]
    assert permute_each(indices, group, sizes, keys).tolist() == expected
    with pytest.raises(ValueError, match="outside the permutation of its group"):
        permute_each(np.array([300], np.uint64), np.array([1]), sizes, keys)


def test_the_mix_of_batches_is_that_of_chance_where_data_lies_source_by_source() -> None:
    order = order_of((200_000,), rows=(25_000,) * 8)
    shard = everything(order).row // 25_000
    batches = shard[:199_680].reshape(-1, 512)
    counts = np.array([np.bincount(batch, minlength=8) for batch in batches])
    chi2 = ((counts - 64.0) ** 2 / 64.0).sum() / (7 * len(counts))
    assert 0.9 < chi2 < 1.1  # 1: chance; unmixed: 511


def is_permutation(size: int, key: int) -> bool:
    permuted = permute(np.arange(size), size=size, key=key)
    return bool(np.array_equal(np.sort(permuted), np.arange(size, dtype=np.uint64)))


def test_every_size_is_a_bijection() -> None:
    assert all(is_permutation(size, key) for size in range(1, 301) for key in (0, 2**64 - 1))
    assert all(is_permutation(size, 7) for size in (4095, 4096, 4097, 5000, 65_536, 100_003))
    assert permute([0], size=1, key=9).tolist() == [0]
    assert permute([], size=1, key=9).tolist() == permute([], size=0, key=9).tolist() == []


@settings(max_examples=30)
@given(st.integers(4097, 20_000), st.integers(0, 2**64 - 1))
def test_feistel_sizes_are_bijections_for_every_key(size: int, key: int) -> None:
    assert is_permutation(size, key)


@pytest.mark.parametrize("size", [300, 5000])
@settings(max_examples=20)
@given(cuts=st.lists(st.integers(0, 300), max_size=5).map(sorted))
def test_order_does_not_depend_on_how_indices_are_batched_but_on_the_key(
    size: int, cuts: list[int]
) -> None:
    indices = np.arange(300)[::-1]
    whole, other = (permute(indices, size=size, key=key) for key in (3, 2))
    batches = [permute(batch, size=size, key=3) for batch in np.split(indices, cuts)]
    assert np.array_equal(np.concatenate(batches), whole)
    assert (whole == other).sum() < 20


@pytest.mark.parametrize(("index", "size"), [(5, 5), (0, 0), (5000, 5000), (-1, 10)])
def test_index_outside_the_range_is_refused(index: int, size: int) -> None:
    with pytest.raises(ValueError, match=f"outside a permutation of size={size}"):
        permute(np.array([index]), size=size, key=0)


def test_four_billion_indices_cost_no_memory() -> None:
    size = 4_000_000_007
    permuted = permute([0, 1, size - 1], size=size, key=5)
    assert len(set(permuted.tolist())) == 3
    assert int(permuted.max()) < size


@pytest.mark.parametrize("key", [0, 1, 2**63])
def test_batches_mix_the_blocks_of_stored_data_as_chance_would(key: int) -> None:
    blocks, batch = 8, 1000
    order = permute(np.arange(blocks * 50_000), size=blocks * 50_000, key=key) // 50_000

    counts = np.stack([np.bincount(row, minlength=blocks) for row in order.reshape(-1, batch)])

    expected = batch / blocks
    chi_square = float(((counts - expected) ** 2 / expected).sum(axis=1).mean()) / (blocks - 1)
    assert chi_square == pytest.approx(1.0, abs=0.15)


def test_neighbours_land_a_third_of_the_range_apart() -> None:
    permuted = permute(np.arange(100_000), size=100_000, key=11).astype(np.int64)
    assert np.abs(np.diff(permuted)).mean() / 100_000 == pytest.approx(1 / 3, abs=0.01)


def test_key_depends_on_every_part_and_its_type() -> None:
    keys = {derive_key(), derive_key(1), derive_key("1"), derive_key(1, "a"), derive_key("a", 1)}
    assert len(keys) == 5
    assert all(0 <= key < 2**64 for key in keys)


def test_mix64_flips_half_the_bits() -> None:
    values = np.arange(1000, dtype=np.uint64)
    changed = mix64(values) ^ mix64(values ^ np.uint64(1))
    assert np.bitwise_count(changed).mean() == pytest.approx(32, abs=0.5)
