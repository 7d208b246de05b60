"""Digests that are read beside the imports are those that planning would read."""

from __future__ import annotations

import multiprocessing
import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from builders import open_corpus, write_corpus

from assets.raw.asset import plan_raw
from assets.raw.places.observed_inputs import known_files
from pipeline_defs.early_digests import early_digests

LONG_AGO = 10**18  # a time of change, in ns
LONGEST_SECONDS = 20
TERABYTE = 10**12  # of a sparse file: more than is read in these seconds


@pytest.fixture
def corpus(tmp_path: Path) -> Any:
    """A corpus of files that were changed long ago."""
    corpus = open_corpus(write_corpus(tmp_path))
    for path in (tmp_path / "input").glob("*/*"):
        os.utime(path, ns=(LONG_AGO, LONG_AGO))
    return corpus


def with_place(corpus: Any, place: str) -> Any:
    """The corpus with another place for its first source."""
    content = yaml.safe_load(corpus.config.read_text())
    content["sources"][0]["where"] = place
    corpus.config.write_text(yaml.safe_dump(content))
    return open_corpus(corpus.config)


def known(corpus: Any, source: str) -> bytes:
    path = known_files(corpus, source).path
    return path.read_bytes() if path.exists() else b""


def read_early(corpus: Any) -> None:
    """Read until the last source is known."""
    last = corpus.settings.source_names()[-1]
    deadline = time.monotonic() + LONGEST_SECONDS
    with early_digests(corpus):
        while not known(corpus, last) and time.monotonic() < deadline:
            time.sleep(0.01)


def test_planning_finds_the_digests_that_it_would_read(
    corpus: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = corpus.settings.source_names()
    read_early(corpus)
    early = [known(corpus, name) for name in names]
    tasks = [plan_raw(corpus, name).tasks for name in names]
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "another_home"))

    assert all(early) and not known(corpus, names[0])
    assert [plan_raw(corpus, name).tasks for name in names] == tasks
    assert [known(corpus, name) for name in names] == early


def test_a_file_that_changes_after_it_is_read_again(corpus: Any, tmp_path: Path) -> None:
    before = plan_raw(corpus, "prose").provenance
    known_files(corpus, "prose").path.unlink()
    read_early(corpus)
    (tmp_path / "input/prose/a.jsonl").write_text('{"text": "another"}\n')

    assert plan_raw(corpus, "prose").provenance != before


def test_nobody_waits_for_a_file_that_takes_long(corpus: Any, tmp_path: Path) -> None:
    with open(tmp_path / "input/prose/long.jsonl", "wb") as file:
        file.truncate(TERABYTE)
    os.utime(file.name, ns=(LONG_AGO, LONG_AGO))
    begun = time.monotonic()
    with early_digests(corpus):
        time.sleep(0.1)

    assert time.monotonic() - begun < LONGEST_SECONDS
    assert not multiprocessing.active_children()
    assert not any(known(corpus, name) for name in corpus.settings.source_names())


def test_what_fails_is_left_to_planning(corpus: Any) -> None:
    known_files(corpus, "prose").path.mkdir(parents=True)
    read_early(corpus)

    assert known(corpus, "notes")


def test_no_server_is_asked(corpus: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        for name, value in {
            "ACCESS_KEY_ID": "a",
            "SECRET_ACCESS_KEY": "b",
            "ALLOW_HTTP": "true",
        }.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        remote = with_place(corpus, "s3://bucket/*.jsonl")
        read_early(remote)
        server.setblocking(False)

        assert known(remote, "notes")
        with pytest.raises(BlockingIOError):
            server.accept()
