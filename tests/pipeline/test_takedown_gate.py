"""A takedown wins over rollback, hold, tag, replay, publishing and loaders of older mixtures."""

import shutil

from builders import Build, open_corpus, sentence, write_corpus, write_jsonl
from every_stage import build as build_stages
from prelude import Any, Iterator, Path, pytest
from verbs import Cli

from assets.mixed.asset import plan_mixed
from assets.mixed.budgets import MixError
from assets.raw.readers.input_record import Patch
from assets.stages import used_stages
from corpus_loader import CorpusLoader, LoaderOptions
from corpus_loader.places.errors import CorpusError
from pipeline_defs.commands.life.quarantine import refuse_forbidden
from pipeline_defs.commands.main import main
from pipeline_defs.commands.states.rollback import begin, go_back
from resources.errors import UsageError
from resources.store.store import StoreError
from resources.takedowns import check_rollback

URL = "https://a.example/1"
TAKE_DOWN = ["takedown", "--url", URL, "--reason", "ticket 7"]


def build_all(corpus: Any) -> None:
    build_stages(corpus, used_stages(corpus.settings).values())


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Three states of prose: before a document came, with it, and with one more."""
    folder = tmp_path_factory.mktemp("nights")
    corpus = open_corpus(write_corpus(folder))
    build_all(corpus)
    for name, url in (("c", URL), ("d", "https://a.example/2")):
        number = ord(name)
        record = {"text": sentence(5 * number, 40), "url": url}
        write_jsonl(folder / f"input/prose/{name}.jsonl", [record])
        build_all(corpus)
    yield folder


@pytest.fixture
def corpus(nights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    shutil.copytree(nights, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(tmp_path / "pipeline.yaml"))
    return open_corpus(tmp_path / "pipeline.yaml")


def test_a_rollback_is_refused_and_the_newest_state_without_the_document_is_named(
    corpus: Any,
) -> None:
    assert main(TAKE_DOWN) == 0
    with pytest.raises(StoreError, match=r"takedown 1 \(ticket 7\).*newest .* without them is 1\."):
        begin(corpus.store, "prose", "2", "")
    build_all(corpus)
    with pytest.raises(StoreError, match=r"The newest state without them is 4\."):
        begin(corpus.store, "prose", "3", "")
    go_back(corpus, begin(corpus.store, "prose", "4", ""))


def test_a_held_source_is_not_published_with_what_was_taken_down(
    corpus: Any, dagster_build: Build, cli: Cli
) -> None:
    hold = begin(corpus.store, "prose", "2", "bad file")
    go_back(corpus, hold)
    release = "corpus states rollback prose --release"
    said = cli.out(*TAKE_DOWN).splitlines()
    assert said[-4:] == ["Next:", release, "corpus build", "corpus takedown prove --purge"]

    with pytest.raises(StoreError, match=f"takedown 1 .*{release}"):
        check_rollback(corpus.store, hold)
    result = dagster_build(corpus, "raw", raise_on_error=False)
    assert not result.success
    with pytest.raises(MixError, match=r"would draw documents of takedown 1 \(ticket 7\) from"):
        plan_mixed(corpus, "main")


def test_a_state_with_what_was_taken_down_gets_no_tag(corpus: Any, cli: Cli) -> None:
    assert main(TAKE_DOWN) == 0
    assert "raw[prose] has documents of takedown 1 (ticket 7)" in cli.err(1, "states", "tag", "v1")
    build_all(corpus)
    assert main(["states", "tag", "v1"]) == 0


def test_a_patch_does_not_bring_it_back(corpus: Any) -> None:
    assert main(TAKE_DOWN) == 0
    record = '{"text": "other", "url": "http://a.example/1/"}'
    with pytest.raises(UsageError, match="a takedown means this record"):
        refuse_forbidden(corpus, "prose", [Patch("input/prose/a.jsonl", 3, "0", record)])
    kept = Patch("input/prose/a.jsonl", 3, "0", '{"text": "other"}')
    refuse_forbidden(corpus, "prose", [kept])


def test_a_loader_does_not_start_on_a_mixture_from_before_a_takedown(
    corpus: Any, caplog: pytest.LogCaptureFixture, cli: Cli
) -> None:
    assert main(["states", "tag", "v1"]) == 0
    url, root = corpus.store.root.as_uri(), corpus.store.root
    assert "corpus takedown prove --purge --tag v1" in cli.out(*TAKE_DOWN)

    for place in (root, url):
        with pytest.raises(CorpusError, match=r"takedown 1 removed .* prose .* `corpus build`"):
            CorpusLoader(place, "main")
    CorpusLoader(root, "main", options=LoaderOptions(accept_takedown=1))
    assert "takedown 1 removed documents of prose" in caplog.text
    build_all(corpus)
    CorpusLoader(root, "main")
    with pytest.raises(CorpusError, match="accept_takedown=1"):
        CorpusLoader(root, "main", data="v1")
    with pytest.raises(CorpusError, match="accept_takedown is True"):
        LoaderOptions(accept_takedown=True)


def test_a_takedown_elsewhere_or_of_nothing_stops_no_loader(corpus: Any) -> None:
    for url in ("https://nowhere.example/", "https://a.example/nothing"):
        assert main(["takedown", "--url", url, "--reason", "asked"]) == 0
    assert CorpusLoader(corpus.store.root, "main").mixture.takedowns == 0
    build_all(corpus)
    assert CorpusLoader(corpus.store.root, "main").mixture.takedowns == 2
