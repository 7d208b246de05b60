"""`corpus init` writes a pipeline.yaml that loads and builds, from a look at the files."""

import csv
import gzip

import yaml
from builders import Build, open_corpus, sentence, write_jsonl
from prelude import Path, json, pl, pytest

from assets.raw.places.find_inputs import find_inputs
from pipeline_defs.commands.build.config import schema_text
from pipeline_defs.commands.build.own_files import source_names
from pipeline_defs.commands.main import main
from pipeline_defs.load_corpus import load_corpus


def init(folder: Path, *where: str) -> dict[str, dict[str, object]]:
    """Run `corpus init`; return the sources of the file by name."""
    assert main(["init", str(folder), *where]) == 0
    content = yaml.safe_load((folder / "pipeline.yaml").read_text(encoding="utf-8"))
    return {source["name"]: source for source in content["sources"]}


def write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


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


def test_files_of_the_project_are_written_and_no_input_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_jsonl(tmp_path / "a.jsonl", [{"text": sentence(1)}])
    (tmp_path / "workspace.yaml").write_text("mine")
    (tmp_path / ".pipeline.schema.json").write_text("of an earlier version")

    assert [source["where"] for source in init(tmp_path).values()] == ["*.*"]
    assert {".gitignore", ".dagster"} <= {path.name for path in tmp_path.iterdir()}
    assert (tmp_path / "workspace.yaml").read_text() == "mine"
    first_line, _ = (tmp_path / "pipeline.yaml").read_text().split("\n", 1)
    assert first_line == "# yaml-language-server: $schema=.pipeline.schema.json"
    assert (tmp_path / ".pipeline.schema.json").read_text() == schema_text()
    [source] = open_corpus(tmp_path / "pipeline.yaml").settings.sources
    assert find_inputs(source, tmp_path, tmp_path / "corpus_store/_downloads").left_out == []
    assert main(["init", "a.jsonl", "--sample"]) == 2
    assert "--sample brings its own files" in capsys.readouterr().err


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


def test_files_that_people_hold_are_recognised_by_their_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = f"00:00:01.000 --> 00:00:02.000\n{sentence(1)}\n"
    mail = f"Subject: Bees\nMessage-ID: <1@a.example>\n\n{sentence(2)}\n"
    cells = [{"cell_type": "markdown", "metadata": {}, "source": [sentence(3)]}]
    notebook = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    write_text(tmp_path / "films/a.srt", f"1\n{said}")
    write_text(tmp_path / "films/b.vtt", f"WEBVTT\n\n{said}")
    write_text(tmp_path / "mail/a.mbox", f"From a Tue Jan  2 10:00:00 2001\n{mail}")
    write_text(tmp_path / "mail/b.eml", mail.replace("1@", "2@"))
    write_text(tmp_path / "notebooks/a.ipynb", notebook)
    write_text(tmp_path / "lines/a.json-seq", "\x1e" + json.dumps({"text": sentence(4)}) + "\n")

    sources = init(tmp_path)
    shown = capsys.readouterr().out

    assert sources["films"] == {"name": "films", "where": "films/", "language": "en"}
    assert sources["notebooks"] == {"name": "notebooks", "where": "notebooks/", "language": "en"}
    assert sources["mail"]["id_field"] == "id"
    for remark in ("2 files (subtitles)", "2 files (mbox)", "1 file (ipynb)", "1 file (jsonl)"):
        assert remark in shown
    assert "cannot be read" not in shown


def test_files_that_are_not_text_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_text(tmp_path / "a/good.txt", sentence(1))
    (tmp_path / "a/latin.txt").write_bytes("café".encode("latin-1"))
    (tmp_path / "a/scan.pdf").write_bytes(b"%PDF")

    assert init(tmp_path)["a"]["where"] == "a/"
    said = capsys.readouterr().out
    assert "cannot be read: a/latin.txt (not valid UTF-8" in said
    assert "left out: 1 file (no reader for .pdf)" in said


