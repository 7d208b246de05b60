"""`corpus tokenizer`, in processes of its own, over a corpus that is built."""

import subprocess

import yaml
from builders import Build, open_corpus, sentence, write_corpus, write_jsonl
from prelude import Any, Path, json, os, pytest, re, sys
from small_tokenizer import trained
from verbs import Cli

from pipeline_defs.commands.main import main
from resources.run_reports import read_report
from resources.settings.tokenizer import PATTERNS
from resources.tasks import GLOBAL

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ("raw", "filtered", "signatures", "band_index", "duplicates", "deduped")


def corpus_command(config: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the real command."""
    environment = os.environ | {"TOKENMILL_CONFIG": str(config), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pipeline_defs.commands.main", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def change(config: Path, **tokenizer: Any) -> None:
    """Change keys of `tokenizer`."""
    content = yaml.safe_load(config.read_text())
    content["tokenizer"] |= tokenizer
    config.write_text(yaml.safe_dump(content, sort_keys=False))


def tokenizer_of(config: Path) -> str:
    """Fingerprint of the published tokenizer."""
    part = open_corpus(config).store.newest("tokenizer", GLOBAL).parts[0]
    return str(part.stats.numbers["tokenizer_fingerprint"])


def test_the_next_tokenizer_is_trained_on_purpose(tmp_path: Path, build: Build) -> None:
    config = write_corpus(tmp_path)
    build(open_corpus(config), *DOCUMENTS, "tokenizer", "tokenized")
    first = tokenizer_of(config)
    new = [{"text": sentence(300 + i, 40)} for i in range(9)]
    write_jsonl(tmp_path / "input/prose/c.jsonl", new)
    build(open_corpus(config), *DOCUMENTS, "tokenizer", "tokenized")
    assert tokenizer_of(config) == first
    change(config, vocab_size=320)

    refused = corpus_command(config, "build", "--to", "tokenized")
    made = corpus_command(config, "tokenizer", "retrain")

    assert refused.returncode == 2
    assert "vocab_size from 300 to 320" in refused.stderr
    assert "dagster" not in refused.stdout  # before any work
    assert made.returncode == 0, made.stderr[-2000:]
    second = tokenizer_of(config)
    assert second != first
    shown = made.stdout.splitlines()
    assert shown[0].startswith("dagster asset materialize") and '"retrain": true' in shown[0]
    assert f"tokenizer {second[:12]}: 320 entries, trained on " in shown[1]
    assert shown[2].startswith("prose  ") and shown[2].endswith(" before")
    assert shown[3].startswith("notes  ") and " bytes per token, " in shown[3]
    assert shown[4].startswith("`corpus build` encodes again 2 sources, ")
    build(open_corpus(config), "tokenizer", "tokenized")
    assert read_report(tmp_path / "store", "tokenizer", GLOBAL).parts_computed == 0
    for name in ("prose", "notes"):
        assert read_report(tmp_path / "store", "tokenized", name).parts_reused == 0


def test_the_same_documents_and_config_give_the_same_tokenizer(
    tmp_path: Path, build: Build
) -> None:
    config = write_corpus(tmp_path)
    build(open_corpus(config), *DOCUMENTS, "tokenizer")
    first = tokenizer_of(config)

    made = corpus_command(config, "tokenizer", "retrain")

    assert made.returncode == 0, made.stderr[-2000:]
    assert f"tokenizer {first[:12]} is as it was" in made.stdout
    assert tokenizer_of(config) == first
    printed = corpus_command(config, "tokenizer", "path").stdout
    (file,) = (tmp_path / "store/tokenizer/all").glob("*.tokenizer.json")
    assert printed == f"{file}\n"


def test_a_loaded_tokenizer_is_not_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my.json").write_text("{}")
    config = write_corpus(tmp_path, tokenizer={"path": "my.json"})
    monkeypatch.setenv("TOKENMILL_CONFIG", str(config))

    assert main(["tokenizer", "retrain"]) == 2

    assert "tokenizer.path names 'my.json'" in capsys.readouterr().err


def test_patterns_and_files_are_compared_by_language(
    tmp_path: Path, build: Build, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_corpus(tmp_path)
    loud = [{"text": f"{'HTTPServer' * 20} {number} कि " * 9} for number in range(9)]
    write_jsonl(tmp_path / "input/prose/loud.jsonl", loud)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(config))
    build(open_corpus(config), *DOCUMENTS, "tokenizer")
    file = cli.out("tokenizer", "path").strip()
    asked = ("gpt2", "gpt4o", r"\w+|\s", file)

    rows = json.loads(cli.out("tokenizer", "compare", *asked, "--json"))

    assert rows == json.loads(cli.out("tokenizer", "compare", *asked, "--json"))
    of_all = [row for row in rows if row["language"] == "all"]
    assert [row["tokenizer"] for row in of_all] == ["published", *asked]
    tokens = {row["tokenizer"]: row["tokens"] for row in of_all}
    assert tokens["published"] == tokens["gpt2"] == tokens[file]
    assert len({*tokens.values()}) == 3
    for row in of_all:
        assert row["bytes_per_token"] == pytest.approx(row["text_bytes"] / row["tokens"])
        assert row["fewer_tokens_share"] == pytest.approx(1 - row["tokens"] / tokens["published"])
    for name in tokens:  # of the languages, as many as of all
        counts = [row["tokens"] for row in rows if row["tokenizer"] == name]
        assert counts[0] == sum(counts[1:])
    assert "published" in cli.out("tokenizer", "compare", "gpt4o")


def test_before_a_tokenizer_is_made_the_first_pattern_is_compared_with(
    tmp_path: Path, build: Build, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "its.json").write_text(trained())
    config = write_corpus(tmp_path, tokenizer={"path": "its.json"})
    monkeypatch.setenv("TOKENMILL_CONFIG", str(config))
    build(open_corpus(config), *DOCUMENTS)

    rows = json.loads(cli.out("tokenizer", "compare", "--json"))

    assert [row["tokenizer"] for row in rows if row["language"] == "all"] == [*PATTERNS]
    assert rows[0]["fewer_tokens_share"] == 0


@pytest.mark.parametrize(
    ("other", "fault"),
    [
        ("gpt5", "'gpt5' is no pattern that is known; the names are gpt2, llama3, qwen, gpt4o"),
        ("(", "nor a regular expression: .*unmatched parenthesis"),
        ("none.json", "none.json: cannot be read"),
        ("bad.json", "bad.json: not a tokenizer.json"),
    ],
)
def test_what_is_no_tokenizer_is_named(
    tmp_path: Path,
    build: Build,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    other: str,
    fault: str,
) -> None:
    config = write_corpus(tmp_path)
    (tmp_path / "bad.json").write_text("{")
    monkeypatch.setenv("TOKENMILL_CONFIG", str(config))
    monkeypatch.chdir(tmp_path)
    build(open_corpus(config), *DOCUMENTS)

    assert main(["tokenizer", "compare", other]) == 2

    assert re.search(fault, capsys.readouterr().err)


def test_a_comparison_needs_documents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(write_corpus(tmp_path)))
    assert main(["tokenizer", "compare"]) == 1
    assert "deduped" in capsys.readouterr().err
