"""What a package adds: examples/plug_ins, installed for a test."""

import gzip
import itertools
import zipfile
from importlib.metadata import EntryPoint

import dagster as dg
from builders import Build, open_corpus, published, sentence, write_corpus
from plug_in_package import EXAMPLES, forget, install
from prelude import Any, Iterator, Path, json, pl, pytest, re
from verbs import Cli

from assets.raw.places.find_inputs import find_inputs
from assets.raw.readers.formats import tell_format
from resources.engine.ray_driver import code_digest
from resources.errors import InputError
from resources.settings import plug_ins
from resources.settings.pipeline import SettingsError
from resources.settings.plug_ins import PlugInError
from resources.settings.sources import SourceConfig
from tokenmill import plugins

SOURCES = [
    {"name": "prose", "where": "input/prose/*"},
    {"name": "notes", "where": "input/fortunes/*", "format": "fortunes"},
]
PHASES = [{"name": "p", "weighting": "natural", "batch_samples": 4}]
ADDED: dict[str, Any] = {
    "sources": SOURCES,
    "filters": {"plug_ins": ["shouting"], "rules": {"custom": {"shouting": 0.5}}},
    "annotations": [
        {
            **{"name": "words", "kind": "plug_in", "plug_in": "word_length"},
            **{"columns": {"letters": "number"}, "sources": ["prose"]},
        }
    ],
    "shards": {"target_bytes": 2048, "formats": ["megatron", "json_lines"]},
}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of packages in which the example is installed."""
    site = install(tmp_path / "site")
    monkeypatch.syspath_prepend(str(site))
    forget()
    yield site
    forget()


def corpus_with_plug_ins(folder: Path) -> Any:
    """Two sources; the files of one are read by the example's reader."""
    (folder / "input/fortunes").mkdir(parents=True)
    fortunes = f"BUY NOW\n%\n{sentence(1)}\n{sentence(2)}\n"
    (folder / "input/fortunes/a.fortunes").write_text(fortunes)
    return open_corpus(write_corpus(folder, **ADDED))


def mean_length(text: str) -> float:
    words = re.findall(r"[^\W\d_]+", text)
    return sum(map(len, words)) / len(words)


def test_a_package_adds_a_reader_a_rule_an_annotator_and_a_format(
    installed: Path, tmp_path: Path, build: Build
) -> None:
    corpus = corpus_with_plug_ins(tmp_path)
    build(corpus)
    said = pl.read_parquet(tmp_path / "store/annotated/prose/*annotations*.parquet")
    prose = pl.read_parquet(tmp_path / "store/raw/prose/*documents*.parquet")
    lengths = {d: mean_length(text) for d, text in prose["doc_id", "text"].iter_rows()}
    assert {d: round(letters, 9) for d, letters in said.iter_rows()} == {
        d: round(lengths[d], 9) for d in said["doc_id"]
    }
    texts = pl.read_parquet(tmp_path / "store/raw/notes/*documents*.parquet")["text"].to_list()
    assert texts == ["BUY NOW", f"{sentence(1)}\n{sentence(2)}"]
    decisions = pl.read_parquet(tmp_path / "store/filtered/notes/*decisions*.parquet")
    rejected = decisions.filter(pl.col("reasons").list.contains("custom.shouting"))
    assert rejected["custom_shouting"].to_list() == [6 / 7]
    (folder,) = (tmp_path / "store/sharded/prose").glob("json_lines-*")
    index = json.loads((folder / "index.json").read_bytes())
    rows = sum(len((folder / file["name"]).read_text().splitlines()) for file in index["files"])
    parts = corpus.store.newest("sharded", "prose").parts
    assert rows == sum(part.stats.rows_kept for part in parts)


