"""`corpus rules whatif` gives the result of a real run with the changed thresholds."""

import yaml
from builders import Build, open_corpus, write_corpus, write_jsonl
from prelude import Any, Path, json, pl, pytest

from pipeline_defs.commands.main import main
from resources.settings.filtering.filter_steps import MAX_VALUES
from resources.settings.filtering.presets import lay_over
from resources.store.disk import xxh3_of

CHANGES = (
    "gopher_quality.min_words=60",
    "gopher_quality.words_too_short=3.2",
    "length.min_chars=off",
)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = write_corpus(tmp_path)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(path))
    return path


def whatif(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code = main(["rules", "whatif", *arguments, "--json"])
    output = capsys.readouterr()
    assert code == 0, output.err
    found: dict[str, Any] = json.loads(output.out)
    return found


def error(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    return main(["rules", "whatif", *arguments]), capsys.readouterr().err


def settings_of(*changes: str) -> list[str]:
    return [part for change in changes for part in ("--set", change)]


def change_filters(config: Path, filters: dict[str, Any]) -> None:
    content = yaml.safe_load(config.read_text())
    content["filters"] = lay_over(content["filters"], filters)
    config.write_text(yaml.safe_dump(content, sort_keys=False))


def kept_bytes(corpus: Any, source: str) -> int:
    manifest = corpus.store.newest("filtered", source)
    paths = [corpus.store.path_of(manifest, part.file("decisions")) for part in manifest.parts]
    return int(pl.concat(map(pl.read_parquet, paths)).filter("kept")["num_bytes"].sum())


def test_the_replay_equals_a_real_run(
    config: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    build(open_corpus(config), "raw", "filtered")
    found = {
        source: whatif(capsys, "--source", source, *settings_of(*CHANGES))
        for source in ("prose", "notes")
    }
    before = {name: open_corpus(config).store.newest("filtered", name).stats for name in found}

    change_filters(config, found["prose"]["sources"]["prose"]["filters"])
    corpus = open_corpus(config)
    build(corpus, "raw", "filtered")

    for source, answer in found.items():
        stats = corpus.store.newest("filtered", source).stats
        total = answer["total"]
        assert before[source].rows_kept == total["now"]["documents"]
        assert total["then"] == {"documents": stats.rows_kept, "bytes": kept_bytes(corpus, source)}
        assert before[source].rows_kept != stats.rows_kept
        for side, run in (("now", before[source]), ("then", stats)):
            counts = {name: numbers[side]["documents"] for name, numbers in answer["rules"].items()}
            assert {name: n for name, n in counts.items() if n} == run.numbers["broken_rules"]


def test_a_document_with_too_many_values_is_kept_by_no_change(
    config: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    change_filters(config, {"pii": {}})
    lines = [f"ann{number}@example.org is sent the report." for number in range(MAX_VALUES + 1)]
    texts = ["\n".join(lines), *(f"Note {number} on the mill." for number in range(10))]
    write_jsonl(config.parent / "input/prose/list.jsonl", [{"text": text} for text in texts])
    corpus = open_corpus(config)
    build(corpus, "raw", "filtered")

    found = whatif(capsys, "--source", "prose", *settings_of(*CHANGES))

    numbers = corpus.store.newest("filtered", "prose").stats.numbers["broken_rules"]
    assert numbers["pii.too_many_values"] == 1
    assert found["rules"]["pii.too_many_values"]["then"]["documents"] == 1
    arguments = ["--source", "prose", "--rule", "pii.too_many_values"]
    assert main(["rules", "sample", *arguments]) == 0
    assert "1 documents rejected by pii.too_many_values" in capsys.readouterr().out
    assert main(["rules", "calibrate", "--source", "prose", "--keep", "0.9"]) == 0


WEB = Path(__file__).resolve().parents[2] / "sample_data/web"
EDITING = {
    "presets": ["gopher-quality", "gopher-repetition", "c4-datatrove", "fineweb"],
    "pii": {},
    "custom": "rules.py",
    "rules": {"pii": {}, "profanity": {}},
}
CUSTOM = """
import polars as pl
from assets.filtered.rules import CustomRule
digits = pl.col("text").str.count_matches("[0-9]") / pl.col("text").str.len_chars()
RULES = [CustomRule("digits", digits, maximum=0.2)]
"""


def test_the_replay_equals_a_real_run_on_edited_texts_and_custom_rules(
    config: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    (config.parent / "rules.py").write_text(CUSTOM)
    content = yaml.safe_load(config.read_text()) | {"filters": EDITING, "part_bytes": 1 << 20}
    content["sources"][0]["where"] = str(WEB / "*.jsonl.zst")
    config.write_text(yaml.safe_dump(content, sort_keys=False))
    build(open_corpus(config), "raw", "classifier", "filtered")

    changes = ["gopher_repetition.top_2_gram=0.1", "fineweb=off", "custom.digits=0.01"]
    changes += ["c4.min_sentences=2", "gopher_quality.too_few_words=20", "pii.max_spans=1"]
    found = whatif(capsys, "--source", "prose", *settings_of(*changes))
    change_filters(config, found["sources"]["prose"]["filters"])
    corpus = open_corpus(config)
    build(corpus, "raw", "classifier", "filtered")

    stats = corpus.store.newest("filtered", "prose").stats
    assert 0 < stats.rows_kept < stats.rows_in
    assert found["total"]["then"] == {"documents": stats.rows_kept, "bytes": stats.bytes}
    counts = {name: numbers["then"]["documents"] for name, numbers in found["rules"].items()}
    assert {name: n for name, n in counts.items() if n} == stats.numbers["broken_rules"]
    assert counts["custom.digits"] > 0


def test_sources_add_up_and_without_changes_nothing_changes(
    config: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    build(open_corpus(config), "raw", "filtered")

    found = whatif(capsys, "--all")

    assert found["total"]["documents"] == 81
    assert found["total"]["now"] == found["total"]["then"]
    kept = [numbers["now"]["documents"] for numbers in found["sources"].values()]
    assert sum(kept) == found["total"]["now"]["documents"]


def test_pairs_and_rules_that_break_alone_are_counted(
    config: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    build(open_corpus(config), "raw", "filtered")

    both = settings_of("length.min_chars=100000", "gopher_quality.min_words=1000")
    found = whatif(capsys, "--all", *both)

    short = found["rules"]["length.too_short"]
    assert short["then"] == {"documents": 81, "bytes": found["total"]["bytes"], "alone": 0}
    rules = ["length.too_short", "gopher_quality.too_few_words"]
    assert found["overlaps"][0] == {"rules": rules, "now": 0, "then": 81}


def test_the_tables_show_the_change(
    config: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    build(open_corpus(config), "raw", "filtered")

    assert main(["rules", "whatif", "--all", "--set", "length.too_short=150"]) == 0

    text = capsys.readouterr().out
    assert "20 -> 150" in text and '{"rules": {"length": {"min_chars": 150}}}' in text


def test_a_config_that_has_changed_since_is_named(
    config: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    build(open_corpus(config), "raw", "filtered")
    assert whatif(capsys, "--source", "prose")["sources"]["prose"]["notes"] == []
    change_filters(config, {"rules": {"length": {"min_chars": 33}}})

    found = whatif(capsys, "--source", "prose", "--set", "length.too_short=34")

    (note,) = found["sources"]["prose"]["notes"]
    assert "rules.length.min_chars" in note
    assert found["sources"]["prose"]["changes"]["length.too_short"] == {"now": 20, "then": 34}


def test_a_score_that_nobody_computed_is_named(
    config: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    build(open_corpus(config), "raw", "filtered")

    code, message = error(capsys, "--source", "prose", "--set", "fineweb.list_like=0.1")

    assert code == 2
    assert "list_ratio" in message and "materialize `filtered` for 'prose'" in message


def test_of_many_sources_those_without_the_score_are_left_alone(
    config: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    content = yaml.safe_load(config.read_text())
    content["sources"][1]["filters"] = {"rules": {"gopher_quality": None}}
    config.write_text(yaml.safe_dump(content))
    build(open_corpus(config), "raw", "filtered")

    found = whatif(capsys, "--all", "--set", "gopher_quality.min_words=60")["sources"]

    assert found["notes"]["changes"] == {} and "word_count" in found["notes"]["notes"][0]
    assert found["prose"]["changes"] != {}
    assert found["prose"]["then"]["documents"] < found["prose"]["now"]["documents"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--all"], 1, "nothing is filtered here"),
        (["--source", "prose"], 1, "Materialize `filtered` for 'prose' first"),
        (["--source", "prise"], 2, "unknown source 'prise'; did you mean prose"),
    ],
)
def test_what_is_not_there_is_said(
    config: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    found, text = error(capsys, *arguments)
    assert found == code and message in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("length.min_char=3", "did you mean length.min_chars"),
        ("length.min_chars=-3", "greater than or equal to 0"),
    ],
)
def test_a_wrong_change_is_refused(
    config: Path, build: Build, capsys: pytest.CaptureFixture[str], change: str, message: str
) -> None:
    build(open_corpus(config), "raw", "filtered")
    code, text = error(capsys, "--source", "prose", "--set", change)
    assert code == 2 and message in text


def test_decisions_made_by_other_rules_are_refused(
    config: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    build(open_corpus(config), "raw", "filtered")
    folder = config.parent / "store/filtered/prose"
    [place] = (folder / "_manifests").glob("*.json")
    manifest = json.loads(place.read_bytes())
    del manifest["sha256"]
    for file in (file for part in manifest["parts"] for file in part["files"]):
        path = folder / file["path"]
        if file["kind"] == "decisions":
            pl.read_parquet(path).with_columns(kept=~pl.col("kept")).write_parquet(path)
            file |= {"bytes": path.stat().st_size, "xxh3": xxh3_of(path)}
    place.write_text(json.dumps(manifest))

    code, text = error(capsys, "--source", "prose")

    assert code == 1 and "another version" in text
