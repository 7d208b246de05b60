"""The examples of `pipeline_defs.notebook`, and the notebook that shows it, run as they stand."""

import ast
import doctest

import yaml
from builders import Build, deduped, sentence, write_corpus, write_jsonl
from builders import open_corpus as corpus_of
from documented import ROOT, blocks
from prelude import Any, Path, json, pl, pytest

import tokenmill
from pipeline_defs import notebook
from pipeline_defs.notebook import filter_documents, open_corpus
from resources.errors import UsageError

NOTEBOOK = ROOT / "examples/notebook.ipynb"
STAGES = ("raw", "filtered", "signatures", "band_index", "duplicates", "deduped", "tokenizer")


def cells_of(path: Path) -> list[dict[str, Any]]:
    """The cells with code."""
    return [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]


def run(cell: dict[str, Any], names: dict[str, Any]) -> str:
    """Run a cell, and return what its last line is worth, as Jupyter shows it without HTML."""
    body = ast.parse("".join(cell["source"])).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    return repr(eval(ast.unparse(last), names)) if last else ""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, build: Build) -> Path:
    """A small corpus with a document that is too short."""
    folder = tmp_path_factory.mktemp("notebook")
    config = write_corpus(folder, filters={"rules": {"length": {"min_chars": 5}}})
    write_jsonl(folder / "input/prose/c.jsonl", [{"text": "Hi."}])
    build(corpus_of(config), *STAGES)
    return folder


def test_the_examples_in_docstrings_run(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(built)

    assert doctest.testmod(notebook) == (0, 19)


def test_documents_are_those_that_stay_as_they_were_cut(tmp_path: Path, build: Build) -> None:
    header = "The river rose in April, and the old bridge was closed."
    dedup = {"lines": {"min_count": 3, "min_share": 0.01, "min_chars": 10}}
    config = write_corpus(tmp_path, dedup=dedup)
    texts = [f"{header}\n{sentence(200 + i, 30)}" for i in range(6)]
    write_jsonl(tmp_path / "input/prose/c.jsonl", [{"text": text} for text in texts])
    corpus = corpus_of(config)
    build(corpus, "raw", "filtered", "repeated", *STAGES[2:6])

    found = open_corpus(tmp_path).documents("prose").collect()

    assert found.equals(pl.concat(deduped(corpus, "prose")))
    assert found.height < 46 and not found["text"].str.contains(header, literal=True).any()


def test_mistakes_are_named() -> None:
    documents = pl.DataFrame({"text": ["one"]})

    with pytest.raises(UsageError, match=r"rules\.page\.min_words"):
        filter_documents(documents, rules={"page": {"min_words": 2}})


def test_the_notebook_runs_and_shows_what_it_did(
    tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = yaml.safe_load((ROOT / "pipeline.yaml").read_text())
    web = next(source for source in settings["sources"] if source["name"] == "web")
    web["where"] = str(ROOT / "sample_data/web/part-0.jsonl.zst")
    phases = [{"name": "one", "weights": {"web": 1.0}}]
    tokenizer = {"vocab_size": 400, "sample_bytes": 100_000}
    settings |= {"sources": [web], "phases": phases, "tokenizer": tokenizer}
    (tmp_path / "pipeline.yaml").write_text(yaml.safe_dump(settings))
    (tmp_path / "examples").mkdir()
    build(corpus_of(tmp_path / "pipeline.yaml", tmp_path / "corpus_store"), *STAGES)
    monkeypatch.chdir(tmp_path / "examples")
    names: dict[str, Any] = {}

    for cell in cells_of(NOTEBOOK):
        shown = run(cell, names)
        stored = "".join(line for out in cell["outputs"] for line in out["data"]["text/plain"])
        if "frames" in cell["metadata"].get("tags", []):  # depends on no corpus
            assert shown == stored
        assert bool(shown) == bool(stored)

    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"text": ["The river rose in April."]}).write_parquet("my_texts.parquet")
    for _, block in filter(lambda of_page: of_page[0] == "notebook.md", blocks("python")):
        exec(block, names)


def test_a_corpus_says_what_it_is_in_five_lines(built: Path) -> None:
    corpus = tokenmill.open_corpus(built)

    shown = repr(corpus)

    assert shown.count("\n") == 4 and len(shown) < 500 + 2 * len(str(built))
    assert "sources (2): prose, notes" in shown and "tables: stages, " in shown
    assert corpus.sources == ["prose", "notes"]
    assert corpus.stages[:2] == ["raw", "filtered"]
    assert corpus.table("fates").collect().height


def test_a_mistyped_name_is_an_error_and_no_empty_frame(built: Path) -> None:
    corpus = tokenmill.open_corpus(built)

    with pytest.raises(UsageError, match=r"length.to_short.*length.too_short"):
        corpus.removed("prose", rule="length.to_short")
    with pytest.raises(UsageError, match="pros"):
        corpus.documents("pros")
    with pytest.raises(UsageError, match="fate"):
        corpus.table("fate")
    with pytest.raises(AttributeError, match="open_corpse"):
        _ = tokenmill.open_corpse