def test_splits_for_evaluation_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("data/train-00000-of-00002", "data/train-00001-of-00002", "data/test-00000"):
        write_jsonl(tmp_path / f"shards/{name}.jsonl", [{"text": sentence(1)}])
    for name in ("all/a", "held"):
        write_jsonl(tmp_path / f"listed/{name}.jsonl", [{"text": sentence(2)}])
    splits = [{"split": "train", "path": "all/*"}, {"split": "test_sft", "path": "held.jsonl"}]
    card = yaml.safe_dump({"configs": [{"config_name": "default", "data_files": splits}]})
    write_text(tmp_path / "listed/README.md", f"---\n{card}---\n# A dataset")

    sources = init(tmp_path)

    assert sources["shards"]["where"] == "shards/data/train-*-of-*.jsonl"
    assert sources["listed"]["where"] == "listed/all/"
    said = capsys.readouterr().out
    assert "1 file (split test)" in said and "1 file (split test_sft)" in said


def test_what_a_build_has_published_is_no_input(tmp_path: Path) -> None:
    write_text(tmp_path / "other/texts/a.txt", sentence(1))
    write_text(tmp_path / "other/store/raw/web/_manifests/00000001.json", "{}")
    write_text(tmp_path / "other/store/raw/web/notes.txt", sentence(2))

    assert init(tmp_path)["other"]["where"] == "other/texts/"


def test_conversations_are_proposed_as_such(tmp_path: Path) -> None:
    for name, keys in (("messages", ("role", "content")), ("conversations", ("from", "value"))):
        turns = [("user" if name == "messages" else "human", sentence(1)), ("assistant", "Yes.")]
        messages = [dict(zip(keys, turn, strict=True)) for turn in turns]
        write_jsonl(tmp_path / name / "a.jsonl", [{"prompt": sentence(1), name: messages}] * 3)

    sources = init(tmp_path)

    assert [source["kind"] for source in sources.values()] == ["chat", "chat"]
    assert sources["conversations"]["text_field"] == "conversations"
    assert open_corpus(tmp_path / "pipeline.yaml").settings.is_chat("messages")


def test_every_place_of_the_command_line_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("A/a", "B/b", "c"):
        write_jsonl(tmp_path / f"{name}.jsonl", [{"text": sentence(1)}])
    monkeypatch.chdir(tmp_path)

    places = {name: source["where"] for name, source in init(Path("A"), "B").items()}
    assert places == {"A": ".", "B": f"{tmp_path}/B/"}
    assert (tmp_path / "A/.gitignore").read_text().startswith("/corpus_store/\n")
    assert main(["init", "A", "B", "c.jsonl", "--into", "D"]) == 0
    assert len(yaml.safe_load((tmp_path / "D/pipeline.yaml").read_text())["sources"]) == 3


def test_a_place_that_may_be_two_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("A/a", "a"):
        write_jsonl(tmp_path / f"{name}.jsonl", [{"text": sentence(1)}])
    monkeypatch.chdir(tmp_path)

    assert main(["init", "A", "a.jsonl"]) == 2
    assert "'a.jsonl' is in A and in the working folder" in capsys.readouterr().err


def test_dumps_in_xml_are_known_by_their_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = "<page><title>Bee{0}</title><id>{0}</id><revision><text>{1}</text></revision></page>\n"
    text = "Bees are [[insect|insects]] that fly from flower to flower all day long.\n" * 5
    pages = "".join(page.format(number, text) for number in range(9))
    (tmp_path / "wiki.xml").write_text(f'<mediawiki xml:lang="en">\n{pages}</mediawiki>\n')
    (tmp_path / "stackoverflow.com-Posts.7z").write_bytes(b"7z\xbc\xaf\x27\x1c")

    assert main(["init", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "1 file (xml), ids in `id`" in said
    assert "1 file (a 7z archive: unpack it with `7z x`, and name its folder)" in said
    assert main(["try", str(tmp_path / "wiki.xml")]) == 0
    assert "Bees are insects that fly" in capsys.readouterr().out
    assert main(["try", str(tmp_path / "stackoverflow.com-Posts.7z")]) == 2
    assert "unpack it with `7z x`" in capsys.readouterr().err
