"""`corpus tokenizer`, in processes of its own, over a corpus that is built."""

import subprocess

import yaml
from builders import Build, open_corpus, sentence, write_corpus, write_jsonl
from prelude import Any, Path, os, pytest, sys

from pipeline_defs.commands.main import main
from resources.run_reports import read_report
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
