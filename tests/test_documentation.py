"""Commands and examples of README and docs do what they say, on a corpus of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from builders import sentence, write_jsonl
from documented import PAGES, ROOT, Command, blocks, blocks_of, commands

from pipeline_defs.commands.main import VERBS, Noun, main
from resources.settings.pipeline import load_settings

SOURCES = ("web", "books", "reference", "science")
PLACEHOLDERS = {
    **{"NAME": "gopher-quality", "/data/my_corpus": "new", "rank": "0", "world": "1"},
    **{"STATE": "1", "64": "2"},  # ranks: the corpus of this test is small
}
NESTED = {name for of in VERBS.values() for name, verb in of.items() if isinstance(verb, Noun)}
STARTS_RUNS = {("build",), ("tokenizer", "retrain"), ("rules", "renew")}
OF_TAKEDOWN = {"prove", "list", "withdraw", "export"}  # verbs beside its own options
FORMS = {"N", "SECTION", "SOURCE", "NAME", "..."}  # of mentions whose options alone are looked at
FILES = {"my_rules.py": "", "eval/quiz.jsonl": '{"question": "one", "answer": "two"}\n'}


def base_config() -> dict[str, Any]:
    """A config with the sources and phases that the examples name."""
    return {
        "store": "corpus_store",
        "sources": [{"name": name, "where": f"input/{name}/*"} for name in SOURCES],
        "filters": {"presets": ["gopher-repetition", "fineweb"], "custom": "my_rules.py"},
        "tokenizer": {"vocab_size": 400, "sample_bytes": 100_000},
        "buckets": {"sequence_length": 64},
        "shards": {"target_bytes": 4096, "formats": ["parquet", "megatron", "mds"]},
        "phases": [{"name": "general", "weights": {"web": 0.5, "books": 0.5}, "tokens": 1500}],
    }


def python_block(page: str) -> str:
    """The first Python example of a page."""
    return next(text for name, text in blocks("python") if name == page)


def environment_of(folder: Path) -> dict[str, str]:
    """The variables by which commands find a folder's corpus."""
    return {
        "TOKENMILL_CONFIG": str(folder / "pipeline.yaml"),
        "DAGSTER_HOME": str(folder / "dagster_home"),
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "100",
    }


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python with words in a folder whose pipeline.yaml is the corpus."""
    environment = os.environ | environment_of(folder)
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def corpus_command(
    built: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Runs `corpus`, in this process where it takes a tenth of the CPU; gives its output.

    What starts a run has a process of its own: definitions are those of the first config of one.
    """
    monkeypatch.chdir(built)
    for name, value in environment_of(built).items():
        monkeypatch.setenv(name, value)

    def run_here(*words: str) -> str:
        if {words[:1], words[:2]} & STARTS_RUNS:
            done = run(built, "pipeline_defs.commands.main", *words)
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
            return done.stdout
        code, said = main(words), capfd.readouterr()
        assert code == 0, said.out[-2000:] + said.err[-2000:]
        return said.out

    return run_here


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus, built by the `dagster` commands of the README."""
    folder = tmp_path_factory.mktemp("documented")
    for number, source in enumerate(SOURCES):
        own = [sentence(200 * number + i, 30 + i % 20) for i in range(60)]
        copies = [sentence(1, 40)] * 2
        repeats = [
            f"one two three four five six {'so it is once more ' * (2 + i)}." for i in range(5)
        ]
        texts = [{"text": text} for text in own + copies + repeats]
        write_jsonl(folder / f"input/{source}/a.jsonl", texts)
    (folder / "my_rules.py").write_text(python_block("quality.md"))
    (folder / "pipeline.yaml").write_text(yaml.safe_dump(base_config()))
    (folder / "dagster_home").mkdir()
    for command in commands("dagster"):
        if not command.is_mention:
            done = run(folder, *command.words)
            assert done.returncode == 0, f"{command}\n{done.stderr[-2000:]}"
    return folder


def in_cluster(folder: Path) -> str:
    """A document that has a duplicate."""
    files = sorted(folder.glob("corpus_store/duplicates/**/*clusters*.parquet"))
    document: str = pl.concat(pl.read_parquet(file, columns=["doc_id"]) for file in files)[0, 0]
    return document


def with_values(command: Command, folder: Path, run_here: Callable[..., str]) -> list[str]:
    """The words of a command with its placeholders filled in."""
    values = PLACEHOLDERS | {"/data/dump/*.jsonl.zst": str(folder / "input/web/*.jsonl")}
    words = list(command.words[1:])
    if "DOC" in words:
        values["DOC"] = in_cluster(folder)
    if "FOLDER" in words:
        values["FOLDER"] = run_here("shards", "path", "--source", "web", "--format", "mds").strip()
    return [values.get(word, word) for word in words]


@pytest.mark.parametrize("command", commands("corpus"), ids=str)
def test_documented_commands_of_corpus_run(
    command: Command, built: Path, corpus_command: Callable[..., str]
) -> None:
    verbs = [word for word in command.words[1:] if not word.startswith("-")]
    is_form = all(word.islower() or word in FORMS for word in verbs) and "=" not in str(command)
    if command.is_mention and is_form:
        options = set(command.words) - {"corpus", *verbs}
        is_nested = verbs[0] in NESTED or OF_TAKEDOWN & {*verbs[1:2]}
        own = verbs[:2] if is_nested else verbs[:1]
        shown = corpus_command(*own, "--help")
        assert all(option in shown for option in options)
    else:
        corpus_command(*with_values(command, built, corpus_command))


def test_documented_targets_of_make_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^([a-z][a-z-]*):(?!=)", makefile, re.M)
    targets += [f".venv/installed-{name}" for name in re.findall(r"^WITH_(\w+) :=", makefile, re.M)]
    words = [[word for word in each.words[1:] if "=" not in word] for each in commands("make")]
    named = {target for target, *_ in words}
    assert {"corpus", "test", "ui", "check", "peers"} <= named <= set(targets)


@pytest.mark.parametrize("command", commands("python"), ids=str)
def test_documented_programs_exist_and_know_their_options(command: Command) -> None:
    program = command.words[1]
    text = "" if program == "-m" else (ROOT / program).read_text()
    assert all(word in text for word in command.words if word.startswith("--"))


@pytest.mark.parametrize(("page", "text"), blocks("yaml"))
def test_yaml_examples_are_valid(page: str, text: str, tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    changes = yaml.safe_load(text)
    (tmp_path / "pipeline.yaml").write_text(yaml.safe_dump(base_config() | changes))
    settings = load_settings(tmp_path / "pipeline.yaml")
    assert changes and all(hasattr(settings, key) for key in changes)


def test_the_loader_is_used_as_shown(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(built)
    trained: list[Any] = []
    names: dict[str, Any] = {"rank": 0, "world": 1, "train": trained.append}
    exec(python_block("loader.md"), names)

    assert sum(len(tokens) for tokens in trained) > 8
    assert {tokens.shape[1] for tokens in trained} == {64}
    assert len(json.dumps(names["state"])) < 200


def test_the_rule_of_ones_own_judges_as_said(built: Path) -> None:
    names: dict[str, Any] = {}
    exec(python_block("quality.md"), names)
    (rule,) = names["RULES"]
    assert rule.name == "shouting"
    assert python_block("rule.md") == python_block("quality.md")
    files = sorted(built.glob("corpus_store/filtered/web/*decisions*.parquet"))
    assert "custom_shouting" in pl.read_parquet(files[0]).columns


def test_deduped_documents_are_read_as_shown(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (kept,) = built.glob("corpus_store/deduped/web/*.kept.parquet")
    (filtered,) = built.glob("corpus_store/deduped/web/*.filtered.parquet")
    for name, path in (("kept", kept), ("filtered", filtered)):
        (tmp_path / f"PART.{name}.parquet").symlink_to(path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(python_block("dedup.md"), names)

    tokens = next(built.glob("corpus_store/tokenized/web/*.tokens.arrow"))
    assert names["documents"]["doc_id"].to_list() == pl.read_ipc(tokens)["doc_id"].to_list()
    assert names["documents"]["text"].null_count() == 0


def test_every_python_example_is_run_by_a_test() -> None:
    assert {page for page, _ in blocks("python")} == {
        "README.md",  # this and tutorial.md: tests/test_command_blocks.py
        "dedup.md",
        "formats.md",  # tests/peers/test_docs.py
        "loader.md",
        "notebook.md",  # tests/pipeline/test_notebook.py
        "push.md",  # tests/commands/test_push_iceberg.py
        "quality.md",
        "rule.md",
        "tutorial.md",
    }
    for page, text in blocks("python"):
        compile(text, page, "exec")


def test_the_site_has_every_page_once() -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    shown = re.findall(r"[\w/]+\.md", str(nav))
    made = {"all_commands.md", "changelog.md", "contributing.md", "index.md", "security.md"}
    there = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert sorted(shown) == sorted(there | made | {"settings.md"})


def test_fences_open_as_the_site_reads_them() -> None:
    """With another text behind the language the site shows a block as a paragraph."""
    fences = {page: len(re.findall("^```", page.read_text(), re.M)) for page in PAGES}
    assert {page.name: n for page, n in fences.items() if n != 2 * len(blocks_of(page))} == {}


def test_messages_that_are_explained_are_those_of_the_code() -> None:
    page = (ROOT / "docs/troubleshooting.md").read_text()
    folders = ("assets", "corpus_loader", "pipeline_defs", "resources")
    code = "".join(file.read_text() for name in folders for file in (ROOT / name).rglob("*.py"))
    messages = re.findall(r"^### `(.+)`$", page, re.M)
    assert len(messages) > 12
    assert [message for message in messages if message not in code] == []


@pytest.mark.parametrize(
    ("page", "module"), [("reader.md", "reader"), ("shard_format.md", "writer")]
)
def test_the_reader_and_the_format_are_those_of_the_example(page: str, module: str) -> None:
    (shown,) = (text for name, text in blocks("py") if name == page)
    assert shown in (ROOT / f"examples/plug_ins/tokenmill_examples/{module}.py").read_text()


def test_few_words_are_only_ours() -> None:
    """A new one displaces an old one, or is a word of the field."""
    ours, field = (ROOT / "docs/glossary.md").read_text().split("\n## ")[1:]
    words = [line.split("|")[1].strip() for line in ours.splitlines() if line.startswith("| ")][1:]
    assert len(words) <= 30
    assert words == sorted(words) and not [word for word in words if f"\n| {word} |" in field]
