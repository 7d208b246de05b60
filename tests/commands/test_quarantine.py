"""`corpus quarantine`: what could not be read, and its replay after a fix."""

import shutil

import yaml
from builders import Build, hashes, open_corpus, sentence, write_corpus, write_jsonl
from prelude import Any, Path, json, pl, pytest
from verbs import Cli

from assets.raw.places.patch_files import add_patches, patch_paths, read_patches
from assets.raw.readers.input_record import Patch
from pipeline_defs.commands.main import main

GOOD = [json.dumps({"text": sentence(i, 20 + i % 5)}) for i in range(40)]
CUT = '{"text": "cut'
NO_TEXT = '{"body": "%s"}' % sentence(90)  # noqa: UP031 - a line of JSON
EVIL = '{"text": 1, "name": "\x1b[2J[red]"}'


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, build: Build) -> Path:
    """The raw documents of a corpus with three bad lines in a file of many parts."""
    folder = tmp_path_factory.mktemp("built")
    config = write_corpus(folder, part_bytes=2048, engine={"kind": "in_process"})
    lines = [*GOOD[:5], CUT, *GOOD[5:35], NO_TEXT, *GOOD[35:], EVIL]
    write_jsonl(folder / "input/prose/bad.jsonl", lines)
    with pytest.MonkeyPatch.context() as patch:
        (folder / "home").mkdir()
        patch.setenv("DAGSTER_HOME", str(folder / "home"))
        build(open_corpus(config), "raw")
    return folder


@pytest.fixture
def corpus(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A copy of the corpus."""
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    config = tmp_path / "pipeline.yaml"
    monkeypatch.setenv("TOKENMILL_CONFIG", str(config))
    return open_corpus(config)


def table(corpus: Any, kind: str = "documents") -> pl.DataFrame:
    """A table of the source."""
    manifest = corpus.store.newest("raw", "prose")
    files = [file for part in manifest.parts if (file := part.file(kind))]
    return pl.concat([pl.read_parquet(corpus.store.file_of(manifest, f).checked()) for f in files])


def fingerprints(corpus: Any, stage: str) -> dict[str, str]:
    """Fingerprints of the source's parts, by name."""
    return {part.name: part.fingerprint for part in corpus.store.newest(stage, "prose").parts}


def bad_records(corpus: Any) -> pl.DataFrame:
    """The quarantine of the file, sorted by row."""
    records = table(corpus, "quarantine")
    return records.sort(pl.col("position").str.slice(5).cast(pl.Int64))


def write_patches(folder: Path, *patches: tuple[str, Any]) -> Path:
    """A file of patches for positions of the file."""
    file = "input/prose/bad.jsonl"
    lines = [{"file": file, "position": place, "record": record} for place, record in patches]
    return write_jsonl(folder / "patched.jsonl", lines)


def test_list_counts_by_file_and_error_with_next_steps(corpus: Any, cli: Cli) -> None:
    counts = cli.json("quarantine", "list")

    assert [(each["source"], each["file"], each["records"]) for each in counts] == [
        ("prose", "input/prose/bad.jsonl", 1)
    ] * 3
    assert all(each["next_step"] for each in counts)


def test_before_a_build_nothing_is_in_quarantine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(write_corpus(tmp_path)))

    assert cli.out("quarantine", "list") == "No record is in quarantine.\n"


def test_list_and_show_escape_what_records_hold(corpus: Any, cli: Cli) -> None:
    shown = cli.out("quarantine", "list")
    shown += cli.out("quarantine", "show", "prose", "--file", "input/prose/bad.jsonl")

    assert "\x1b" not in shown
    assert "\\x1b[2J[red]" in shown
    assert "line: 6" in shown
    assert "3 of 3 records in quarantine" in shown


def test_an_unknown_source_or_file_is_named(corpus: Any, cli: Cli) -> None:
    assert "did you mean prose?" in cli.err(2, "quarantine", "show", "pros")
    shown = cli.err(2, "quarantine", "show", "prose", "--file", "input/prose/bat.jsonl")
    assert "did you mean input/prose/bad.jsonl?" in shown


