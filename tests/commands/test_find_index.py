"""An index gives the answers of a scan, stays as long as its part, and goes with a takedown."""

from unicodedata import normalize

from builders import open_corpus, write_corpus, write_jsonl
from every_stage import build
from many_examples import many_examples
from prelude import Any, Iterator, Path, given, json, np, pl, pytest, st

from assets.stages import used_stages
from pipeline_defs.commands.look.find_query import Options, Query
from pipeline_defs.commands.look.gram_blocks import documents_with, mark_blocks
from pipeline_defs.commands.main import main

LETTERS = st.text(st.sampled_from("abcSsßſKKﬁéÉe\u0301ЖжΣς가 .\n"), max_size=40)
DOCUMENTS = st.lists(LETTERS, min_size=1, max_size=6)
FORMS = (str, str.upper, lambda text: normalize("NFD", text), lambda text: normalize("NFC", text))
PAGE = 4096 + 8


@many_examples(3000)
@given(DOCUMENTS, st.data())
def test_no_document_that_a_scan_finds_is_ruled_out(texts: list[str], data: Any) -> None:
    text = data.draw(st.sampled_from(texts))
    start = data.draw(st.integers(0, len(text)))
    string = data.draw(st.sampled_from(FORMS))(text[start : start + data.draw(st.integers(1, 20))])
    ignore_case = data.draw(st.booleans())
    if not string:
        return
    query = Query.of(string, Options(ignore_case=ignore_case))
    table = pl.DataFrame({"text": texts}).with_row_index()
    scanned = query.find(table)["index"].to_list()
    pages = np.frombuffer(mark_blocks(table["text"]), np.uint8)
    left = documents_with(pages, query.strings) if query.strings else np.ones(len(texts), bool)
    assert set(scanned) <= set(np.flatnonzero(left).tolist())


def test_most_documents_without_the_string_are_ruled_out() -> None:
    texts = pl.Series([f"{i:05} {'the river and the bridge ' * 40}" for i in range(2000)])
    pages = np.frombuffer(mark_blocks(texts), np.uint8)
    [*strings] = Query.of("01234 THE", Options(ignore_case=True)).strings
    left = documents_with(pages, strings)
    assert left[1234] and left.sum() < 50
    assert len(pages) < texts.str.len_bytes().sum() / 6 + 2 * PAGE
    assert not documents_with(pages, [b"zyxomma petiolatum"]).any()


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = write_corpus(tmp_path_factory.mktemp("indexed"))
    record = {"text": "A place of its own, with Straße and more", "url": "https://example.org/a"}
    write_jsonl(path.parent / "input/notes/own.jsonl", [record])
    corpus = open_corpus(path)
    build(corpus, used_stages(corpus.settings).values())
    yield path


@pytest.fixture
def corpus(config: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(config))
    return open_corpus(config)


def indexes(corpus: Any, stage: str = "raw") -> set[Path]:
    return {*corpus.store.root.glob(f"{stage}/*/*.find-1.bin")}


@pytest.mark.parametrize("stage", ["raw", "deduped"])
def test_a_search_by_index_gives_the_hits_of_a_scan(
    corpus: Any, stage: str, capfd: pytest.CaptureFixture[str]
) -> None:
    def found(*query: str) -> Any:
        main(["find", *query, "--stage", stage, "--limit", "500", "--json"])
        return json.loads(capfd.readouterr().out)

    queries = (
        ["river 7a"], ["STRASSE AND", "--ignore-case"], ["bridge", "--regex", "7[ab]"],
        ["zyxomma petiolatum"], ["its own, with", "--url", "example.org"], ["town"],
    )  # fmt: skip
    scanned = [found(*query) for query in queries]
    assert main(["find", "--build-index", "--stage", stage]) == 0
    assert "4 of 4 parts indexed" in capfd.readouterr().err
    searched = [found(*query) for query in queries]
    assert [each["hits"] for each in searched] == [each["hits"] for each in scanned]
    assert scanned[1]["hits"] and searched[3]["documents"] < scanned[3]["documents"] / 4
    main(["find", "--build-index", "--stage", stage])
    assert "0 of 4 parts indexed" in capfd.readouterr().err


def test_a_lost_bit_is_told(corpus: Any, capfd: pytest.CaptureFixture[str]) -> None:
    main(["find", "--build-index", "--source", "prose"])
    path = next(corpus.store.root.glob("raw/prose/*.find-1.bin"))
    whole = path.read_bytes()
    path.write_bytes(bytes(len(whole)))
    assert main(["find", "a river of its own"]) == 1
    assert "is damaged: page" in capfd.readouterr().err
    path.write_bytes(whole)


def test_an_index_goes_with_its_part_and_by_a_takedown(
    corpus: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    main(["find", "--build-index"])
    before = indexes(corpus)
    assert main(["states", "gc", "--delete", "--keep", "1"]) == 0
    assert indexes(corpus) == before, "a part that stays keeps its index"
    assert main(["takedown", "--url", "https://example.org/a", "--reason", "asked"]) == 0
    [gone] = before - indexes(corpus)
    assert main(["find", "--build-index"]) == 1
    assert "takedown 1 (asked): no index of it" in capfd.readouterr().err
    build(corpus, used_stages(corpus.settings).values())
    assert main(["find", "--build-index"]) == 0
    assert main(["takedown", "prove", "--purge"]) == 0
    assert not gone.exists() and len(indexes(corpus)) == 4

    (corpus.config.parent / "input/notes/own.jsonl").unlink()
    build(corpus, used_stages(corpus.settings).values())
    assert len(indexes(corpus)) == 4, "an older state has the part"
    main(["states", "gc", "--delete", "--keep", "1"])
    assert len(indexes(corpus)) == 3
