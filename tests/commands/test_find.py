"""`corpus find` shows the documents with a string, kept or removed, and what became of them."""

from builders import SHARED_TEXT, open_corpus, sentence, write_corpus, write_jsonl
from every_stage import build
from prelude import Any, Iterator, Path, json, pytest

from assets.stages import used_stages
from pipeline_defs.commands.main import main

RULES = {"length": {"min_chars": 40}}
URL = "https://www.Blog.example.org/a/Page?x=1"
SHORT = "Größe: 5 µm, <b>\x1b[31m"


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Build the small corpus with a short document."""
    path = write_corpus(tmp_path_factory.mktemp("found"), filters={"rules": RULES})
    write_jsonl(path.parent / "input/notes/short.jsonl", [{"text": SHORT, "url": URL}])
    corpus = open_corpus(path)
    build(corpus, used_stages(corpus.settings).values())
    yield path


@pytest.fixture
def found(config: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Run the command, and return its exit code and what it found."""
    monkeypatch.setenv("TOKENMILL_CONFIG", str(config))

    def run(*arguments: str) -> tuple[int, dict[str, Any]]:
        code = main(["find", *arguments, "--json"])
        return code, json.loads(capfd.readouterr().out)

    return run


def test_a_kept_document_is_shown_with_its_place_and_its_shard(found: Any) -> None:
    code, result = found("river 7a")
    [hit] = result["hits"]
    assert code == 0
    assert (hit["source"], hit["file"], hit["row"]) == ("prose", "input/prose/a.jsonl", 1413)
    assert hit["fate"] == "in training shards"
    assert hit["shards"]
    assert result["documents"] == 82
    assert "river 7a" in hit["around"]


def test_copies_and_rejected_documents_are_shown_with_the_reason(found: Any) -> None:
    fates = [hit["fate"] for hit in found(SHARED_TEXT)[1]["hits"]]
    assert sorted(fate.split()[0] for fate in fates) == ["duplicate", "in"]
    [hit] = found("5 µm")[1]["hits"]
    assert hit["fate"].startswith("rejected: length.too_short")
    assert "\x1b" not in hit["around"]


def test_bytes_are_exact_unless_case_is_ignored(found: Any) -> None:
    assert found("GRÖSSE")[0] == 1
    assert found("GRÖßE: 5")[0] == 1
    assert found("GRÖßE: 5", "--ignore-case")[0] == 0
    assert found("5 .m", "--ignore-case")[0] == 1, "no pattern"
    assert found("GRO\u0308SSE: 5", "--ignore-case")[0] == 0, "decomposed, and ß as SS"
    assert "Größe" in found("grösse", "--ignore-case")[1]["hits"][0]["around"]


def test_the_search_ends_at_the_limit(found: Any) -> None:
    result = found("bridge", "--limit", "3")[1]
    assert len(result["hits"]) == 3
    assert result["is_cut"]


def test_another_stage_is_searched_if_asked_for(found: Any) -> None:
    assert found("5 µm", "--stage", "filtered")[0] == 1
    assert len(found(sentence(3, 23), "--stage", "deduped")[1]["hits"]) == 1


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("example.org", 0),
        ("BLOG.example.org", 0),
        ("ample.org", 1),
        ("blog.example.org/a", 1),
        ("https://blog.example.org/a/*", 0),
        ("*.example.org/*?x=*", 0),
    ],
)
def test_only_documents_of_a_domain_or_a_pattern_of_urls_are_searched(
    found: Any, url: str, code: int
) -> None:
    assert found("5 µm", "--url", url)[0] == code
    assert found("river", "--url", url)[1]["hits"] == []


def test_only_the_sources_asked_for_are_searched(found: Any) -> None:
    assert found("5 µm", "--source", "prose")[0] == 1
    assert found("5 µm", "--source", "prose", "--source", "notes")[1]["documents"] == 82


def test_a_regular_expression_narrows_the_documents_with_the_string(found: Any) -> None:
    assert found("5 µm", "--regex", r"Gr\w+e: \d")[0] == 0
    assert found("river", "--regex", r"Gr\w+e: \d")[0] == 1
    assert found("--regex", r"GRÖSSE: \d")[0] == 1
    assert found("--regex", r"GRÖßE: \d", "--ignore-case")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["x", "--regex", "(a"], "unclosed group"),
        (["x", "--regex", "a(?=b)"], "look-around"),
        (["x", "--source", "nowhere"], "nowhere"),
        (["x", "--url", "..."], "is no domain"),
    ],
)
def test_what_can_be_no_query_is_refused(
    found: Any, capfd: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main(["find", *arguments]) == 2
    assert said in capfd.readouterr().err


def test_a_search_for_nothing_is_refused(found: Any, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["find", ""]) == 2
    assert "at least one character" in capfd.readouterr().err
