"""`corpus build --dry-run` and `corpus explain` foresee what a run then does, and run nothing."""

import shutil

import yaml
from builders import Build, hashes, open_corpus, sentence, write_corpus, write_jsonl
from lock_holder import holder_process
from prelude import Any, Path, json, pytest

from pipeline_defs.commands.main import main
from resources.run_reports import read_report

STAGES = ("raw", "filtered", "signatures", "band_index", "duplicates", "deduped")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = write_corpus(tmp_path)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(path))
    return path


@pytest.fixture
def built(config: Path, build: Build) -> Path:
    build(open_corpus(config), *STAGES)
    return config


def foreseen(
    capsys: pytest.CaptureFixture[str], *arguments: str
) -> dict[tuple[str, str], dict[str, Any]]:
    """The forecast of each stage and partition."""
    capsys.readouterr()
    assert main(["build", "--dry-run", "--json", *arguments]) == 0
    stages = json.loads(capsys.readouterr().out)["stages"]
    return {(each["stage"], each["partition"]): each for each in stages}


def numbers(each: dict[str, Any]) -> tuple[int, int, int]:
    return each["compute"], each["reuse"], each["drop"]


def change_config(config: Path, **changes: Any) -> None:
    config.write_text(yaml.safe_dump(yaml.safe_load(config.read_text()) | changes))


def add_file(config: Path) -> None:
    records = [{"text": sentence(900 + number, 30)} for number in range(5)]
    write_jsonl(config.parent / "input/prose/new.jsonl", records)


