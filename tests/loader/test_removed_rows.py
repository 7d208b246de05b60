"""Rows that are removed from shards, but are still in their files, are never drawn."""

import pickle
from tempfile import TemporaryDirectory

from loader_corpus import (
    Row,
    every_sample,
    numbered_rows,
    publish,
    remove_rows,
    two_sources,
    write_phase,
)
from prelude import Path, given, json, np, pytest, settings, st
from served import served_folder

from corpus_loader import CorpusError, CorpusLoader, LoaderOptions
from corpus_loader.find_mixture import find_mixture
from corpus_loader.places.files import Verify
from corpus_loader.places.remote import open_files

REMOVED = {"books": {0: [0, 5, 15]}, "web": {0: [4], 2: [0, 1, 2, 3]}}
GONE = {1, 6, 16, 105, 111, 112, 113, 114}
LISTED = "sharded/web/removed-0123abcd.rows"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """37 rows, each of whose tokens is the row's number; 8 are removed, one shard's all."""
    return remove_rows(two_sources(tmp_path), REMOVED)


def rows(loader: CorpusLoader) -> list[int]:
    """The rows of an epoch."""
    return [int(row[0]) for batch in loader for row in batch.tokens]


def test_an_epoch_has_every_live_row_once_and_no_removed_one(store: Path) -> None:
    loader = every_sample(store)
    expected = sorted({*range(1, 24), *range(101, 115)} - GONE)

    assert sorted(rows(loader)) == sorted(rows(loader)) == expected


@pytest.mark.parametrize("window", [None, 1, 2])
def test_a_run_goes_on_at_the_exact_sample_among_live_rows(
    tmp_path: Path, window: int | None
) -> None:
    store = remove_rows(two_sources(tmp_path, window_shards=window), REMOVED)
    whole = rows(every_sample(store, batch_size=1))
    first = every_sample(store, batch_size=5)
    seen = [int(row[0]) for _, batch in zip("ab", first, strict=False) for row in batch.tokens]

    ranks = [every_sample(store, "general", rank, 3, 1) for rank in range(3)]
    for loader in ranks:
        loader.load_state_dict(json.loads(json.dumps(first.state_dict())))
    steps = zip(*(pickle.loads(pickle.dumps(loader)).batches() for loader in ranks), strict=True)
    rest = [int(batch.tokens[0, 0]) for step in steps for batch in step]

    assert seen == whole[: len(seen)]
    assert rest[: len(whole) - len(seen)] == whole[len(seen) :]


Removed = dict[int, set[int]]


@st.composite
def shards_and_removed(draw: st.DrawFn) -> tuple[list[int], Removed]:
    """Rows of shards, and removed ones of some."""
    sizes = draw(st.lists(st.integers(1, 30), min_size=1, max_size=6))
    gone = {
        number: draw(st.sets(st.integers(0, size - 1), max_size=size))
        for number, size in enumerate(sizes)
    }
    if sum(sizes) == sum(map(len, gone.values())):
        gone[0].discard(0)
    return sizes, {number: which for number, which in gone.items() if which}


@settings(max_examples=40)
@given(shards_and_removed(), st.sampled_from([None, 1, 2]))
def test_removed_rows_give_what_shards_without_them_give(
    found: tuple[list[int], Removed], window: int | None
) -> None:
    sizes, removed = found
    shards = [numbered_rows(100 * number, size) for number, size in enumerate(sizes, 1)]
    live = [without(rows, removed.get(number, set())) for number, rows in enumerate(shards)]
    options = LoaderOptions(with_documents=True)
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        write_phase(Path(one), {"web": shards}, window_shards=window)
        remove_rows(Path(one), {"web": {n: sorted(which) for n, which in removed.items()}})
        write_phase(Path(other), {"web": live}, window_shards=window)
        pairs = zip(every_sample(one, options=options), every_sample(other), strict=True)
        for mine, theirs in pairs:
            np.testing.assert_array_equal(mine.tokens, theirs.tokens)
            assert mine.documents is not None
            np.testing.assert_array_equal(mine.documents.num_tokens, theirs.lengths)


