"""`corpus push iceberg` names published files in tables, which other readers read as they are."""

from builders import Build, hashes, open_corpus, records, sentence, write_corpus, write_jsonl
from faults.crash_points import try_in_a_process
from prelude import Any, Path, assert_frame_equal, json, pl, pytest, re
from s3_server import s3_bucket
from verbs import Cli

from pipeline_defs.commands.share.pushed_files import STAGES, corpus_files
from pipeline_defs.load_corpus import load_corpus

iceberg = pytest.importorskip("pyiceberg.table")
PAGE = (Path(__file__).parents[2] / "docs/push.md").read_text()
WHAT = {"decisions": "decisions", "shards": "shards", "deduped_copy": "documents"}


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Build) -> Any:
    """The small corpus with Parquet shards, built, in which most removed rows stay in the files."""
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    shards = {"target_bytes": 4096, "formats": ["megatron", "parquet"], "rewrite_share": 0.5}
    config = write_corpus(tmp_path, shards=shards, part_bytes=2048)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(config))
    corpus = open_corpus(config)
    build(corpus)
    return corpus


def another_night(corpus: Any, build: Build) -> None:
    """Two documents go and two come."""
    path = corpus.config.parent / "input/prose/a.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    write_jsonl(path, rows[:-2] + records(sentence(900), sentence(901)))
    build(open_corpus(corpus.config))


def table(corpus: Any, name: str, source: str = "prose") -> Any:
    return iceberg.StaticTable.from_metadata(str(corpus.store.root / f"iceberg-{name}" / source))


def rows(corpus: Any, name: str, state: str = "main") -> pl.DataFrame:
    """Read a table with Polars' own reader, which must read what pyiceberg reads."""
    found = table(corpus, name)
    snapshot = found.snapshot_by_name(state).snapshot_id
    read = pl.scan_iceberg(found, snapshot_id=snapshot, reader_override="native").collect()
    assert_frame_equal(pl.from_arrow(found.scan(snapshot_id=snapshot).to_arrow()), read)
    return read


def published(corpus: Any, name: str) -> pl.DataFrame:
    """Return the rows of the newest state, as `corpus push hf://` sends them."""
    what = WHAT[name]
    manifest = corpus.store.newest(STAGES[what], "prose")
    return pl.concat(each.read() for each in corpus_files(corpus.store, what, [manifest]))


def push(cli: Cli) -> None:
    cli.out("push", "iceberg")
    cli.out("push", "iceberg", "--what", "documents")


