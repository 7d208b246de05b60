"""The loader: one order for any split, exact resume, what it gives."""

import pickle
from collections.abc import Iterable
from dataclasses import fields
from weakref import WeakSet

from hypothesis import assume, given
from loader_corpus import (
    END,
    doc_id,
    every_sample,
    numbered_rows,
    publish,
    steps_of,
    two_sources,
    write_phase,
)
from prelude import Any, Path, json, np, pl, pytest, st, time
from tables import cases

from assets.sharded.formats.base import ShardSchema
from assets.sharded.formats.megatron import MEGATRON
from corpus_loader import Batch, CorpusError, CorpusLoader, Documents, LoaderOptions, LoaderStats
from corpus_loader.batch import find_documents
from corpus_loader.flat import MappedFile, Spans, read_index, read_spans
from corpus_loader.order import order_seed
from corpus_loader.split import Last, Split, skipped

ORDER = [110, 8, 104, 1, 3, 7, 18, 105, 102, 111, 5, 20, 112, 16, 22, 4, 106, 113, 15]
WITH_DOCUMENTS = LoaderOptions(with_documents=True)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """37 rows, each of whose tokens is the row's number."""
    return two_sources(tmp_path_factory.mktemp("corpus"))


def numbers(batches: Iterable[Batch]) -> list[int]:
    """The rows that were seen."""
    return [int(row[0]) for batch in batches for row in batch.tokens[~batch.is_repeated]]


def global_order(loaders: list[CorpusLoader]) -> list[int]:
    """The rows of all ranks, step by step."""
    steps = zip(*loaders, strict=True)
    return [number for step in steps for number in numbers(step)]


def test_an_epoch_has_every_row_of_the_phase_once_in_the_golden_order(store: Path) -> None:
    found = numbers(every_sample(store))

    assert sorted(found) == [*range(1, 24), *range(101, 115)]
    assert found[: len(ORDER)] == ORDER


