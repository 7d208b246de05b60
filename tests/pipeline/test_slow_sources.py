"""A source whose server is slow to answer delays no other, and changes no byte."""

import logging

from builders import Build, hashes, open_corpus, sentence, write_corpus
from input_files import jsonl
from prelude import Any, Iterator, Path, pytest, time
from range_site import RangeSite, range_site

from resources import side_by_side

FEED = jsonl(*[sentence(number) for number in range(40)])


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[RangeSite]:
    monkeypatch.setenv("NETRC", "/dev/null")
    monkeypatch.setattr(side_by_side, "PROMPT_SECONDS", 0.1)
    with range_site() as found:
        yield found


def of_feed(folder: Path, site: RangeSite, **changes: Any) -> Any:
    """A corpus of a source on the web and one on the disk."""
    site.files["a.jsonl"] = FEED
    sources = [{"name": "feed", "where": site.url("a.jsonl")}]
    sources += [{"name": "notes", "where": "input/notes/*"}]
    phases = [{"name": "main", "weights": {"feed": 1}}]
    return open_corpus(write_corpus(folder, sources=sources, phases=phases, **changes))


def committed(corpus: Any, source: str) -> bool:
    return bool(corpus.store.partition("raw", source).manifest_numbers())


def test_others_are_committed_while_a_server_thinks_and_its_source_follows(
    site: RangeSite, tmp_path: Path, build: Build, caplog: pytest.LogCaptureFixture
) -> None:
    build(of_feed(tmp_path / "quick", site), "raw")
    corpus = of_feed(tmp_path / "slow", site)
    seen = []

    def think() -> None:
        until = time.monotonic() + 20
        while not committed(corpus, "notes") and time.monotonic() < until:
            time.sleep(0.01)
        seen.append((committed(corpus, "notes"), committed(corpus, "feed")))

    site.ready = think
    with caplog.at_level(logging.WARNING, "tokenmill"):
        build(corpus, "raw")

    assert seen[0] == (True, False)
    assert "raw: still planning 'feed'; the others begin without it" in caplog.messages
    assert hashes(tmp_path / "slow/store/raw") == hashes(tmp_path / "quick/store/raw")


def test_with_stop_no_source_begins_before_all_are_planned(
    site: RangeSite, tmp_path: Path, dagster_build: Build
) -> None:
    corpus = of_feed(tmp_path, site, on_source_error="stop")
    del site.files["a.jsonl"]
    result = dagster_build(corpus, "raw", raise_on_error=False)
    assert not result.success and not committed(corpus, "notes")
