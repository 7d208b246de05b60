"""`corpus rules calibrate` proposes limits under which a run keeps what was asked."""

import yaml
from builders import Build, open_corpus, sentence, write_corpus, write_jsonl
from prelude import Any, Path, json, pl, pytest

from assets.filtered.rules.rules import LANGUAGE
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
    proposed = run(capsys, "calibrate", "--source", "prose", "--keep", str(keep))["replay"]
    filters, found = proposed["sources"]["prose"]["filters"], proposed["total"]

    change_filters(config, filters)
    corpus = open_corpus(config)
    build(corpus, "raw", "filtered")

    manifest = corpus.store.newest("filtered", "prose")
    stats = manifest.stats
    assert found["now"]["documents"] == before
    assert found["then"] == {"documents": stats.rows_kept, "bytes": stats.bytes}
    removed = {name: rule["then"]["documents"] for name, rule in proposed["rules"].items()}
    assert {name: n for name, n in removed.items() if n} == stats.numbers["broken_rules"]
    paths = [corpus.store.path_of(manifest, part.file("decisions")) for part in manifest.parts]
    kept = pl.read_parquet(paths).group_by(LANGUAGE).agg(pl.sum("kept"), pl.len())
    for lang, number, documents in kept.iter_rows():
        assert lang in ("de", "fr") and documents == 120
        assert keep * 120 <= number <= (keep + 0.05) * 120
    limits = filters["rules"]["gopher_quality"]["min_words"]
    assert 5 < limits["de"] < limits["fr"] and limits["*"] == limits["de"]


def test_without_languages_in_the_decisions_all_share_limits_those_of_rules_that_are_off_too(
    config: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    build(open_corpus(config), "raw", "filtered")

    found = run(capsys, "calibrate", "--source", "prose")
    all_rules = run(capsys, "calibrate", "--source", "prose", "--all-rules")

    assert not any("*:" in setting for setting in found["settings"])
    assert "no language" in found["notes"][0]
    assert not any("max_chars" in setting for setting in found["settings"])
    changed = all_rules["replay"]["sources"]["prose"]["changes"]["length.too_long"]
    assert changed["now"] is None and changed["then"] > 100
    assert all_rules["replay"]["total"]["then"]["documents"] >= 0.95 * 240


def test_rules_without_a_number_are_counted_and_named_if_they_reject_too_much(
    config: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    change_filters(config, {"rules": {"language": {"min_score": None, "allowed": ["de"]}}})
    build(open_corpus(config), "raw", "filtered")

    found = run(capsys, "calibrate", "--source", "prose")

    assert found["replay"]["total"]["then"]["documents"] <= 120
    assert "language.not_allowed 120" in found["notes"][-1]


def test_the_tables_and_the_proposal_are_printed(
    config: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    by_language(config)
    build(open_corpus(config), "raw", "filtered")

    assert main(["rules", "calibrate", "--source", "prose"]) == 0

    text = capsys.readouterr().out
    assert "documents that a rule breaks" in text and "gopher_quality.too_few_words" in text
    start = text.index("To have this for prose, lay over its filters: {")
    proposed = yaml.safe_load(text[text.index("{", start) : text.index("To change some")])
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
