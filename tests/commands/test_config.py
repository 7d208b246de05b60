"""`corpus config` describes every key in one sentence or more, with its default in YAML."""

import pytest
import yaml

from pipeline_defs.commands.build.config import as_sentence, as_yaml
from pipeline_defs.commands.main import main


def test_every_key_has_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 250
    for line in lines:
        key, _, sentence = line.partition(": ")
        assert " " not in key and len(sentence) > 5 and sentence.endswith((".", "?")), line
    assert "keep_manifests: Past states" in "\n".join(lines)
    assert next(line for line in lines if line.startswith("store: ")).endswith(" Required.")


@pytest.mark.parametrize(
    ("description", "sentence"),
    [
        ("folder of the corpus", "Folder of the corpus."),
        ("File format; auto tells it.", "File format; auto tells it."),
        ("normalisation, language", "Normalisation, language."),
        ("line_ends means VT too", "line_ends means VT too."),
        ("redact: placeholders replace the spans", "redact: placeholders replace the spans."),
        ("C4's line rules", "C4's line rules."),
    ],
)
def test_descriptions_become_sentences(description: str, sentence: str) -> None:
    assert as_sentence(description) == sentence


@pytest.mark.parametrize(
    "value", [None, True, 3, 0.5, "auto", ["a", "b"], {"email": "<EMAIL>"}, "0 2 * * *", "", []]
)
def test_defaults_are_yaml(value: object) -> None:
    assert yaml.safe_load(as_yaml(value)) == value
