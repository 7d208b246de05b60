"""`corpus config` describes every key in one sentence or more, with its default in YAML."""

import yaml
from builders import SMALL_CORPUS
from documented import ROOT, blocks
from jsonschema.validators import validator_for
from prelude import Any, Path, json, pytest

from pipeline_defs.commands.build.config import as_sentence, as_yaml, schema_text
from pipeline_defs.commands.main import main
from resources.settings.filtering.presets import PRESETS

SOURCE = {"name": "web", "where": "data/*.jsonl"}
BASE: dict[str, Any] = {"store": "out", "sources": [SOURCE], "phases": [{"name": "general"}]}
SET = {"name": "quiz", "where": "quiz.jsonl", "fields": "question", "ngram": "13-words"}
FORMS: list[dict[str, Any]] = [  # that validators turn into another one
    *(
        {"sources": [SOURCE | keys]}
        for keys in (
            {"where": ["a.txt", "b.txt"], "columns": "text", "language": ["en", "de"]},
            {"columns": None, "field_filter": 'meta.kind = "news"'},
            {"field_filter": ["n == 3", "lang = de"]},
            {"field_filter": {"kind": "news", "n": [1, 2.5, True]}},
            {"format": "of_a_package", "kind": "chat"},
            {"filters": {"pii": None, "rules": {"c4": None, "length": {"min_chars": 9}}}},
            {"filters": {"fasttext": {"label": "__label__hq"}}},
        )
    ),
    {"filters": {"plug_ins": ["of_a_package"], "language": {"expected": ["en-US", "DE"]}}},
    {"filters": {"rules": {"length": {"min_words": {"zh": 20, "c++": None, "*": 50}}}}},
    {"filters": {"rules": {"metadata": {"url_words": ["Casino"], "allowed_licenses": ["MIT"]}}}},
    {"dedup": {"decontamination": {"sets": [{k: SET[k] for k in ("name", "where", "fields")}]}}},
    {"dedup": {"decontamination": {"sets": [{"name": "a", "where": "b"}], "ngram": "9-words"}}},
    {"phases": [{"name": "a", "weights_at": {0.0: {"web": 1}, 1.0: {"web": 1}}, "buckets": []}]},
    {"phases": [{"name": "a"}, {"name": "b", "continues": "a"}]},
    {"phases": [{"name": "a"}, {"name": "b", "continues": {"phase": "a", "at": 9}}]},
    *({"filters": preset} for preset in PRESETS.values()),
]


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


def mistakes(config: dict[str, Any]) -> list[str]:
    """The mistakes that an editor marks in a config, by key path."""
    schema = json.loads(schema_text())
    found = validator_for(schema)(schema).iter_errors(json.loads(json.dumps(config)))
    return [f"{error.json_path}: {error.message}" for error in found]


@pytest.mark.parametrize("path", [ROOT / "pipeline.yaml", SMALL_CORPUS], ids=str)
def test_the_schema_takes_the_shipped_files(path: Path) -> None:
    assert mistakes(yaml.safe_load(path.read_text())) == []


@pytest.mark.parametrize(("page", "text"), blocks("yaml"))
def test_the_schema_takes_the_examples_of_the_docs(page: str, text: str) -> None:
    assert mistakes(BASE | yaml.safe_load(text)) == []


@pytest.mark.parametrize("keys", FORMS, ids=str)
def test_the_schema_takes_every_form_of_a_value(keys: dict[str, Any]) -> None:
    assert mistakes(BASE | keys) == []


@pytest.mark.parametrize(
    ("keys", "place", "named"),
    [
        ({"dedpu": {}}, "$", "dedpu"),
        ({"dedup": {"bnads": 3}}, "$.dedup", "bnads"),
        ({"sources": [SOURCE | {"filters": {"rules": {"lenght": {}}}}]}, "$.sources[0]", "lenght"),
        ({"sources": [{"name": "web"}]}, "$.sources[0]", "where"),
        ({"engine": {"kind": "dask"}}, "$.engine.kind", "dask"),
        ({"tokenizer": {"vocab_size": 0}}, "$.tokenizer.vocab_size", "minimum"),
    ],
    ids=str,
)
def test_the_schema_refuses_a_mistake_at_its_place(
    keys: dict[str, Any], place: str, named: str
) -> None:
    [mistake] = mistakes(BASE | keys)
    assert mistake.startswith(place) and named in mistake


def test_every_key_of_the_schema_says_what_it_means() -> None:
    models = json.loads(schema_text())
    properties = [*models["properties"].values()]
    properties += [
        each for model in models["$defs"].values() for each in model.get("properties", {}).values()
    ]
    assert all(each["description"] for each in properties) and len(properties) > 250


def test_one_section_as_text_and_as_json(cli: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "sources.filters"]) == 0
    assert capsys.readouterr().out.startswith("sources[].filters: Overrides of `filters`")

    assert main(["config", "dedup.decontamination.sets", "--json"]) == 0
    rows = {row["key"].rpartition(".")[2]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["where"]["required"] and "default" not in rows["where"]
    assert rows["fields"]["default"] == ["text"]
    assert set(rows) >= {"sets[]", "name"} and "min_hits" not in rows

    assert main(["config", "dedpu"]) == 2
    assert "unknown key 'dedpu'; did you mean dedup" in capsys.readouterr().err
