"""`corpus init` writes a pipeline.yaml that loads and builds, from a look at the files."""

import csv
import gzip
import json
from pathlib import Path

import polars as pl
import pytest
import yaml
from builders import Build, open_corpus, sentence, write_jsonl

from pipeline_defs.commands.build.init import source_names
from pipeline_defs.commands.main import main
from pipeline_defs.load_corpus import load_corpus


def init(folder: Path, *where: str) -> dict[str, dict[str, object]]:
    """Run `corpus init`; return the sources of the file by name."""
    assert main(["init", str(folder), *where]) == 0
    content = yaml.safe_load((folder / "pipeline.yaml").read_text(encoding="utf-8"))
    return {source["name"]: source for source in content["sources"]}


def test_one_source_for_each_folder(tmp_path: Path) -> None:
    articles = [{"title": "A title", "content": sentence(i), "id": i} for i in range(20)]
    write_jsonl(tmp_path / "articles/a.jsonl", articles)
    german = "Der Fluss und die Brücke gehören zu der kleinen Stadt, in der wir lange wohnten."
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters/one.txt").write_text(german * 3, encoding="utf-8")
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures/one.png").write_bytes(b"no text")
    (tmp_path / ".hidden").mkdir()

    assert init(tmp_path) == {
        "articles": {
            "name": "articles",
            "where": "articles/",
            "text_field": "content",
            "id_field": "id",
            "language": "en",
        },
        "letters": {"name": "letters", "where": "letters/", "language": "de"},
    }


def test_the_text_field_without_a_usual_name_is_the_longest(tmp_path: Path) -> None:
    records = [{"label": "good", "prose": sentence(i), "id": 7} for i in range(9)]
    with gzip.open(tmp_path / "r.jsonl.gz", "wt") as file:
        file.writelines(f"{json.dumps(record)}\n" for record in records)
    with (tmp_path / "t.csv").open("w", newline="") as table:
        csv.writer(table).writerows([["label", "remark"], *[["x", sentence(i)] for i in range(9)]])
    pl.DataFrame({"n": [1, 2], "body": [sentence(1), sentence(2)]}).write_parquet(
        tmp_path / "p.parquet"
    )

    sources = init(tmp_path, "r.jsonl.gz", "*.csv", "p.parquet")

    assert [source.get("text_field") for source in sources.values()] == ["prose", "remark", "body"]
    assert not any("id_field" in source for source in sources.values())


def test_a_name_of_a_field_adds_nothing_to_the_file(tmp_path: Path) -> None:
    name = "x\nstore: /elsewhere\u2028#\u0085\x1b: '\""
    write_jsonl(tmp_path / "a/a.jsonl", [{name: sentence(i)} for i in range(9)])

    assert init(tmp_path)["a"]["text_field"] == name
    content = yaml.safe_load((tmp_path / "pipeline.yaml").read_text(encoding="utf-8"))
    assert content["store"] == "corpus_store"


def test_several_languages_are_not_declared(tmp_path: Path) -> None:
    german = "Der Fluss und die Brücke gehören zu der kleinen Stadt, in der wir lange wohnten."
    texts = [sentence(i) if i % 2 else german for i in range(20)]
    write_jsonl(tmp_path / "mixed/a.jsonl", [{"text": text} for text in texts])

    assert init(tmp_path) == {"mixed": {"name": "mixed", "where": "mixed/"}}


def test_the_file_loads_and_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Build
) -> None:
    # Named as the partitions that the tests in this process see.
    for name in ("prose", "notes"):
        write_jsonl(tmp_path / name / "a.jsonl", [{"body": sentence(i, 60)} for i in range(9)])
    init(tmp_path)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(tmp_path / "pipeline.yaml"))

    assert load_corpus().settings.source_names() == ["notes", "prose"]
    corpus = open_corpus(tmp_path / "pipeline.yaml")
    build(corpus, "raw")
    assert corpus.store.newest("raw", "prose").stats.rows_kept == 9


def test_an_existing_file_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_jsonl(tmp_path / "a/a.jsonl", [{"text": sentence(1)}])
    (tmp_path / "pipeline.yaml").write_text("mine")

    assert main(["init", str(tmp_path)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert (tmp_path / "pipeline.yaml").read_text() == "mine"


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ([], "no file to read matches"),
        (["no/*.jsonl"], "no file to read matches no/*.jsonl. Formats: .jsonl, .ndjson"),
        (["data.bin"], "the format of 'data.bin' cannot be told from its name"),
        (["ftp://host/a.jsonl"], "ftp:// is not supported"),
        (["numbers.jsonl"], "no field holds text in most records (fields: n)"),
        (["empty.jsonl"], "1 file (jsonl) without one record"),
    ],
)
def test_nothing_to_read_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], where: list[str], message: str
) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    if where:
        (folder / "data.bin").write_bytes(b"\0")
        write_jsonl(folder / "numbers.jsonl", [{"n": 1}])
        write_jsonl(folder / "empty.jsonl", [])

    assert main(["init", str(folder), *where]) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "pipeline.yaml").exists()


def test_names_are_made_of_the_patterns() -> None:
    url = "https://example.org/data/wiki.jsonl.gz?x=1"
    patterns = ["web/*.jsonl", url, "a b/", "*.csv", "web/"]
    assert source_names(patterns) == ["web", "wiki", "a-b", "documents", "web-2"]
