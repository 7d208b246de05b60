"""`corpus rules calibrate` proposes limits under which a run keeps what was asked."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from builders import Build, open_corpus, sentence, write_corpus, write_jsonl

from pipeline_defs.commands.main import main
from resources.settings.filtering.presets import lay_over

RULES = {
    "length": {"min_chars": 20},
    "gopher_quality": {"min_words": 5, "min_stop_words": None},
    "gopher_repetition": {},
}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus whose source `prose` has 240 documents in two languages."""
    texts = [sentence(200 + i, 12 + i * 7 % 90) for i in range(200)]
    german = [{"text": text, "lang": "de"} for text in texts[:120]]
    french = [{"text": f"{text} {text}", "lang": "fr"} for text in texts[:120]]
    path = write_corpus(tmp_path, filters={"rules": RULES, "language": {"backend": "none"}})
    for old in (tmp_path / "input/prose").iterdir():
        old.unlink()
    write_jsonl(tmp_path / "input/prose/c.jsonl", german + french)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(path))
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code = main([*arguments, "--json"])
    output = capsys.readouterr()
    assert code == 0, output.err
    found: dict[str, Any] = json.loads(output.out)
    return found


def change_filters(config: Path, filters: dict[str, Any]) -> None:
    content = yaml.safe_load(config.read_text())
    content["filters"] = lay_over(content["filters"], filters)
    config.write_text(yaml.safe_dump(content, sort_keys=False))


def by_language(config: Path) -> None:
    change_filters(config, {"rules": {"gopher_quality": {"min_words": {"*": 5}}}})


@pytest.mark.parametrize("keep", [0.8, 0.95])
def test_a_run_with_the_proposed_limits_keeps_what_was_asked(
    config: Path, build: Build, capsys: pytest.CaptureFixture[str], keep: float
) -> None:
    by_language(config)
    build(open_corpus(config), "raw", "filtered")
    before = open_corpus(config).store.newest("filtered", "prose").stats.rows_kept
    found = run(capsys, "calibrate", "--source", "prose", "--keep", str(keep))

    change_filters(config, found["filters"])
    corpus = open_corpus(config)
    build(corpus, "raw", "filtered")

    stats = corpus.store.newest("filtered", "prose").stats
    assert found["kept"]["now"]["documents"] == before
    assert found["kept"]["then"]["documents"] == stats.rows_kept
    assert found["kept"]["then"]["bytes"] == stats.bytes
    assert keep * 240 <= stats.rows_kept < (keep + 0.05) * 240
    removed = {name: rule["documents"] for name, rule in found["rules"].items()}
    assert {name: n for name, n in removed.items() if n} == stats.numbers["broken_rules"]


def test_every_language_keeps_its_share(
    config: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    by_language(config)
    build(open_corpus(config), "raw", "filtered")

    found = run(capsys, "calibrate", "--source", "prose", "--keep", "0.9")

    assert set(found["languages"]) == {"de", "fr"}
    for counts in found["languages"].values():
        assert counts["documents"] == 120 and 108 <= counts["then"] <= 114
    limits = found["filters"]["rules"]["gopher_quality"]["min_words"]
    assert 5 < limits["de"] < limits["fr"] and limits["*"] == limits["de"]


def test_without_a_language_in_the_decisions_all_share_limits_and_a_note_says_why(
    config: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    build(open_corpus(config), "raw", "filtered")

    found = run(capsys, "calibrate", "--source", "prose")

    assert set(found["languages"]) == {"*"}
    limits = [limit for group in found["filters"]["rules"].values() for limit in group.values()]
    assert not any(isinstance(limit, dict) for limit in limits)
    assert "no language" in found["notes"][0]


def test_what_if_replays_the_proposal(
    config: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    by_language(config)
    build(open_corpus(config), "raw", "filtered")
    found = run(capsys, "calibrate", "--source", "prose", "--keep", "0.9")

    changes = [part for setting in found["settings"] for part in ("--set", setting)]
    replayed = run(capsys, "whatif", "--source", "prose", *changes)

    assert replayed["total"] == found["kept"]


def test_examples_are_documents_that_the_limit_removes(
    config: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    build(open_corpus(config), "raw", "filtered")
    found = run(capsys, "calibrate", "--source", "prose", "--keep", "0.8")
    change_filters(config, found["filters"])
    build(open_corpus(config), "raw", "filtered")

    named = {doc: name for name, rule in found["rules"].items() for doc in rule["examples"]}
    assert len(named) >= 3
    for doc, name in list(named.items())[:3]:
        assert main(["trace", doc]) == 0
        assert name in capsys.readouterr().out


def test_rules_that_are_off_are_proposed_on_demand(
    config: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    build(open_corpus(config), "raw", "filtered")

    in_force = run(capsys, "calibrate", "--source", "prose")["rules"]
    all_rules = run(capsys, "calibrate", "--source", "prose", "--all-rules")

    assert "length.too_long" not in in_force
    assert all_rules["rules"]["length.too_long"]["now"] is None
    assert all_rules["rules"]["length.too_long"]["then"] > 100
    assert all_rules["kept"]["then"]["documents"] >= 0.95 * 240


def test_rules_without_a_number_are_counted_and_named_if_they_reject_too_much(
    config: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    change_filters(config, {"rules": {"language": {"min_score": None, "allowed": ["de"]}}})
    build(open_corpus(config), "raw", "filtered")

    found = run(capsys, "calibrate", "--source", "prose")

    assert found["kept"]["then"]["documents"] <= 120
    assert "language.not_allowed 120" in found["notes"][-1]


def test_the_tables_and_the_proposal_are_printed(
    config: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    by_language(config)
    build(open_corpus(config), "raw", "filtered")

    assert main(["rules", "calibrate", "--source", "prose"]) == 0

    text = capsys.readouterr().out
    assert "limits that keep 95.0% of prose" in text and "gopher_quality.too_few_words" in text
    start = text.index("rules:\n")
    proposed = yaml.safe_load(text[start : text.index("To replay")])
    assert proposed["rules"]["length"]["min_chars"]
    assert "corpus rules whatif --source prose --set 'length.min_chars=de:" in text


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--source", "prose"], 1, "filtered[prose] is not materialized"),
        (["--source", "prosa"], 2, "did you mean prose"),
        (["--source", "prose", "--keep", "1"], 2, "--keep 1 is no share of documents"),
        (["--source", "prose", "--keep", "0"], 2, "--keep 0 is no share of documents"),
        (["--source", "prose", "--keep", "nan"], 2, "--keep nan is no share of documents"),
    ],
)
def test_wrong_use_is_named(
    config: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    assert main(["rules", "calibrate", *arguments]) == code
    assert message in capsys.readouterr().err


def test_too_few_documents_are_refused_with_their_number(
    config: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    build(open_corpus(config), "raw", "filtered")

    assert main(["rules", "calibrate", "--source", "notes"]) == 1

    message = capsys.readouterr().err
    assert "41 documents" in message and "50" in message and "materialize" in message