def test_every_state_is_read_back_as_it_was(
    built: Any, cli: Cli, build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(cli)
    cli.out("states", "tag", "v1")
    first = {name: published(built, name) for name in WHAT}
    filtered = rows(built, "filtered")
    another_night(built, build)
    assert built.store.newest("sharded", "prose").stats.numbers["removed_rows"]
    push(cli)
    for name in WHAT:
        now = published(built, name)
        assert not now.equals(first[name])
        assert_frame_equal(rows(built, name), now, check_dtypes=False, check_row_order=False)
        assert_frame_equal(rows(built, name, "v1"), first[name], check_dtypes=False)
        assert rows(built, name, "state-1").equals(rows(built, name, "v1"))
    assert rows(built, "filtered", "v1").equals(filtered)
    (tmp_path / "corpus_store/iceberg-filtered").mkdir(parents=True)
    shown = tmp_path / "corpus_store/iceberg-filtered/web"
    shown.symlink_to(built.store.root / "iceberg-filtered/prose")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(PAGE.partition("```python")[2].partition("```")[0], names)
    assert names["then"].collect().equals(filtered)
    folder = built.store.root / "iceberg-shards"
    before = hashes(folder)
    push(cli)
    assert hashes(folder) == before


def test_half_a_night_is_in_no_table(built: Any, cli: Cli, build: Build, tmp_path: Path) -> None:
    push(cli)
    before = {name: rows(built, name) for name in WHAT}
    write_jsonl(tmp_path / "input/prose/night.jsonl", records(sentence(950), sentence(951)))
    build(open_corpus(built.config), "raw", "filtered")
    assert "without newer filtered of prose, raw of prose" in cli.err(0, "push", "iceberg")
    for name in WHAT:
        assert_frame_equal(rows(built, name), before[name])
        assert len(table(built, name).snapshots()) == 1
    build(open_corpus(built.config))
    push(cli)
    assert rows(built, "decisions").height == before["decisions"].height + 2


@pytest.mark.parametrize("victim", ["data/*.parquet", "metadata/*-files.avro", "metadata/v*.json"])
def test_a_damaged_file_is_named_and_written_again(
    built: Any, cli: Cli, build: Build, victim: str
) -> None:
    push(cli)
    another_night(built, build)
    push(cli)
    path = next((built.store.root / "iceberg-deduped_copy/prose").glob(victim))
    first, now = (rows(built, "deduped_copy", f"state-{number}") for number in (1, 2))
    whole = path.read_bytes()
    path.write_bytes(whole[:-40] + bytes([whole[-40] ^ 1]) + whole[-39:])
    assert f"{path}: sha256" in cli.out("verify", code=1)
    push(cli)
    cli.out("verify")
    assert rows(built, "deduped_copy").equals(now)
    if "json" not in victim:  # which may not be read any more
        assert rows(built, "deduped_copy", "state-1").equals(first)


def test_tables_of_earlier_versions_get_digests(built: Any, cli: Cli, build: Build) -> None:
    push(cli)
    another_night(built, build)
    before = rows(built, "deduped_copy", "state-1")
    for path in built.store.root.glob("iceberg-*/*/digests.json"):
        path.unlink()
    push(cli)
    cli.out("verify")
    assert rows(built, "deduped_copy", "state-1").equals(before)
    assert rows(built, "deduped_copy").equals(rows(built, "deduped_copy", "state-2"))


def test_snapshots_go_with_their_states(built: Any, cli: Cli, build: Build) -> None:
    push(cli)
    another_night(built, build)
    push(cli)
    folder = built.store.root / "iceberg-deduped_copy/prose/data"
    assert len(table(built, "deduped_copy").metadata.snapshots) == 2
    copies = {*folder.iterdir()}
    cli.out("states", "gc", "--keep", "1", "--delete")
    for name in ("filtered", *WHAT):
        assert [*table(built, name).metadata.refs] == ["state-2", "main"]
        assert rows(built, name).height
        lists = (built.store.root / f"iceberg-{name}/prose/metadata").glob("*-files.avro")
        assert len([*lists]) == 1
    assert {*folder.iterdir()} < copies


def test_a_takedown_removes_tables_until_a_build_and_a_push(
    built: Any, cli: Cli, build: Build
) -> None:
    push(cli)
    document = rows(built, "deduped_copy")["doc_id"][0]
    there = built.store.root / "iceberg-deduped_copy/prose"
    copy = next(
        path for path in there.rglob("*.parquet") if document in pl.read_parquet(path)["doc_id"]
    )
    content = copy.read_bytes()
    cli.out("takedown", "--doc", document, "--reason", "asked")
    assert not [path for path in there.rglob("*") if path.is_file()]
    assert table(built, "deduped_copy", "notes").scan().to_arrow().num_rows
    assert "has documents of takedown 1 (asked)" in cli.err(1, "push", "iceberg")
    build(open_corpus(built.config))
    push(cli)
    for name in ("filtered", *WHAT):
        [_snapshot] = table(built, name).metadata.snapshots
        assert document not in str(rows(built, name).rows())
    copy.write_bytes(content)  # of a push that was under way
    assert "iceberg-deduped_copy[prose]" in cli.out("takedown", "prove", code=1)
    assert cli.out("takedown", "prove", "--purge") and not copy.exists()


def test_tables_in_an_object_store_name_its_urls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Build, cli: Cli
) -> None:
    with s3_bucket(monkeypatch) as endpoint:
        scratch = {"folder": str(tmp_path / "scratch")}
        config = write_corpus(tmp_path, store="s3://corpora/lake", scratch=scratch)
        monkeypatch.setenv("TOKENMILL_CONFIG", str(config))
        build(load_corpus())
        build(load_corpus(), "mixed")
        cli.out("push", "iceberg")
        folder = "s3://corpora/lake/iceberg-filtered/prose"
        keys = {"s3.access-key-id": "testing", "s3.secret-access-key": "testing"}
        found = iceberg.StaticTable.from_metadata(folder, {"s3.endpoint": endpoint, **keys})
        stats = load_corpus().store.newest("filtered", "prose").stats
        files = [each.file.file_path for each in found.scan().plan_files()]
        assert all(file.startswith("s3://corpora/lake/filtered/prose/") for file in files)
        assert found.scan().to_arrow().num_rows == stats.rows_kept > 0


def test_a_push_that_is_ended_anywhere_and_given_again_leaves_the_same_tables() -> None:
    table = try_in_a_process("--points", "6", "--only", "push iceberg")
    assert re.search(r"push iceberg +\d+ +6 +0\n", table)