def test_a_reader_is_found_by_the_endings_that_it_names(
    installed: Path, tmp_path: Path, build: Build
) -> None:
    (tmp_path / "mail/zipped").mkdir(parents=True)
    (tmp_path / "mail/a.FORTUNES").write_text("one\n%\ntwo\n")
    (tmp_path / "mail/b.fortunes.gz").write_bytes(gzip.compress(b"three\n"))
    (tmp_path / "mail/c.other").write_text("no format")
    with zipfile.ZipFile(tmp_path / "mail/zipped/d.zip", "w") as archive:
        archive.writestr("d.fortunes", "four\n%\n")
    named = {"name": "named", "where": "mail/", "format": "fortunes"}
    sources = [named, {"name": "auto", "where": "mail/"}]
    corpus = open_corpus(write_corpus(tmp_path, sources=sources, phases=PHASES))
    build(corpus, "raw")
    assert published(corpus, "named")["text"].to_list() == ["one", "two", "three"]
    assert published(corpus, "auto")["text"].to_list() == ["one", "two", "three", "four"]


def test_a_zip_is_read_again_by_other_code_of_a_reader(
    installed: Path, tmp_path: Path, build: Build
) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.fortunes", "one\n")
    sources = [{"name": "s", "where": "a.zip"}]
    corpus = open_corpus(write_corpus(tmp_path, sources=sources, phases=PHASES))
    build(corpus, "raw")
    reader = installed / "tokenmill_examples/reader.py"
    reader.write_text(reader.read_text().replace(".join(lines)", ".join(lines).upper()"))
    forget()
    build(corpus, "raw")
    assert published(corpus, "s")["text"].to_list() == ["ONE"]


@pytest.mark.parametrize(
    ("endings", "said"),
    [
        ('(".fortunes", "fortune")', "'fortune' is among the `endings` of the reader 'fortunes'"),
        ('(".fortunes.gz",)', "'.fortunes.gz' is among the `endings`"),
        ('(".Fortunes",)', "'.Fortunes' is among the `endings`"),
    ],
)
def test_an_ending_that_no_file_has_is_named(
    installed: Path, endings: str, said: str, tmp_path: Path
) -> None:
    reader = installed / "tokenmill_examples/reader.py"
    reader.write_text(reader.read_text().replace('(".fortunes",)', endings))
    (tmp_path / "a.unknown").touch()
    source = SourceConfig(name="s", where=("a.unknown",))
    with pytest.raises(InputError, match=said):
        find_inputs(source, tmp_path, tmp_path / "store/_downloads")