def test_patched_records_are_added_once_and_nothing_else_changes(
    corpus: Any, tmp_path: Path, build: Build, cli: Cli
) -> None:
    before, bad = table(corpus), bad_records(corpus)
    parts = {part.fingerprint for part in corpus.store.newest("raw", "prose").parts}
    file = write_patches(
        tmp_path,
        (bad["position"][0], {"text": sentence(91)}),
        (bad["position"][2], {"body": "no text"}),
    )

    shown = cli.out("quarantine", "replay", "prose", "--patched", str(file))

    assert "2 patches added" in shown
    assert "1 of 3 records are no more in quarantine" in shown
    after = table(corpus)
    added = after.join(before, on="doc_id", how="anti")
    assert added["text"].to_list() == [sentence(91)]
    assert added["origin"].struct.field("row").to_list() == [int(bad["position"][0][5:])]
    assert before.join(after, on=["doc_id", "text", "meta"], how="anti").is_empty()
    assert "fields: body" in bad_records(corpus)["error"][1]
    now = {part.fingerprint for part in corpus.store.newest("raw", "prose").parts}
    assert len(parts - now) == 2 < len(parts)  # the parts of both records

    state = hashes(corpus.store.root / "raw")
    shown = cli.out("quarantine", "replay", "prose", "--patched", str(file))
    assert "0 patches added, 2 in all" in shown
    assert hashes(corpus.store.root / "raw") == state


def test_a_build_from_nothing_with_the_same_patches_gives_the_same_bytes(
    corpus: Any, tmp_path: Path, build: Build
) -> None:
    file = write_patches(tmp_path, (bad_records(corpus)["position"][0], {"text": sentence(91)}))
    assert main(["quarantine", "replay", "prose", "--patched", str(file)]) == 0
    again = open_corpus(corpus.config, tmp_path / "again")
    patches = "_patches/prose/00000001.json"
    (again.store.root / patches).parent.mkdir(parents=True)
    (again.store.root / patches).write_bytes((corpus.store.root / patches).read_bytes())

    build(again, "raw")

    parts = [corpus.store.newest("raw", "prose").parts for corpus in (corpus, again)]
    assert parts[0] == parts[1]


def test_a_patch_that_is_bad_itself_can_be_patched(corpus: Any, tmp_path: Path) -> None:
    place = bad_records(corpus)["position"][0]
    for record in ({"text": None}, {"text": sentence(92)}):
        file = write_patches(tmp_path, (place, record))
        assert main(["quarantine", "replay", "prose", "--patched", str(file)]) == 0

    assert sentence(92) in table(corpus)["text"].to_list()
    assert bad_records(corpus).height == 2


def test_a_takedown_removes_the_record_from_its_patch_and_the_proof_finds_one_that_comes_back(
    corpus: Any, tmp_path: Path, build: Build, cli: Cli
) -> None:
    bad, secret = bad_records(corpus), f'"{sentence(91)}"\nsays {sentence(92)}'
    patches = write_patches(tmp_path, (bad["position"][0], {"text": secret}))
    assert main(["quarantine", "replay", "prose", "--patched", str(patches)]) == 0
    [doc_id] = table(corpus).filter(text=secret)["doc_id"]
    [path] = corpus.store.root.glob("_patches/prose/*")
    from_backup = path.read_bytes()

    said = cli.out("takedown", "--doc", doc_id, "--reason", "asked for")

    assert "gone from 1 files of patches" in said
    assert sentence(92).encode() not in path.read_bytes()
    build(corpus, "raw")
    assert bad_records(corpus).height == 2, "nor does the record that it replaces come back"
    assert main(["takedown", "prove", "--purge"]) == 0
    assert sentence(92).encode() not in b"".join(
        each.read_bytes() for each in corpus.store.root.glob("_*/**/*.json")
    )

    later = write_patches(tmp_path, (bad["position"][2], {"text": secret}))
    said = cli.err(2, "quarantine", "replay", "prose", "--patched", str(later))
    assert "a takedown means this record" in said
    (path.parent / "00000002.json").write_bytes(from_backup)
    said = cli.out("takedown", "prove", code=1)
    assert "_patches/prose/00000002.json: --purge removes the record from the patch" in said
    assert "1 states and files hold" in said
    assert main(["takedown", "prove", "--purge"]) == 0
    build(corpus, "raw")
    assert main(["takedown", "prove"]) == 0


