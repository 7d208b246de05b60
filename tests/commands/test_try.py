"""`corpus try`: a sample of files without a config, and one sentence for what cannot be read."""

import shutil
import tempfile

from builders import write_jsonl
from hostile_folders import READ, REFUSED
from prelude import Iterator, Path, os, pytest
from verbs import Cli

import pipeline_defs.commands.build.try_files  # noqa: F401  before rights are given up
from pipeline_defs.commands.build.try_files import NUM_DOCUMENTS
from pipeline_defs.commands.terminal import as_typed

SAMPLE = Path(__file__).resolve().parents[2] / "sample_data"
NOBODY = 65534


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working folder, which every user may enter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("TOKENMILL_CONFIG", raising=False)
    monkeypatch.setenv("DAGSTER_HOME", "")
    yield folder
    shutil.rmtree(folder)


def try_own(cli: Cli, name: str, code: int) -> tuple[str, str]:
    """Output and errors of `corpus try own`, as a user without rights if files are closed."""
    user = os.geteuid()
    if name.startswith("closed") and user == 0:
        os.seteuid(NOBODY)
    try:
        printed = cli.printed(("try", "own"), code)
    finally:
        os.seteuid(user)
    return printed.out, printed.err


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_gets_one_sentence(name: str, place: Path, cli: Cli) -> None:
    make, sentence = REFUSED[name]
    (place / "own").mkdir()
    make(place / "own")
    try:
        out, err = try_own(cli, name, 2)
    finally:
        (place / "own").chmod(0o755)
    assert out == "" and sentence in err
    assert err.count("\n") == 1 and err.endswith(".\n") and err[:-1].isprintable()
    assert len(err) < 600


@pytest.mark.parametrize("name", READ)
def test_what_can_be_read_in_part_is_tried(name: str, place: Path, cli: Cli) -> None:
    make, sentence = READ[name]
    (place / "own").mkdir()
    make(place / "own")
    out, err = try_own(cli, name, 0)
    assert err == "" and sentence in out.splitlines()[0]
    assert out.splitlines()[-1] == f"Next: {as_typed('init', 'own', '--into', 'my_corpus')}"


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        (["nowhere"], "nowhere: no such file or folder. Correct the name."),
        (["caf\udce9"], "'caf\\udce9': the name is not UTF-8. Rename it."),
        (["pipe"], "pipe is a FIFO. Name a regular file."),
        ([f"{n}.txt" for n in range(11)], "11 places, each a source of its own, are more than 10."),
    ],
)
def test_a_name_that_means_nothing_is_refused(
    where: list[str], sentence: str, place: Path, cli: Cli
) -> None:
    os.mkfifo("pipe")
    for number in range(11):
        Path(f"{number}.txt").touch()
    err = cli.err(2, "try", *where)
    assert sentence in err and err.count("\n") == 1


def test_a_sample_is_counted_and_excerpts_are_marked(place: Path, cli: Cli) -> None:
    out = cli.out("try", str(SAMPLE / "code"))

    row = next(line.split() for line in out.splitlines() if line.startswith(" code "))
    read, rejected, copies, kept, fewest, most = row[-6:]
    assert int(read) - int(rejected) - int(copies) == int(kept) > 100
    assert int(read) == NUM_DOCUMENTS and int(rejected) and int(copies)
    assert 100 < int(fewest) < int(most) < 2000
    assert "code: rejected, page." in out
    assert "⟦" in out and "code: kept" in out
    told = cli.json("try", str(SAMPLE / "code"))
    assert told["sources"]["code"]["kept"] == int(kept)
    assert any(text["title"] == "code: kept" for text in told["excerpts"])
    assert not (place / "my_corpus").exists() and [*place.iterdir()] == []


def test_small_files_are_read_whole(place: Path, cli: Cli) -> None:
    text = next((SAMPLE / "books").glob("*.txt")).read_text()
    write_jsonl(place / "own/a.jsonl", [{"text": f"{n} {text[:300]}", "n": n} for n in range(120)])
    write_jsonl(place / "own/b.jsonl", [{"text": f"{n} {text[300:600]}", "n": n} for n in range(9)])
    row = next(line.split() for line in cli.out("try", "own").splitlines() if " 129 " in line)
    assert row[:4] == ["own", "en", "129", "129"]


def test_a_large_file_is_read_in_part(place: Path, cli: Cli) -> None:
    cli.out("try", str(SAMPLE / "books"))  # all code and data of the stages
    text = next((SAMPLE / "books").glob("*.txt")).read_text()
    write_jsonl(place / "a.jsonl", [{"text": f"{n} {text}", "n": n} for n in range(5000)])
    assert (place / "a.jsonl").stat().st_size > 40_000_000

    before = bytes_read()
    cli.out("try", "a.jsonl")

    assert bytes_read() - before < 15_000_000


def bytes_read() -> int:
    """Bytes that this process has read so far."""
    return int(Path("/proc/self/io").read_text().split()[1])


def test_the_limits_are_those_of_the_domain(place: Path, cli: Cli) -> None:
    entries = str(SAMPLE / "books/part-0.jsonl.gz")

    general, books = cli.out("try", entries), cli.out("try", entries, "--domain", "books")

    assert "limits of the domain general" in general and "page.truncated (2 of 168)" in general
    assert "limits of the domain books" in books and "rejected," not in books
    assert books.endswith(
        f"{as_typed('init', entries, '--into', 'my_corpus', '--domain', 'books')}\n"
    )
    assert cli.out("init", entries, "--into", "my_corpus", "--domain", "books")
    assert "\n    domain: books " in (place / "my_corpus/pipeline.yaml").read_text()


def test_a_place_that_is_not_clear_stops_no_other(place: Path, cli: Cli) -> None:
    write_jsonl(place / "good/a.jsonl", [{"text": f"{n} A river runs by."} for n in range(20)])
    write_jsonl(place / "pairs/a.jsonl", [{"chosen": "A long answer.", "rejected": "A short one."}])

    assert "left out: pairs/: records are preference pairs" in cli.out("try", "good", "pairs")
    [left_out] = cli.json("try", "good", "pairs")["left_out"]
    assert left_out.startswith("pairs/: records are preference pairs")