def test_an_ending_of_two_packages_is_refused_and_one_of_ours_stays_ours(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = installed / "tokenmill_examples/reader.py"
    added = '\nOTHER = Format("other", (".fortunes", ".txt"), read)\n'
    reader.write_text(reader.read_text() + added)
    other = EntryPoint("other", "tokenmill_examples.reader:OTHER", "tokenmill.readers")
    monkeypatch.setitem(plug_ins.plug_ins("readers"), "other", other)
    assert tell_format("a.txt") == ("txt", None)
    with pytest.raises(PlugInError, match="an ending of the formats fortunes and other, which"):
        tell_format("a.fortunes")


def test_init_and_try_know_the_endings_of_packages(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    (tmp_path / "own").mkdir()
    texts = [f"{sentence(number)}\n{sentence(number + 1)}" for number in range(40)]
    (tmp_path / "own/a.fortunes").write_text("\n%\n".join(texts))
    monkeypatch.chdir(tmp_path)
    assert "1 file (fortunes)" in cli.out("init", "own")
    assert "40" in cli.out("try", "own")
    (tmp_path / "empty").mkdir()
    assert ".fortunes" in cli.err(2, "init", "empty")


def test_a_package_imports_one_module_of_ours() -> None:
    code = "".join(path.read_text() for path in (EXAMPLES / "tokenmill_examples").glob("*.py"))
    imported = re.findall(r"^(?:from|import) (\w+)\S*", code, re.MULTILINE)
    assert "tokenmill" in imported
    assert not {"assets", "corpus_loader", "pipeline_defs", "resources"} & {*imported}
    assert plugins.VERSION == 1 and all(hasattr(plugins, name) for name in plugins.__all__)


def parts_of(corpus: Any) -> dict[tuple[str, str], Any]:
    """The parts of stages that plug-ins work for."""
    stages = itertools.product(("raw", "filtered", "sharded"), ("prose", "notes"))
    return {stage: corpus.store.newest(*stage).parts for stage in stages}


def test_other_code_of_a_plug_in_makes_its_stages_again(
    installed: Path, tmp_path: Path, build: Build
) -> None:
    corpus = corpus_with_plug_ins(tmp_path)
    build(corpus)
    before, on_nodes = parts_of(corpus), code_digest()
    with (installed / "tokenmill_examples/writer.py").open("a") as file:
        file.write("\n# changed\n")
    forget()
    assert code_digest() != on_nodes
    build(corpus)
    after = parts_of(corpus)
    assert {name for name in before if before[name] == after[name]} == {("raw", "prose")}
    assert len([*(tmp_path / "store/sharded/prose").glob("json_lines-*")]) == 2  # a trainer reads


@pytest.mark.parametrize("listed", ["top_level.txt", "RECORD"])
def test_all_modules_of_a_package_are_in_its_digest(installed: Path, listed: str) -> None:
    alone = plug_ins.with_identity("rules", "shouting")
    (about,) = installed.glob("*.dist-info")
    names = {"top_level.txt": "tokenmill_examples\nshared_lists\n", "RECORD": "shared_lists.py,,\n"}
    (about / listed).write_text(names[listed])
    found = []
    for content in ("WORDS = ['a']", "WORDS = ['b']"):
        (installed / "shared_lists.py").write_text(content)
        forget()
        found.append(plug_ins.with_identity("rules", "shouting"))

    assert len({alone, *found}) == 3


def test_code_of_a_namespace_is_in_the_digest(installed: Path) -> None:
    (installed / "tokenmill_examples/__init__.py").unlink(missing_ok=True)
    forget()
    before = plug_ins.with_identity("rules", "shouting")
    with (installed / "tokenmill_examples/writer.py").open("a") as file:
        file.write("\n# changed\n")
    forget()

    assert plug_ins.with_identity("rules", "shouting") != before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sources": SOURCES}, "'fortunes' is not one of the readers here: auto, jsonl"),
        ({"filters": ADDED["filters"]}, "'shouting' is not one of the rules here: none. Correct"),
        ({"shards": ADDED["shards"]}, "'json_lines' is not one of the formats here: parquet, meg"),
    ],
)
def test_what_is_not_installed_is_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        open_corpus(write_corpus(tmp_path, **change))


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ("tokenmill_examples.nowhere:RULES", "cannot be imported: ModuleNotFoundError"),
        ("tokenmill_examples.writer:JSON_LINES", "is a ShardFormat; it must be a list"),
    ],
)
def test_a_wrong_entry_point_is_named(
    installed: Path, monkeypatch: pytest.MonkeyPatch, entry: str, fault: str
) -> None:
    wrong = EntryPoint("shouting", entry, "tokenmill.rules")
    monkeypatch.setitem(plug_ins.plug_ins("rules"), "shouting", wrong)
    with pytest.raises(PlugInError, match=fault):
        plug_ins.load_plug_in("rules", "shouting", list)


@pytest.mark.parametrize(
    "code", ["documents.head(0)", "documents", "documents.select(letters='text')", "1 / 0"]
)
def test_an_annotator_that_gives_something_else_is_named(
    installed: Path, tmp_path: Path, build: Build, code: str
) -> None:
    path = installed / "tokenmill_examples/annotator.py"
    path.write_text(f"def word_length(documents):\n    return {code}\n")
    forget()
    corpus = corpus_with_plug_ins(tmp_path)
    fault = "annotator 'words': 'word_length' must return .* a row for each of .*columns letters"
    with pytest.raises(dg.Failure, match=fault):
        build(corpus)
