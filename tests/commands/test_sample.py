"""`corpus rules sample` shows documents with their faults, and escapes texts on screen and page."""

import yaml
from builders import Build, open_corpus, sentence, write_corpus, write_jsonl
from prelude import Path, pytest

from pipeline_defs.commands.main import main

NASTY = (
    "the cafe\u0301 \x1b[31mred\x07 <script>alert(1)</script> [bold]of[/nothing] :smile: "
    "\u202e {x} "
)
RULES = {"length": {"min_chars": 100}, "c4": {}}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Build) -> Path:
    """Write a corpus with ten documents under 100 characters, and one with every trap."""
    filters = {
        "rules": RULES,
        "normalize": {"control_characters": False},
        "language": {"backend": "none"},
    }
    path = write_corpus(tmp_path, filters=filters)
    short = [{"text": f"short {'x' * n}", "url": f"http://a/{n}<b>\x1b"} for n in range(1, 11)]
    write_jsonl(tmp_path / "input/prose/short.jsonl", short)
    long_tail = {"text": NASTY + " ".join(sentence(n) for n in range(60)) + "\n\n{tail}"}
    write_jsonl(tmp_path / "input/notes/nasty.jsonl", [long_tail])
    monkeypatch.setenv("TOKENMILL_CONFIG", str(path))
    build(open_corpus(path), "raw", "filtered")
    return path


def sample(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    code = main(["rules", "sample", *arguments])
    output = capsys.readouterr()
    assert code == 0, output.err
    return output.out


def short_ones(text: str) -> list[int]:
    """Count the x in each of the short documents shown, in their order."""
    lines = [line for line in text.splitlines() if line.startswith("short ")]
    return [line.count("x") for line in lines]


def test_rejected_documents_come_with_score_reasons_and_origin(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = sample(capsys, "--source", "prose", "--rule", "length.too_short", "--count", "99")

    assert sorted(short_ones(text)) == list(range(1, 11))
    assert "char_count: 16" in text and "below 100" in text
    assert "reasons: length.too_short" in text
    assert "origin: input/prose/short.jsonl, byte " in text


def test_the_nearest_to_the_threshold_come_first(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--source", "prose", "--rule", "length.min_chars", "--near-threshold"]
    assert short_ones(sample(capsys, *arguments, "--count", "3")) == [10, 9, 8]


def test_documents_only_just_kept(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = sample(
        capsys, "--source", "prose", "--rule", "length.too_short", "--kept", "--count", "2"
    )

    scores = [
        float(line.split()[1]) for line in text.splitlines() if line.startswith("char_count:")
    ]
    assert len(scores) == 2 and scores == sorted(scores) and scores[0] >= 100
    assert text.count("reasons: none: kept") == 2


def test_the_seed_decides_which_documents_come(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = ["--source", "prose", "--rule", "length.too_short", "--count", "5"]
    by_seed = [short_ones(sample(capsys, *base, "--seed", str(seed))) for seed in (0, 0, 1, 2)]
    assert by_seed[0] == by_seed[1]
    assert len({tuple(found) for found in by_seed}) == 3


def test_no_text_acts_on_the_terminal(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = sample(capsys, "--source", "notes", "--rule", "c4.curly_bracket", "--width", "400")

    assert not any(sign in text for sign in ("\x1b", "\x07", "\u202e"))
    assert "[bold]of[/nothing] :smile:" in text and "␛[31mred" in text
    assert "the café" in text
    assert text.count("⟦{⟧") == 2 and "characters ...]" in text


def test_no_text_acts_on_the_page(
    config: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = tmp_path / "page.html"
    sample(capsys, "--source", "notes", "--rule", "c4.curly_bracket", "--html", str(target))

    page = target.read_text()
    assert "<script" not in page and "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert page.count("<mark>{</mark>") == 2
    assert "\x1b" not in page and "\u202e" not in page
    arguments = ["--source", "notes", "--rule", "c4.curly_bracket", "--html", str(tmp_path)]
    assert main(["rules", "sample", *arguments]) == 2
    assert f"{tmp_path}: cannot be written: " in capsys.readouterr().err


def test_nothing_to_show_is_no_error(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = sample(capsys, "--source", "prose", "--rule", "c4.lorem_ipsum")
    assert "0 documents rejected by c4.lorem_ipsum" in text


@pytest.mark.parametrize(
    ("source", "rule", "message"),
    [
        ("prose", "length.too_shor", "did you mean length.too_short"),
        ("prose", "fineweb.list_like", "fineweb.list_like was off"),
        ("pros", "length.too_short", "did you mean prose"),
    ],
)
def test_unknown_names_are_refused(
    config: Path, capsys: pytest.CaptureFixture[str], source: str, rule: str, message: str
) -> None:
    assert main(["rules", "sample", "--source", source, "--rule", rule]) == 2
    assert message in capsys.readouterr().err


def test_documents_are_those_that_the_decisions_were_made_of(
    config: Path, capsys: pytest.CaptureFixture[str], build: Build
) -> None:
    (config.parent / "input/prose/short.jsonl").unlink()
    build(open_corpus(config), "raw")

    text = sample(capsys, "--source", "prose", "--rule", "length.too_short", "--count", "99")

    assert len(short_ones(text)) == 10


def test_raw_documents_that_are_gone_are_said(
    config: Path, capsys: pytest.CaptureFixture[str], build: Build
) -> None:
    content = yaml.safe_load(config.read_text()) | {"keep_manifests": 1}
    config.write_text(yaml.safe_dump(content))
    (config.parent / "input/prose/short.jsonl").unlink()
    build(open_corpus(config), "raw")

    assert main(["rules", "sample", "--source", "prose", "--rule", "length.too_short"]) == 1
    assert "Materialize `filtered` for 'prose' again" in capsys.readouterr().err


def test_a_count_of_nothing_is_refused(config: Path) -> None:
    assert (
        main(["rules", "sample", "--source", "prose", "--rule", "length.too_short", "--count", "0"])
        == 2
    )