def test_before_any_build_everything_is_computed(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = foreseen(capsys)
    assert numbers(found["raw", "prose"]) == (2, 0, 0)
    assert numbers(found["deduped", "notes"]) == (1, 0, 0)
    assert found["raw", "prose"]["reasons"][0]["why"] == ["never built"]
    assert {stage for stage, _ in found} >= {*STAGES, "tokenizer", "sharded", "mixed"}
    assert all(each["compute"] for each in found.values())
    assert not (config.parent / "store").exists()


def test_what_a_run_would_fail_for_is_the_last_line_and_the_exit_code_is_2(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(config.parent / "input/notes")
    assert main(["build", "--dry-run"]) == 2
    shown = capsys.readouterr()
    (cause,) = shown.err.splitlines()
    assert cause.startswith("raw[notes]: source 'notes': no input file matches")
    assert "not materialized" not in shown.out
    assert "raw[prose]" in shown.out

    shutil.rmtree(config.parent / "input/prose")
    assert main(["build", "--dry-run"]) == 2
    shown = capsys.readouterr()
    assert not shown.out and len(shown.err.splitlines()) == 2


def test_with_nothing_new_nothing_is_computed(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = hashes(built.parent / "store")
    found = foreseen(capsys, "--to", "deduped")
    assert {stage for stage, _ in found} == set(STAGES)
    assert not any(each["compute"] or each["drop"] for each in found.values())
    assert all(each["is_exact"] and each["reuse"] for each in found.values())
    assert hashes(built.parent / "store") == before


def test_a_new_file_is_named_and_the_run_then_computes_what_was_foreseen(
    built: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    add_file(built)
    found = foreseen(capsys, "--to", "deduped")
    assert numbers(found["raw", "prose"]) == (1, 2, 0)
    assert found["raw", "prose"]["reasons"][0]["why"] == ["input/prose/new.jsonl is new"]
    assert found["filtered", "prose"]["reasons"][0]["why"] == ["raw computes it"]
    assert not found["filtered", "prose"]["is_exact"]

    corpus = open_corpus(built)
    build(corpus, *STAGES)
    for stage in ("raw", "filtered", "signatures", "deduped"):
        for source in ("prose", "notes"):
            report = read_report(corpus.store.root, stage, source)
            done = (report.parts_computed, report.parts_reused)
            assert done == numbers(found[stage, source])[:2], (stage, source)


def test_a_changed_and_a_removed_file_are_named(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = built.parent / "input/prose"
    lines = (folder / "a.jsonl").read_text().splitlines(keepends=True)
    (folder / "a.jsonl").write_text("".join(lines[1:]))
    (folder / "b.jsonl").unlink()
    found = foreseen(capsys, "--to", "filtered")
    assert numbers(found["raw", "prose"]) == (1, 0, 1)
    assert found["raw", "prose"]["reasons"][0]["why"] == ["input/prose/a.jsonl has other bytes"]
    assert numbers(found["filtered", "prose"]) == (1, 0, 1)


def test_a_changed_limit_is_shown_with_its_old_and_new_value(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = {"length": {"min_chars": 25}, "gopher_quality": {"min_words": 5, "min_stop_words": 1}}
    change_config(built, filters={"rules": rules})
    found = foreseen(capsys, "--source", "prose", "--to", "deduped")
    assert {partition for _, partition in found} == {"prose", "all"}
    assert numbers(found["raw", "prose"]) == (0, 2, 0)
    assert found["raw", "prose"]["is_exact"]
    filtered = found["filtered", "prose"]
    assert (numbers(filtered), filtered["is_exact"]) == ((2, 0, 0), True)
    assert filtered["reasons"][0]["why"] == ["config rules.length.min_chars: 20 -> 25"]
    assert numbers(found["signatures", "prose"]) == (2, 0, 0)


def test_another_compression_is_shown(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change_config(built, compression="lz4")
    found = foreseen(capsys, "--source", "prose", "--to", "filtered")
    assert found["raw", "prose"]["reasons"][0]["why"] == ["compression zstd -> lz4"]
    assert numbers(found["filtered", "prose"]) == (2, 0, 0)


def test_a_missing_file_is_named(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = next((built.parent / "store/filtered/notes").glob("*.parquet"))
    kept.unlink()
    filtered = foreseen(capsys, "--to", "filtered")["filtered", "notes"]
    why = filtered["reasons"][0]["why"]
    assert why == ["a published file is missing or has another size"]


def test_reasons_are_printed_while_another_run_holds_the_lock(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_file(built)
    with holder_process(built.parent / "store"):
        assert main(["build", "--dry-run", "--to", "filtered"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split()[:3] == ["raw", "1", "3"] for line in lines)
    assert any(line.split()[:3] == ["filtered", "about", "1"] for line in lines)
    start = "raw[prose]: 1 part ("
    reason = next(line for line in lines if line.startswith(start))
    assert reason.endswith("input/prose/new.jsonl is new")
    assert lines[-1].endswith("Nothing was run or written.")


def test_json_without_a_dry_run_is_refused(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", "--json"]) == 2
    assert "--dry-run" in capsys.readouterr().err


def test_a_part_is_explained_by_name_and_by_place(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = open_corpus(built)
    raw, filtered = (corpus.store.newest(stage, "notes") for stage in ("raw", "filtered"))
    part = filtered.parts[0]

    assert main(["explain", f"filtered/notes/{part.name}"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == f"filtered[notes] part {part.name}"
    assert f"  published, fingerprint {part.fingerprint}" in shown
    made_of = f"  made of raw[notes] part {part.name}: {raw.parts[0].fingerprint[:12]}"
    assert made_of in shown
    assert shown[-1] == "  next run: reused"

    change_config(built, filters={"rules": {"length": {"min_chars": 1}}})
    assert main(["explain", "--json", part.name]) == 0
    states = {each["stage"]: each for each in json.loads(capsys.readouterr().out)}
    assert set(states) == {"raw", "filtered", "signatures", "deduped", "tokenized"}
    assert states["raw"]["next_run"] == "reused"
    assert states["filtered"]["next_run"] == "computed"
    assert "config rules.length.min_chars: 20 -> 1" in states["filtered"]["why"]
    assert states["signatures"]["why"] == ["filtered computes it"]
    assert not states["tokenized"]["is_published"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("filtred/notes/x", "did you mean filtered or"),
        ("filtered/notes/nothing", "unknown part 'nothing'"),
        ("a b", "is no name of a part"),
    ],
)
def test_unknown_parts_are_refused(
    built: Path, capsys: pytest.CaptureFixture[str], name: str, hint: str
) -> None:
    assert main(["explain", name]) == 2
    assert hint in capsys.readouterr().err
