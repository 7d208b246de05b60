"""The loader over a network: the same samples, through a bounded cache."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from loader_corpus import every_sample, two_sources

from corpus_loader import CorpusError, CorpusLoader, LoaderOptions


class Quiet(SimpleHTTPRequestHandler):
    """A file server that does not log."""

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """37 rows, each of whose tokens is the row's number."""
    return two_sources(tmp_path_factory.mktemp("corpus"), window_shards=1)


@pytest.fixture(scope="module")
def url(store: Path) -> Iterator[str]:
    """The same over http."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=store)) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def rows(loader: CorpusLoader) -> list[int]:
    """The rows of an epoch."""
    return [int(row[0]) for batch in loader for row in batch.tokens]


@pytest.mark.parametrize("shards_cached", [1, 100])
def test_a_url_gives_what_the_folder_gives(
    store: Path, url: str, tmp_path: Path, shards_cached: int
) -> None:
    one_shard = 1200  # bytes: its three files
    options = LoaderOptions(
        with_documents=True, cache=tmp_path, cache_bytes=one_shard * shards_cached
    )

    assert rows(every_sample(url, options=options)) == rows(every_sample(store))


def test_a_file_url_is_read_in_place(store: Path, tmp_path: Path) -> None:
    loader = every_sample(store.as_uri(), options=LoaderOptions(cache=tmp_path / "cache"))

    assert rows(loader) == rows(every_sample(store))
    assert not (tmp_path / "cache").exists()


def test_an_unknown_phase_behind_a_url(url: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no phase 'final' here; there are: general"):
        every_sample(url, "final", options=LoaderOptions(cache=tmp_path))