@pytest.mark.parametrize("batch_size", [1, 3, 5])
@pytest.mark.parametrize("world_size", [1, 2, 8])
def test_ranks_see_what_one_rank_sees(store: Path, world_size: int, batch_size: int) -> None:
    ranks = [every_sample(store, "general", r, world_size, batch_size) for r in range(world_size)]

    assert global_order(ranks) == numbers(every_sample(store))
    assert {len(rank) for rank in ranks} == {-(-37 // (world_size * batch_size))}


def test_the_last_step_is_left_out_unless_asked_otherwise(store: Path) -> None:
    ranks = [CorpusLoader(store, rank=rank, world_size=2, batch_size=4) for rank in range(2)]

    steps = [[batch.tokens.shape[0] for batch in rank] for rank in ranks]

    assert steps == [[4] * 4] * 2
    assert [len(rank) for rank in ranks] == [4, 4]
    assert [rank.cursor for rank in ranks] == [37, 37]  # nothing of this epoch is left


def test_a_short_last_step_is_split_evenly_and_never_empty(store: Path) -> None:
    ranks = [every_sample(store, rank=rank, world_size=8, batch_size=4) for rank in range(8)]

    last = [list(rank)[-1] for rank in ranks]

    assert [len(batch.tokens) for batch in last] == [1] * 8
    expected = [*[[True], [False], [True], [False], [False], [True], [False], [False]]]
    assert [batch.is_repeated.tolist() for batch in last] == expected
    assert sum(numbers([batch]) == [] for batch in last) == 3


def test_a_padded_last_step_is_full_and_its_repeated_rows_are_not_learned(store: Path) -> None:
    options = LoaderOptions(pad_last=True, with_documents=True)
    ranks = [CorpusLoader(store, "general", r, 2, 4, options=options) for r in range(2)]
    order = numbers(every_sample(store))

    batches = [list(rank) for rank in ranks]

    assert global_order(ranks) != order  # the second epoch
    assert [[len(batch.tokens) for batch in rank] for rank in batches] == [[4] * 5] * 2
    assert [number for step in zip(*batches, strict=True) for number in numbers(step)] == order
    for rank, own in zip(batches, ([33 - 1, 34 - 1], [35 - 1, 36 - 1, 37 - 1]), strict=True):
        last = rank[-1]
        again = 4 - len(own)
        assert last.positions.tolist() == [*own, *range(36, 36 - again, -1)]
        assert last.is_repeated.tolist() == [False] * len(own) + [True] * again
        assert last.tokens[:, 0].tolist() == [order[position] for position in last.positions]
        assert last.documents is not None
        assert last.documents.loss_mask.any(axis=1).tolist() == [*~last.is_repeated]
        assert last.documents.position_ids.shape == (4, 8)


@given(
    samples=st.integers(1, 60),
    ranks=st.integers(1, 6),
    batch_size=st.integers(1, 6),
    start=st.integers(0, 120),
    last=st.sampled_from(["drop", "pad", "short"]),
)
def test_ranks_take_the_same_number_of_steps_and_no_batch_is_empty(
    samples: int, ranks: int, batch_size: int, start: int, last: Last
) -> None:
    least = ranks * batch_size if last == "drop" else ranks
    assume(samples >= least)
    splits = [Split(samples, rank, ranks, batch_size, last) for rank in range(ranks)]

    steps = list(zip(*(steps_of(split, start) for split in splits), strict=True))

    own = [p for step in steps for each in step for p in each.own]
    end = (start // samples + 1) * samples
    assert own == list(range(start, start + len(own)))
    assert end - start - len(own) in (range(ranks * batch_size) if last == "drop" else [0])
    for step in steps:
        sizes = {len(each.positions) for each in step}
        assert 1 <= min(sizes) <= max(sizes) <= batch_size
        assert last == "short" or sizes == {batch_size}
        assert all(end - samples <= p < end for each in step for p in each.positions)
    if start % samples == 0:
        assert {len(steps)} == {len(split) for split in splits}
    if steps:
        assert {each.cursor for each in steps[-1]} == {end}


@given(
    before=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    after=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    steps=st.integers(0, 60),
)
def test_a_run_goes_on_at_the_exact_sample_with_any_split(
    before: tuple[int, int], after: tuple[int, int], steps: int
) -> None:
    first = [Split(37, rank, before[0], before[1], "short") for rank in range(before[0])]
    cursor, seen = 0, []
    for _ in range(steps):
        taken = [steps_of(split, cursor)[0] for split in first]
        seen += [p for step in taken for p in step.own]
        cursor = taken[0].cursor
    last = [Split(37, rank, after[0], after[1], "short") for rank in range(after[0])]
    rest = zip(*(steps_of(split, cursor) for split in last), strict=True)
    seen += [p for taken in rest for step in taken for p in step.own]

    assert seen == list(range((cursor // 37 + 1) * 37))


@given(
    ranges=st.lists(st.tuples(st.integers(0, 120), st.integers(1, 40)), max_size=4),
    split=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    after=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stop_at=st.integers(0, 20),
    last=st.sampled_from(["pad", "short"]),
)
def test_skipped_positions_are_in_no_step_and_all_others_in_one(
    ranges: list[tuple[int, int]],
    split: tuple[int, int],
    after: tuple[int, int],
    stop_at: int,
    last: Last,
) -> None:
    left_out = skipped([(first, first + count) for first, count in ranges])
    seen: list[int] = []
    cursor = 0
    for (ranks, batch_size), most in ((split, stop_at), (after, 1000)):
        splits = [Split(37, rank, ranks, batch_size, last, left_out) for rank in range(ranks)]
        while cursor < 4 * 37 and most:
            start = cursor
            for step in zip(*(steps_of(each, cursor) for each in splits), strict=True):
                own = [p for each in step for p in each.own]
                assert all(start <= p < splits[0].epoch_end(start) for p in own)
                assert len({each.cursor for each in step}) == 1
                seen += own
                cursor = step[0].cursor
                most -= 1
                if not most:
                    break
            cursor = cursor if cursor != start else splits[0].epoch_end(start)

    out = {p for first, count in ranges for p in range(first, first + count)}
    assert seen == [p for p in range(4 * 37) if p not in out]


def test_a_range_is_left_out_after_a_state_from_before_it(store: Path) -> None:
    whole = numbers(every_sample(store))
    loader = CorpusLoader(store, batch_size=4)
    next(iter(loader))
    options = LoaderOptions(skip=[(6, 11), (11, 14)], drop_last=False)
    ranks = [
        CorpusLoader(store, rank=r, world_size=2, batch_size=3, options=options) for r in (0, 1)
    ]
    for rank in ranks:
        rank.load_state_dict(loader.state_dict())

    assert len(ranks[0]) == 5  # steps of 29 samples
    assert global_order(ranks) == whole[4:6] + whole[14:]
    assert len(ranks[0]) == 7  # the next epoch
    assert len(global_order(ranks)) == 37


@pytest.mark.parametrize("wrong", [(3, 3), (-1, 2), (5, 2), (0.0, 2), (1,), "ab", 7])
def test_a_skipped_range_that_is_none_is_named(wrong: Any) -> None:
    with pytest.raises(CorpusError, match=r"skip has .*; it takes ranges of positions"):
        LoaderOptions(skip=[wrong])


def test_stats_tell_waiting_for_data_from_training(store: Path) -> None:
    loader = CorpusLoader(store, batch_size=8)
    assert loader.stats() == LoaderStats()
    for _ in loader:
        time.sleep(0.01)
    before, after = loader.stats(), next(iter(loader)) and loader.stats()

    assert (before.batches, before.samples) == (4, 32)
    assert before.used_seconds >= 0.04
    assert 0 < before.wait_share < 1
    assert before.samples_per_second < 32 / 0.04
    assert (after.batches, after.samples) == (5, 40)


def test_state_is_small_json_and_resumes_with_another_world_and_batch_size(store: Path) -> None:
    whole = numbers(every_sample(store))
    first = every_sample(store, rank=1, world_size=2, batch_size=3)
    batches = iter(first)
    next(batches), next(batches)
    state = json.dumps(first.state_dict())

    ranks = [every_sample(store, rank=rank, world_size=5, batch_size=1) for rank in range(5)]
    for rank in ranks:
        rank.load_state_dict(json.loads(state))

    assert len(state) < 1024
    assert global_order(ranks) == whole[12:]


def test_set_epoch_goes_to_a_start_but_keeps_the_place_inside_that_epoch(store: Path) -> None:
    loader = every_sample(store)
    first, second = numbers(loader), numbers(loader)
    assert first != second and sorted(first) == sorted(second)
    assert (loader.epoch, loader.cursor) == (2, 74)
    loader.set_epoch(1)
    assert numbers(loader) == second

    loader.set_epoch(0)
    next(iter(loader))
    loader.set_epoch(0)
    assert numbers(loader) == first[8:]

    loader = every_sample(store, batch_size=4)
    batches = iter(loader)
    seen = numbers([next(batches)])
    loader.set_epoch(1)  # in an iteration
    assert (seen, numbers(batches)) == (first[:4], second)


@pytest.mark.parametrize("at", [2, 10], ids=["middle", "last"])
def test_a_state_that_is_loaded_in_an_iteration_gives_its_next_batch(store: Path, at: int) -> None:
    epoch = numbers(every_sample(store))
    loader = every_sample(store, batch_size=4)
    state, seen = loader.state_at(4), []
    for number, batch in enumerate(loader, 1):
        seen += numbers([batch])
        if number == at:
            loader.load_state_dict(state)
    assert seen == epoch[: 4 * at] + epoch[4:]
    assert loader.cursor == 37


@pytest.mark.parametrize("batch_size", [4, 40], ids=["middle", "last"])
def test_a_second_iteration_takes_over_and_the_first_raises(store: Path, batch_size: int) -> None:
    loader = every_sample(store, batch_size=batch_size)
    first, second = iter(loader), iter(loader)
    seen = [next(first), next(second)]
    state = loader.state_dict()

    with pytest.raises(CorpusError, match="another iteration of this loader has begun"):
        next(first)

    assert loader.state_dict() == state
    again = every_sample(store, batch_size=batch_size)
    both_epochs = numbers(again) + numbers(again)
    seen += second
    assert numbers(seen) == both_epochs[: 37 if batch_size == 4 else 74]


@pytest.mark.parametrize("first", [0, 1])
def test_a_loop_over_epochs_goes_on_after_the_last_batch_of_one(store: Path, first: int) -> None:
    whole = every_sample(store)
    epochs = [numbers(whole) for _ in range(3)]
    resumed = every_sample(store)
    resumed.load_state_dict(resumed.state_at(37))  # all of epoch 0

    seen = []
    for epoch in range(first, 3):
        resumed.set_epoch(epoch)
        seen += numbers(resumed)

    assert seen == epochs[1] + epochs[2]
    resumed.set_epoch(0)
    assert numbers(resumed) == epochs[0]


def test_a_seed_of_ones_own_gives_another_order(store: Path, tmp_path: Path) -> None:
    assert numbers(every_sample(store, seed=1)) != numbers(every_sample(store))
    assert numbers(every_sample(store, seed=1)) == numbers(every_sample(store, seed=1))
    of_phase = two_sources(tmp_path, seed=order_seed(7, "general"))  # as `mixed` writes it
    assert numbers(every_sample(of_phase, seed=7)) == numbers(every_sample(of_phase))


def test_a_source_of_which_nothing_is_drawn_needs_no_shards(tmp_path: Path) -> None:
    write_phase(tmp_path, {"web": [numbered_rows(1, 3)]})
    path = tmp_path / "mixed/general/mixture-1.json"
    mixture = json.loads(path.read_text())
    unused = {"name": "empty", "samples": 0, "shards": []}
    publish(tmp_path, mixture | {"sources": [unused, *mixture["sources"]]}, 2)

    loader = every_sample(tmp_path)

    assert loader.sources == ["web"]
    assert sorted(numbers(loader)) == [1, 2, 3]


def test_samples_are_found_at_any_position(store: Path) -> None:
    loader = every_sample(store)

    batch = loader.samples([18, 0, 1])

    assert numbers([batch]) == [ORDER[18], ORDER[0], ORDER[1]]
    assert batch.positions.tolist() == [18, 0, 1]
    assert [loader.sources[source] for source in batch.sources] == ["books", "web", "books"]


@pytest.mark.parametrize("rank", [0, 4])
def test_small_batches_read_together_are_what_they_are_one_by_one(
    tmp_path: Path, rank: int
) -> None:
    rows = [[[n] * (n % 4), [n] * (n % 3)] for n in range(1, 24)]
    write_phase(tmp_path, {"web": [rows]})
    loader = every_sample(tmp_path, "general", rank, 5, 2, options=WITH_DOCUMENTS)

    assert loader.steps_at_once() > 1
    for batch in loader.batches():
        alone = loader.samples(batch.positions)
        alone.mark_repeated(int(batch.is_repeated.sum()))
        assert batch.documents is not None and alone.documents is not None
        np.testing.assert_array_equal(batch.tokens, alone.tokens)
        np.testing.assert_array_equal(batch.sources, alone.sources)
        for name in (field.name for field in fields(Documents)):
            mine, its = getattr(batch.documents, name), getattr(alone.documents, name)
            np.testing.assert_array_equal(mine, its, strict=isinstance(its, np.ndarray))


@pytest.mark.parametrize(("dtype", "expected"), [("stored", "uint16"), ("int64", "int64")])
def test_tokens_come_as_stored_or_as_asked(
    store: Path, tmp_path: Path, dtype: str, expected: str
) -> None:
    options = LoaderOptions(dtype=dtype)  # type: ignore[arg-type]

    batch = next(iter(every_sample(store, options=options)))

    assert (batch.tokens.dtype, batch.tokens.shape) == (expected, (8, 8))
    assert numbers([batch]) == ORDER[:8]
    write_phase(tmp_path, {"web": [[[[70_000] * 8]]]}, token_dtype="uint32")
    large = next(iter(every_sample(tmp_path, options=options)))
    assert large.tokens.tolist() == [[70_000] * 8]


def test_documents_of_packed_rows(tmp_path: Path) -> None:
    write_phase(tmp_path, {"web": [[[[5, 6, 7], [8, 9]], [[1] * 8]]]})

    loader = every_sample(tmp_path, options=WITH_DOCUMENTS)
    batch = loader.samples(np.argsort([p[0] == 1 for p in loader.samples([0, 1]).tokens]))
    documents = batch.documents

    path = "sharded/web/megatron-0123abcd/shard-00000"
    assert documents is not None
    assert batch.tokens.tolist() == [[5, 6, 7, 8, 9, END, END, END], [1] * 8]
    assert documents.cu_seqlens.tolist() == [0, 3, 5, 8, 16]
    assert documents.cu_seqlens.dtype == np.int32
    assert documents.max_seqlen == 8
    assert documents.starts.tolist() == [0, 10, 0, 1]
    assert [bytes(row) for row in documents.doc_ids] == [
        *[doc_id(path, 0, 0), doc_id(path, 0, 1), bytes(16), doc_id(path, 1, 0)]
    ]
    assert documents.position_ids.tolist() == [[0, 1, 2, 0, 1, 0, 1, 2], [*range(8)]]
    expected = [[False, True, True, False, True, False, False, False], [False] + [True] * 7]
    assert documents.loss_mask.tolist() == expected
    assert documents.num_tokens.tolist() == [5, 8]


def test_rows_that_differ_in_length_are_filled_up_to_the_longest_of_the_batch(
    tmp_path: Path,
) -> None:
    rows = [[[length] * length] for length in range(1, 12)]
    write_phase(tmp_path, {"web": [rows[:4], rows[4:]]}, sequence_length=None)

    batches = list(every_sample(tmp_path, batch_size=3, options=WITH_DOCUMENTS))

    assert sorted(n for batch in batches for n in batch.lengths.tolist()) == list(range(1, 12))
    for batch in batches:
        assert batch.tokens.shape[1] == batch.lengths.max()
        for row, length in zip(batch.tokens.tolist(), batch.lengths.tolist(), strict=True):
            assert row == [length] * length + [END] * (len(row) - length)
        assert batch.documents is not None
        assert batch.documents.num_tokens.tolist() == batch.lengths.tolist()
        assert batch.documents.loss_mask.sum() == (batch.lengths - 1).sum()


def test_rows_are_found_where_more_shards_are_needed_than_may_be_open(store: Path) -> None:
    loader = every_sample(store, batch_size=7)
    loader.reader.shards.max_open = 2

    assert numbers(loader) == numbers(every_sample(store))
    assert len(loader.reader.shards.opened) <= 2


def test_no_more_shards_than_may_be_are_open_inside_one_read(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = every_sample(store, options=WITH_DOCUMENTS).samples(np.arange(37))
    maps: WeakSet[Any] = WeakSet()
    most = []

    class Counted(MappedFile):
        def __init__(self, path: Path, num_bytes: int) -> None:
            super().__init__(path, num_bytes)
            maps.add(self.map)
            most.append(len(maps))

    monkeypatch.setattr("corpus_loader.shards.MappedFile", Counted)
    loader = every_sample(store, batch_size=37, options=WITH_DOCUMENTS)
    loader.reader.shards.max_open = 2
    [batch] = loader

    assert max(most) == 2 * 2  # .bin and .spans of each
    np.testing.assert_array_equal(batch.tokens, expected.tokens)
    assert batch.documents is not None and expected.documents is not None
    np.testing.assert_array_equal(batch.documents.doc_ids, expected.documents.doc_ids)


def test_a_copy_in_another_process_opens_its_own_files(store: Path) -> None:
    loader = every_sample(store)
    next(iter(loader))

    sent = pickle.loads(pickle.dumps(loader))

    assert not sent.reader.shards.opened
    assert numbers(sent) == ORDER[8:] + numbers(every_sample(store))[len(ORDER) :]


def test_resuming_among_a_billion_samples_takes_no_time(tmp_path: Path) -> None:
    files = {suffix: {"bytes": 1, "sha256": ""} for suffix in ("bin", "idx", "spans")}
    shard = {"path": "nowhere", "rows": 10**9, "files": files}
    names = ["web", "books"]
    sources = [{"name": name, "samples": 10**9, "shards": [shard]} for name in names]
    write_phase(tmp_path, {}, sources=sources, batch_samples=512)
    loader = every_sample(tmp_path, rank=3, world_size=8, batch_size=64)

    start = time.process_time()
    loader.load_state_dict(loader.state_at(1_234_567_890))
    steps = loader.split.steps(loader.cursor, range(1))
    found = loader.reader.look_up(steps.positions)
    seconds = time.process_time() - start

    assert steps.cursors == [1_234_567_890 + 512]
    assert len(set(found.rows)) == 64
    assert seconds < 0.01


def test_where_no_whole_step_is_left_the_next_epoch_begins(store: Path) -> None:
    loader = CorpusLoader(store, batch_size=8, options=LoaderOptions(drop_last=True))
    loader.load_state_dict(loader.state_at(33))

    assert list(loader) == []
    assert loader.epoch == 1
    assert len(list(loader)) == 4


@given(
    lengths=st.lists(st.lists(st.integers(1, 5), max_size=4), max_size=4), room=st.integers(0, 3)
)
def test_segments_cover_a_batch_and_name_its_documents(lengths: list[list[int]], room: int) -> None:
    length = max(map(sum, lengths), default=0) + room
    rows = [
        Spans(
            np.array([7] * len(row), np.uint32),
            np.array(row, np.uint32),
            np.full((len(row), 16), 9, np.uint8),
        )
        for row in lengths
    ]

    found = find_documents(rows, length)

    segments = [[*row, length - sum(row)] if sum(row) < length else row for row in lengths]
    assert np.diff(found.cu_seqlens).tolist() == [each for row in segments for each in row]
    assert found.position_ids.tolist() == [[p for n in row for p in range(n)] for row in segments]
    assert found.num_tokens.tolist() == [sum(row) for row in lengths]
    assert found.loss_mask.tolist() == [
        [p > 0 for n in row for p in range(n)] + [False] * (length - sum(row)) for row in lengths
    ]
    is_document = found.starts == 7
    assert (found.doc_ids.any(axis=1) == is_document).all()
    assert is_document.sum() == sum(map(len, lengths))


@cases("""
    name       | value
    path       | 5
    phase      | None
    rank       | "0"
    world_size | 2.0
    batch_size | True
    seed       | "1"
    options    | {"dtype": "int64"}
""")
def test_an_argument_of_another_type_is_named(store: Path, name: str, value: Any) -> None:
    given: dict[str, Any] = {"path": store} | {name: value}
    with pytest.raises(CorpusError, match=f"^{name} is "):
        CorpusLoader(**given)


def test_a_state_of_another_phase_says_which(tmp_path: Path) -> None:
    two_sources(tmp_path)
    two_sources(tmp_path, phase="late", seed=3)
    state = CorpusLoader(tmp_path, "late").state_dict()

    with pytest.raises(CorpusError, match="the state is of the phase 'late': open the loader with"):
        CorpusLoader(tmp_path).load_state_dict(state)
    with pytest.raises(CorpusError, match="a state is what state_dict"):
        CorpusLoader(tmp_path).load_state_dict(7)  # type: ignore[arg-type]


@pytest.mark.parametrize("inside", ["mixed", "mixed/general", "sharded"])
def test_a_folder_inside_of_a_corpus_names_the_corpus(store: Path, inside: str) -> None:
    with pytest.raises(CorpusError, match=r"inside of the corpus .*Give that folder"):
        CorpusLoader(store / inside)


def test_steps_are_columns() -> None:
    split = Split(10, 0, 2, 2, "pad")

    steps = split.steps(0, range(3))  # the last one of rank 0 has one sample

    assert steps.positions.tolist() == [0, 1, 4, 5, 8, 9]
    assert steps.sizes == [2, 2, 2]
    assert steps.cursors == [4, 8, 10]
    assert steps.repeated == [0, 0, 1]
    assert split.steps(0, range(3)[:2]).positions.tolist() == [0, 1, 4, 5]
    assert split.steps(0, range(0)).sizes == []
    enormous = Split(10, 1, 2, 1 << 62, "short").steps(4, range(1))
    assert enormous.positions.tolist() == [7, 8, 9]
    assert enormous.cursors == [10]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [pl.UInt16, pl.UInt32])
def test_a_shard_is_read_as_it_was_written(tmp_path: Path, dtype: type[pl.DataType]) -> None:
    spans = [
        [{"doc_id": "0a" * 16, "start": 5, "length": 2}],
        [
            {"doc_id": "0b" * 16, "start": 0, "length": 3},
            {"doc_id": "0c" * 16, "start": 1, "length": 1},
        ],
    ]
    rows = [[7, 8], [1, 2, 3, 4]]
    shard = pl.DataFrame({"tokens": rows, "spans": spans}).cast(
        {
            "tokens": pl.List(dtype),
            "spans": pl.List(
                pl.Struct({"doc_id": pl.String, "start": pl.UInt32, "length": pl.UInt32})
            ),
        }
    )
    name = str(dtype()).lower()
    paths = [tmp_path / f"shard-00000.{suffix}" for suffix in MEGATRON.suffixes]
    MEGATRON.write(paths, shard, ShardSchema(name, None, 0, 100, "f" * 64))

    tokens, index_file, spans_file = (MappedFile(path, path.stat().st_size) for path in paths)
    index, documents = read_index(index_file, name, 2), read_spans(spans_file, 2)

    assert tokens.array(0, name, 6).tolist() == [7, 8, 1, 2, 3, 4]
    assert index.lengths.tolist() == [2, 4]
    assert index.pointers.tolist() == [0, 2 * tokens.num_bytes // 6]
    assert documents.row(0).starts.tolist() == [5]
    assert documents.row(1).starts.tolist() == [0, 1]
    assert documents.row(1).lengths.tolist() == [3, 1]
    assert [bytes(doc_id).hex() for doc_id in documents.row(1).doc_ids] == ["0b" * 16, "0c" * 16]