def test_a_file_that_a_killed_replay_left_is_no_patch(corpus: Any) -> None:
    folder = corpus.store.root / "_patches/prose"
    folder.mkdir(parents=True)
    (folder / ".tmp-1-00000001.json").write_bytes(b"half")
    assert read_patches(corpus, "prose") == []

    add_patches(corpus, "prose", [Patch("a.jsonl", 0, "", "{}")])

    assert [path.name for path in patch_paths(corpus.store.root)] == ["00000001.json"]


def test_a_patch_never_meets_another_record_at_the_same_place(
    corpus: Any, tmp_path: Path, build: Build
) -> None:
    place = bad_records(corpus)["position"][0]
    file = write_patches(tmp_path, (place, {"text": sentence(91)}))
    assert main(["quarantine", "replay", "prose", "--patched", str(file)]) == 0
    bad = tmp_path / "input/prose/bad.jsonl"
    bad.write_text(bad.read_text().replace(CUT, '{"text": "cat'))

    build(corpus, "raw")

    assert sentence(91) not in table(corpus)["text"].to_list()
    assert bad_records(corpus)["raw"][0] == b'{"text": "cat'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"file": "input/prose/bad.jsonl", "position": "byte 0", "record": {}}, "no other record"),
        ({"file": "input/prose/a.jsonl", "position": "byte", "record": {}}, "no other record"),
        ({"file": "input/prose/bad.jsonl", "record": {}}, "missing required field `position`"),
        ("{", "truncated"),
    ],
)
def test_a_patch_that_replaces_nothing_is_refused(
    line: Any, message: str, corpus: Any, tmp_path: Path, cli: Cli
) -> None:
    file = write_jsonl(tmp_path / "patched.jsonl", [line])

    assert message in cli.err(2, "quarantine", "replay", "prose", "--patched", str(file))
    assert not (corpus.store.root / "_patches").exists()


def test_replay_after_another_option_or_a_corrected_file_tells_what_came_back(
    corpus: Any, tmp_path: Path, cli: Cli
) -> None:
    before = table(corpus)
    bad = tmp_path / "input/prose/bad.jsonl"
    bad.write_text(bad.read_text().replace(CUT, CUT + '"}'))

    shown = cli.out("quarantine", "replay", "prose")

    assert "still there: input/prose/bad.jsonl" in shown
    assert "cut" in table(corpus)["text"].to_list()
    assert table(corpus).height == before.height + 1


def test_later_stages_take_the_replayed_records_alone(
    corpus: Any, tmp_path: Path, build: Build
) -> None:
    stages = ("filtered", "signatures", "band_index")
    build(corpus, *stages)
    kept = fingerprints(corpus, "signatures")
    file = write_patches(tmp_path, (bad_records(corpus)["position"][0], {"text": sentence(91)}))
    assert main(["quarantine", "replay", "prose", "--patched", str(file)]) == 0

    build(corpus, *stages)

    now = fingerprints(corpus, "signatures")
    [changed] = [name for name in kept if kept[name] != now[name]]
    ledger = corpus.store.newest("band_index", "all").provenance["ledger"]
    later = [part["part"] for part in ledger if len(part["generations"]) > 1]
    assert later == [changed]


def test_a_source_with_too_many_bad_records_stops_alone_and_keeps_what_was_read(
    corpus: Any, tmp_path: Path, build: Build, dagster_build: Build
) -> None:
    config = yaml.safe_load(corpus.config.read_text())
    config["sources"][0]["max_bad_share"] = 0.01
    corpus.config.write_text(yaml.safe_dump(config))
    strict = open_corpus(corpus.config)

    result = dagster_build(strict, "raw", "filtered", raise_on_error=False)

    checks = {
        (each.asset_key.to_user_string(), each.check_name): each
        for each in result.get_asset_check_evaluations()
    }
    refused = checks["raw", "few_bad_records"]
    assert not refused.passed
    assert "3 of " in str(refused.description)
    assert "above max_bad_share 1.0%" in str(refused.description)
    assert set(checks["raw", "sources_complete"].metadata["failed"].value) == {"prose"}
    assert strict.store.newest("raw", "prose").stats.quarantined == 3
    assert strict.store.newest_or_none("filtered", "prose") is None
    assert strict.store.newest("filtered", "notes").stats.rows_in == 41

    config["sources"][0]["max_bad_share"] = 0.5
    corpus.config.write_text(yaml.safe_dump(config))
    build(open_corpus(corpus.config), "raw", "filtered")
    assert strict.store.newest("filtered", "prose").stats.rows_in == 80
