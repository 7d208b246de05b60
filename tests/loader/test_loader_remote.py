"""The loader over a network: the same samples, through a bounded cache."""

from functools import partial

from loader_corpus import every_sample, two_sources
from prelude import Any, Iterator, Path, json, pytest
from served import served_folder

from corpus_loader import CorpusError, CorpusLoader, LoaderOptions
from corpus_loader.seal import sealed


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """37 rows, each of whose tokens is the row's number."""
    return two_sources(tmp_path_factory.mktemp("corpus"), window_shards=1)


@pytest.fixture(scope="module")
def url(store: Path) -> Iterator[str]:
    """The same over http."""
    with served_folder(store) as place:
        yield place


def rows(loader: CorpusLoader) -> list[int]:
    """The rows of an epoch."""
    return [int(row[0]) for batch in loader for row in batch.tokens]


@pytest.mark.parametrize("shards_cached", [1, 100])
def test_a_url_gives_what_the_folder_gives(
    store: Path, url: str, tmp_path: Path, shards_cached: int
) -> None:
    cache_bytes = 1200 * shards_cached  # the three files of each
    options = LoaderOptions(with_documents=True, cache=tmp_path, cache_bytes=cache_bytes)

    assert rows(every_sample(url, options=options)) == rows(every_sample(store))


def test_an_unknown_phase_behind_a_url(url: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no phase 'final' here; there are: general"):
        every_sample(url, "final", options=LoaderOptions(cache=tmp_path))


def write_takedown(store: Path, number: int, **content: Any) -> None:
    (store / "_takedowns").mkdir(exist_ok=True)
    encoded = json.dumps({"parts": {}, **content}).encode() + b"\n"
    (store / f"_takedowns/{number:08d}.json").write_bytes(sealed(encoded))


def test_takedowns_behind_a_url_stop_a_loader_until_they_are_accepted_or_withdrawn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = two_sources(tmp_path / "corpus")
    drawn = CorpusLoader(folder).sources[0]
    with served_folder(folder) as url:
        start = partial(CorpusLoader, url)
        cached = partial(LoaderOptions, cache=tmp_path / "cache")
        write_takedown(folder, 1)
        write_takedown(folder, 2, parts={"elsewhere": ["a"]})
        start(options=cached())
        write_takedown(folder, 3, parts={drawn: ["a"]})
        with pytest.raises(CorpusError, match=f"takedown 3 removed documents of {drawn} after"):
            start(options=cached(accept_takedown=2))
        start(options=cached(accept_takedown=3))
        assert "accept_takedown=3 lets phase 'general' draw them" in caplog.text
        write_takedown(folder, 4, withdraws=3)
        start(options=cached())
        (folder / "_takedowns/00000005.json").write_bytes(b"{")
        with pytest.raises(CorpusError, match=r"_takedowns/00000005\.json is damaged"):
            start(options=cached())
