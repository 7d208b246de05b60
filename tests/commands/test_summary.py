"""`corpus summary`: a row per source on 80 columns, every stage on 100, and the next command."""

import yaml
from builders import Build, open_corpus, write_corpus, write_jsonl
from prelude import Path, json, pl, pytest
from verbs import Cli

from pipeline_defs.commands.look.summary import reason_table
from pipeline_defs.commands.terminal import as_typed
from pipeline_defs.corpus_tables import CorpusTables


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = write_corpus(tmp_path)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(path))
    return path


def test_before_any_build_it_says_what_to_run(config: Path, cli: Cli) -> None:
    output = cli.printed(("summary",), 1)
    assert output.out == ""
    assert (
        output.err
        == f"Nothing is built yet in {config.parent / 'store'}. Run: {as_typed('build')}\n"
    )

    assert json.loads(cli.out("summary", "--json", code=1)) == {
        "store": str(config.parent / "store"),
        "sources": {"prose": {}, "notes": {}},
        "fates": [],
        "cuts": {},
        "global": {},
        "phases": {"main": {}, "late": {}},
    }


def test_tables_fit_100_columns(config: Path, build: Build, cli: Cli) -> None:
    write_corpus(config.parent, filters={"rules": {"length": {"min_chars": 200}}})
    build(open_corpus(config), "raw", "filtered")

    lines = cli.out("summary", "--stages").splitlines()

    tables = [line for line in lines if not line.startswith(("The corpus", "Next: ", "No "))]
    assert max(map(len, tables)) <= 100
    assert any(line.split()[:2] == ["raw", "40"] for line in lines)
    assert any("length.too_short" in line for line in lines)
    assert f"The corpus is in {config.parent / 'store'}" in lines


def test_each_source_has_a_row_that_adds_up(config: Path, build: Build, cli: Cli) -> None:
    write_corpus(config.parent, filters={"rules": {"length": {"min_chars": 200}}})
    with (config.parent / "input/notes/n.jsonl").open("a") as file:
        file.write("no JSON\n")
    build(open_corpus(config))
    build(open_corpus(config), "mixed")

    lines = cli.out("summary").splitlines()

    end = next(n for n, line in enumerate(lines) if line.startswith("removed records"))
    rows = {line.split()[0]: line.split()[1:] for line in lines[:end] if line.split()}
    for name in ("prose", "notes", "all"):
        counts = (int(cell.replace(",", "")) for cell in rows[name] if "%" not in cell)
        read, removed, copies, trained, tokens = counts
        assert read - removed - copies == trained > 0 and tokens
    shares = [float(rows[name][5].rstrip("%")) for name in ("prose", "notes")]  # of one phase
    assert sum(shares) == pytest.approx(100, abs=0.2) and "%" not in "".join(rows["all"])
    assert rows["notes"][0] == "42"
    assert max(map(len, lines[:end])) <= 80
    assert ["notes", "unreadable", "unreadable", "1"] in [line.split() for line in lines]
    listing = as_typed("quarantine", "list", "--source", "notes")
    assert f"notes: 1 records could not be read: {listing}" in lines
    assert lines[-1] == f"See it in the web UI: {as_typed('ui')}"


def test_reasons_that_are_not_named_are_counted() -> None:
    reasons = [*zip("abcde", [9, 8, 7, 6, 5], strict=True)]
    of_web = [("web", "filtered", "rejected", name, count) for name, count in reasons[:5]]
    of_code = [("code", "filtered", "rejected", name, count) for name, count in reasons[:4]]
    columns = ["source", "stage", "fate", "reason", "documents"]
    tables = CorpusTables(None, {})  # type: ignore[arg-type]
    tables["fates"] = pl.DataFrame([*of_web, *of_code], columns, orient="row")

    shown = reason_table(tables).select("source", "main_reasons", "records").rows()

    assert shown[:4] == [
        ("web", "a", 9),
        ("web", "b", 8),
        ("web", "c", 7),
        ("web", "and 2 others", 11),
    ]
    assert shown[4:] == [("code", name, count) for name, count in reasons[:4]]


def test_the_unit_is_named_where_it_changes(config: Path, build: Build, cli: Cli) -> None:
    build(open_corpus(config))
    names = [line[:24].strip() for line in cli.out("summary", "--stages").splitlines()]
    assert {"sharded: sequences", "band_index: bands", "duplicates: documents"} <= {*names}


@pytest.mark.parametrize(
    ("folder", "path", "expected"),
    [
        (".", "", "bin/corpus 'my sources'"),
        ("bin", "", "{home}/bin/corpus 'my sources'"),
        ("elsewhere", "", "{home}/bin/corpus 'my sources'"),
        ("elsewhere", "{home}/bin", "corpus 'my sources'"),
    ],
)
def test_a_command_is_as_the_user_can_type_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, path: str, expected: str
) -> None:
    write_jsonl(tmp_path / "bin/corpus", []).chmod(0o755)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin/python"))
    monkeypatch.setenv("PATH", path.format(home=tmp_path))
    monkeypatch.delenv("TOKENMILL_CONFIG", raising=False)
    monkeypatch.delenv("DAGSTER_HOME")
    monkeypatch.chdir(tmp_path / folder)
    assert as_typed("my sources") == expected.format(home=tmp_path)
    monkeypatch.setenv("TOKENMILL_CONFIG", "a b.yaml")
    assert as_typed("x").startswith("TOKENMILL_CONFIG='a b.yaml' ")


def test_documents_in_other_languages_are_counted_by_source(
    config: Path, build: Build, cli: Cli
) -> None:
    content = yaml.safe_load(config.read_text())
    content["filters"] = {"rules": {"length": None}}
    content["sources"][1] |= {"language": "en", "where": "input/notes/german.jsonl"}
    config.write_text(yaml.safe_dump(content))
    german = "Der Fluss stieg in jenem Jahr zweimal, und die Leute verließen ihre Häuser am Ufer. "
    write_jsonl(config.parent / "input/notes/german.jsonl", [{"text": german * 3}])
    build(open_corpus(config), "raw", "classifier", "filtered")

    assert cli.json("summary")["other_languages"] == {"notes": {"de": 1}}
    line = (
        "notes: 1 documents in other languages than its `language` (de 1) are kept; "
        "`require_language: true` of the source rejects them"
    )
    assert line in cli.out("summary").splitlines()
