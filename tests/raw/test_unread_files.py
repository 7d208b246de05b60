"""Files that no reader takes, or that are not read whole: counted and named everywhere."""

import gzip
import zipfile
from types import SimpleNamespace

import dagster as dg
import msgspec
from builders import Build, open_corpus, write_corpus
from every_stage import run_stage
from input_files import jsonl, zst
from prelude import Any, Path, json, pl, pytest

from assets.raw.asset import STAGE as RAW
from assets.raw.asset import warn_of_unread
from assets.raw.places.patch_files import add_patches
from assets.raw.readers.input_record import Patch, shown_digest
from assets.raw.unread_files import unread_members
from pipeline_defs.commands.main import main

SENTENCE = "9 of 10 files that `where` matches are not read: input/mixed/f0.pdf (no reader for its"


@pytest.fixture
def mixed_folder(tmp_path: Path) -> Any:
    """A corpus with a source of ten files, one of which is read."""
    config = write_corpus(tmp_path)
    folder = tmp_path / "input/mixed"
    folder.mkdir()
    for number in range(9):
        (folder / f"f{number}.pdf").write_bytes(b"%PDF-1.7")
    (folder / "read.jsonl.zstd").write_bytes(zst(jsonl("the only one")))
    settings = msgspec.yaml.decode(config.read_bytes())
    settings["sources"][1]["where"] = "input/mixed"
    config.write_bytes(msgspec.yaml.encode(settings))
    return open_corpus(config)


def metadata_of(result: Any, partition: str) -> Any:
    events = result.asset_materializations_for_node("raw")
    return next(event for event in events if event.partition == partition).metadata


def test_files_that_no_reader_takes_are_named_and_stop_nothing(
    mixed_folder: Any, dagster_build: Build, capfd: pytest.CaptureFixture[str]
) -> None:
    result = dagster_build(mixed_folder, "raw")

    [check] = [each for each in result.get_asset_check_evaluations() if each.check_name == CHECK]
    assert result.success and not check.passed and not check.blocking
    assert check.severity == dg.AssetCheckSeverity.WARN
    assert SENTENCE in check.description and "input/mixed/f8.pdf" in check.description
    assert "WARNING" in (log := capfd.readouterr().err) and SENTENCE in log
    assert metadata_of(result, "notes")["files_left_out"].value == 9
    assert SENTENCE in metadata_of(result, "notes")["unread"].value
    assert metadata_of(result, "prose")["files_left_out"].value == 0
    about = mixed_folder.store.newest("raw", "notes").provenance
    assert about["num_left_out"] == len(about["left_out"]) == 9
    assert "left_out" not in mixed_folder.store.newest("raw", "prose").provenance


CHECK = "inputs_read"


def test_a_source_that_is_read_whole_passes(tmp_path: Path, dagster_build: Build) -> None:
    result = dagster_build(open_corpus(write_corpus(tmp_path)), "raw")

    assert all(each.passed for each in result.get_asset_check_evaluations())


def test_many_files_are_counted_and_twenty_are_named(mixed_folder: Any, build: Build) -> None:
    for number in range(100):
        (mixed_folder.config.parent / f"input/mixed/more{number}").write_bytes(b"")

    build(mixed_folder, "raw")

    manifest = mixed_folder.store.newest("raw", "notes")
    assert manifest.provenance["num_left_out"] == 109
    assert len(manifest.provenance["left_out"]) == 20


def test_a_file_that_is_not_read_whole_is_named(mixed_folder: Any, dagster_build: Build) -> None:
    folder = mixed_folder.config.parent / "input/mixed"
    (folder / "wrong.jsonl").write_bytes(jsonl("a").decode().encode("utf-16"))
    (folder / "cut.jsonl.gz").write_bytes(gzip.compress(jsonl("b", "c"))[:-2])

    result = dagster_build(mixed_folder, "raw")

    [check] = [each for each in result.get_asset_check_evaluations() if each.check_name == CHECK]
    named = "2 of 3 files could not be read whole: input/mixed/cut.jsonl.gz (2 damaged rows), "
    assert named + "input/mixed/wrong.jsonl." in check.description


def test_members_that_no_reader_takes_are_named_and_counted_by_archive(tmp_path: Path) -> None:
    corpus = open_corpus(write_corpus(tmp_path))
    names = ["a.txt", "b.pdf", *(f"{number}.rst" for number in range(8)), ".c"]
    with zipfile.ZipFile(tmp_path / "input/notes/z.zip", "w") as archive:
        for name in names:
            archive.writestr(name, "a text")

    run_stage(corpus, RAW)

    manifest = corpus.store.newest(RAW, "notes")
    [line] = warn_of_unread(corpus, manifest).warnings
    assert line.startswith(
        "notes: 9 members of archives are not read: input/notes/z.zip: 0.rst (other_member), "
    )
    assert "b.pdf (other_member) and 4 more. Unpack the archives" in line
    counts = [part.stats.numbers.containers for part in manifest.parts]
    assert {"input/notes/z.zip": {"documents": 1, "other_member": 10}} in counts


def test_records_of_warc_files_are_not_called_members_of_archives() -> None:
    unread = {"a.warc: ": "request_record", "b.warc: ": "http_status"}
    part = SimpleNamespace(stats=SimpleNamespace(numbers=SimpleNamespace(unread_members=unread)))
    of_all = SimpleNamespace(numbers=SimpleNamespace(num_unread_members=57))
    manifest: Any = SimpleNamespace(partition="web", parts=[part], stats=of_all)

    [line] = unread_members(manifest)

    assert line.startswith("web: 57 records of WARC files are left out: ")
    assert "(http_status) and 55 more. They hold no page" in line and "Unpack" not in line


def test_summary_says_what_is_not_read(
    mixed_folder: Any,
    build: Build,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(mixed_folder.config))
    build(mixed_folder, "raw")
    capsys.readouterr()

    assert main(["summary"]) == 0
    assert f"notes: {SENTENCE}" in capsys.readouterr().out
    assert main(["summary", "--json"]) == 0
    assert SENTENCE in json.loads(capsys.readouterr().out)["unread"][0]


def test_a_patch_follows_its_record_and_one_that_cannot_is_named(tmp_path: Path) -> None:
    corpus = open_corpus(write_corpus(tmp_path, part_bytes=4096))
    lines = [*jsonl(*[f"{'word ' * 40}{n}" for n in range(50)]).splitlines(True)]
    lines[20:21] = [b"oops\n"]
    path = tmp_path / "input/prose/z.jsonl"
    path.write_bytes(b"".join(lines))
    row = len(b"".join(lines[:20]))
    name = "input/prose/z.jsonl"
    add_patches(corpus, "prose", [Patch(name, row, shown_digest(b"oops"), '{"text":"mended"}')])

    def build() -> tuple[bool, list[str]]:
        run_stage(corpus, RAW)
        manifest = corpus.store.newest(RAW, "prose")
        paths = [corpus.store.file_of(manifest, part.file("documents")) for part in manifest.parts]
        texts = pl.concat([pl.read_parquet(each.checked()) for each in paths])["text"]
        return "mended" in texts.to_list(), warn_of_unread(corpus, manifest).warnings

    assert build() == (True, [])
    path.write_bytes(b"".join([*lines[:2], *lines]))  # a place behind, in the same slice
    assert build() == (True, [])
    path.write_bytes(b"".join(line for line in lines if line != b"oops\n"))
    is_there, [said] = build()
    assert not is_there
    assert f"prose: 1 of 1 patches replace no record: {name}, row {row:,}".replace(",", "") in (
        said.replace(",", "")
    )