def without(rows: list[Row], removed: set[int]) -> list[Row]:
    """Rows of a shard without some."""
    return [row for number, row in enumerate(rows) if number not in removed]


def test_an_older_mixture_still_draws_what_was_removed_since(store: Path) -> None:
    older = json.loads((store / "mixed/general/mixture-1.json").read_text())["fingerprint"]
    loader = every_sample(store, options=LoaderOptions(data=older))

    assert set(rows(loader)) == {*range(1, 24), *range(101, 115)}
    with pytest.raises(CorpusError, match="other data, or another order"):
        every_sample(store).load_state_dict(loader.state_dict())


@pytest.mark.parametrize("shards_cached", [1, 100])
def test_a_url_gives_what_the_folder_gives_without_removed_rows(
    store: Path, tmp_path_factory: pytest.TempPathFactory, shards_cached: int
) -> None:
    cache = tmp_path_factory.mktemp("cache")
    options = LoaderOptions(cache=cache, cache_bytes=1200 * shards_cached)
    with served_folder(store) as url:
        assert rows(every_sample(url, options=options)) == rows(every_sample(store))


@pytest.mark.parametrize("workers", [0, 2])
def test_workers_of_torch_skip_removed_rows(store: Path, workers: int) -> None:
    pytest.importorskip("torch")
    from corpus_loader.torch_dataset import CorpusDataLoader, CorpusDataset

    dataset = CorpusDataset(every_sample(store, batch_size=4))
    loader = CorpusDataLoader(dataset, num_workers=workers)

    assert [int(row[0]) for batch in loader for row in batch["tokens"]] == rows(every_sample(store))


@pytest.mark.parametrize("verify", ["background", "first"])
def test_a_flipped_bit_among_removed_rows_is_found_before_the_first_batch(
    store: Path, verify: Verify
) -> None:
    content = bytearray((store / LISTED).read_bytes())
    content[0] ^= 1
    (store / LISTED).write_bytes(content)

    with pytest.raises(CorpusError, match=rf"{LISTED} changed since it was written.*--repair"):
        every_sample(store, options=LoaderOptions(verify=verify))


@pytest.mark.parametrize("removed", [[1, 0, 2, 3], [0, 2, 2, 3], [0, 1, 2, 4]])
def test_removed_rows_that_cannot_be_are_refused_without_hashing(
    store: Path, removed: list[int]
) -> None:
    path = store / LISTED
    listed = np.fromfile(path, "<u4")
    listed[1:] = removed  # of a shard of 4 rows
    listed.tofile(path)
    message = rf"{LISTED} is damaged: the 4 rows that it removes from .*00002 are not ascending"

    with pytest.raises(CorpusError, match=message):
        every_sample(store, options=LoaderOptions(verify=False))


def test_a_missing_list_of_removed_rows_is_named(store: Path) -> None:
    (store / LISTED).unlink()

    with pytest.raises(CorpusError, match=rf"{LISTED} is missing.*corpus verify --repair"):
        every_sample(store)


@pytest.mark.parametrize("change", [{"removed_from": 5}, {"removed_from": -1}, {"removed": 9}])
def test_places_outside_of_the_list_are_refused(store: Path, change: dict[str, int]) -> None:
    found = json.loads((store / "mixed/general/mixture-2.json").read_text())
    found["sources"][1]["shards"][0] |= change
    publish(store, found, 3)

    with pytest.raises(CorpusError, match=rf"{LISTED} has 20 bytes, too few"):
        every_sample(store)


def test_removed_rows_without_a_list_are_a_damaged_mixture(store: Path) -> None:
    found = json.loads((store / "mixed/general/mixture-2.json").read_text())
    del found["sources"][1]["removed"]
    publish(store, found, 3)

    message = r"is not a mixture .*'web' has removed rows, but no file"
    with pytest.raises(CorpusError, match=message):
        find_mixture(open_files(store, "first", None, None), "general")
