"""`corpus push` sends what is new to a dataset of a hub, once, and nothing that is forbidden."""

import io
import shutil
import signal
import subprocess
from functools import partial
from importlib.util import find_spec

import dagster as dg
import pyarrow.parquet as pq
import yaml
from builders import Build, deduped, open_corpus, records, sentence, write_corpus, write_jsonl
from command_line import LONGEST_SECONDS, start
from hub_server import Hub, Repository, hub_server
from prelude import (
    Any,
    Iterator,
    Path,
    assert_frame_equal,
    hashlib,
    json,
    os,
    pl,
    pytest,
    re,
    sys,
)
from verbs import Cli

from assets.mixed.phase_source_files import removed_of
from assets.raw.places.find_inputs import find_inputs
from assets.raw.raw_records import DOCUMENT_COLUMNS
from pipeline_defs.commands.main import main
from pipeline_defs.commands.share.pushed_files import as_parquet
from pipeline_defs.definitions import build_defs
from resources.settings.full_source import Source

TARGET = "hf://acme/corpus"
# of huggingface_hub, in its call of httpx2
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
COLUMNS = [name for name in DOCUMENT_COLUMNS if name != "origin"]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub without repositories."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    with hub_server(monkeypatch) as found:
        yield found


def written(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    prose: str | None = "CC0-1.0",
    notes: str | None = "CC0-1.0",
    **changes: Any,
) -> Any:
    """The small corpus with licences, not built."""
    licences = {"prose": prose, "notes": notes}
    sources = [
        {"name": n, "where": f"input/{n}/*", "license": each} for n, each in licences.items()
    ]
    config = write_corpus(folder, sources=sources, part_bytes=2048, **changes)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(config))
    return open_corpus(config)


def with_a_rule_for_prose(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The small corpus whose sources have different columns in their decisions, not built."""
    path = written(folder, monkeypatch).config
    config = yaml.safe_load(path.read_text())
    config["sources"][0]["filters"] = {"rules": {"profanity": {}}}
    path.write_text(yaml.safe_dump(config))
    return open_corpus(path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, build: Build) -> Path:
    """The folder of the small corpus, built once."""
    with pytest.MonkeyPatch.context() as patch:
        corpus = written(tmp_path_factory.mktemp("made"), patch)
        build(corpus)
    return Path(corpus.config.parent)


@pytest.fixture
def built(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A copy of the small corpus, built."""
    config = shutil.copytree(made, tmp_path / "corpus") / "pipeline.yaml"
    monkeypatch.setenv("TOKENMILL_CONFIG", str(config))
    return open_corpus(config)


def repository(hub: Hub) -> Repository:
    return hub.repositories["acme/corpus"]


def pushed(hub: Hub) -> dict[str, bytes]:
    """Return the Parquet files of the newest commit."""
    found = repository(hub)
    files = found.commits[found.branches["main"]]
    return {path: files[path] for path in sorted(files) if path.endswith(".parquet")}


def rows(hub: Hub, folder: str) -> pl.DataFrame:
    files = [content for path, content in pushed(hub).items() if path.startswith(folder)]
    return pl.concat(pl.read_parquet(io.BytesIO(each)) for each in files)


def kept(corpus: Any, source: str) -> pl.DataFrame:
    return pl.concat(deduped(corpus, source, *COLUMNS)).sort("doc_id")


def test_documents_are_read_back_as_they_are(
    hub: Hub, built: Any, cli: Cli, tmp_path: Path
) -> None:
    said = cli.out("push", TARGET)
    for source in ("prose", "notes"):
        assert rows(hub, f"data/{source}/").sort("doc_id").equals(kept(built, source))
    for content in pushed(hub).values():
        metadata = pq.ParquetFile(io.BytesIO(content)).metadata
        assert metadata.row_group(0).column(0).has_offset_index
        assert pq.read_table(io.BytesIO(content)).schema.field("text").type == "string"
    texts = repository(hub).commits[repository(hub).branches["main"]]
    described = json.loads(texts["croissant.json"])["distribution"]
    digests = {path: hashlib.sha256(content).hexdigest() for path, content in pushed(hub).items()}
    assert {each["contentUrl"]: each["sha256"] for each in described} == digests
    [tag] = repository(hub).tags
    assert tag in said and repository(hub).messages[0] == "private"
    for config, names in ((None, {"prose", "notes"}), ("prose", {"prose"})):
        back = Source.model_validate({"name": "back", "where": TARGET, "config": config})
        files = find_inputs(back, tmp_path, tmp_path / "downloads").files
        assert {file.name.split("/")[5] for file in files} == names


@pytest.mark.peers
def test_other_readers_find_splits_and_configurations(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Build, cli: Cli
) -> None:
    if find_spec("datasets") is None and os.environ.get("TOKENMILL_PEERS") != "1":
        pytest.skip("datasets is not installed")
    corpus = with_a_rule_for_prose(tmp_path, monkeypatch)
    build(corpus)
    cli.out("push", TARGET)
    cli.out("push", f"{TARGET}-decisions", "--what", "decisions")
    script = "import datasets, sys; found = datasets.load_dataset(*sys.argv[1:])"
    script += "; print([*found], found['train'].num_rows, found['train'][0])"
    notes, both = kept(corpus, "notes").height, corpus.settings.source_names()
    all_read = sum(corpus.store.newest("filtered", name).stats.rows_in for name in both)
    for words, number in (
        (("acme/corpus",), notes + kept(corpus, "prose").height),
        (("acme/corpus", "notes"), notes),
        (("acme/corpus-decisions",), all_read),
    ):
        command = [sys.executable, "-c", script, *words]
        done = subprocess.run(command, env=os.environ, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        assert done.stdout.startswith(f"['train'] {number} ")


def test_shards_and_decisions_go_to_repositories_of_their_own(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Build, cli: Cli
) -> None:
    shards = {"target_bytes": 4096, "rewrite_share": 1}
    corpus = written(tmp_path, monkeypatch, shards=shards)
    build(corpus)
    (tmp_path / "input/prose/b.jsonl").unlink()
    build(corpus)
    cli.out("push", TARGET, "--what", "shards")
    manifest = corpus.store.newest("sharded", "prose")
    removed = removed_of(manifest).values()
    sent = rows(hub, "data/prose/")
    assert removed and sent.height == manifest.stats.rows_kept - sum(each.rows for each in removed)
    assert sent["num_tokens"].sum() == manifest.stats.tokens - sum(each.tokens for each in removed)
    assert "holds shards. Push decisions to" in cli.err(2, "push", TARGET, "--what", "decisions")
    cli.out("push", f"{TARGET}-decisions", "--what", "decisions", "--source", "notes")
    files = hub.repositories["acme/corpus-decisions"]
    tables = [c for p, c in files.commits[files.branches["main"]].items() if ".parquet" in p]
    assert sum(pl.read_parquet(io.BytesIO(each), columns=["kept"]).height for each in tables) == 41


def test_decisions_of_all_sources_have_the_same_columns(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Build, cli: Cli
) -> None:
    corpus = with_a_rule_for_prose(tmp_path, monkeypatch)
    build(corpus)
    own = {}
    for name in ("prose", "notes"):
        manifest = corpus.store.newest("filtered", name)
        own[name] = [
            pl.read_parquet(path)
            for path in corpus.store.checked_files(manifest, manifest.parts, "decisions")
        ]
    added = {*own["prose"][0].columns} - {*own["notes"][0].columns}
    assert added

    cli.out("push", TARGET, "--what", "decisions", "--source", "notes")
    same = partial(assert_frame_equal, check_row_order=False)
    same(rows(hub, "data/"), pl.concat(own["notes"]))
    said = cli.out("push", TARGET, "--what", "decisions")

    tables = [pl.read_parquet(io.BytesIO(each)) for each in pushed(hub).values()]
    assert len({tuple(each.schema.items()) for each in tables}) == 1
    sent = rows(hub, "data/notes/")
    same(sent.select(own["notes"][0].columns), pl.concat(own["notes"]))
    assert all(sent[name].is_null().all() for name in added)
    columns = ["doc_id", *added]
    same(rows(hub, "data/prose/").select(columns), pl.concat(own["prose"]).select(columns))
    found = repository(hub)
    card = found.commits[found.branches["main"]]["README.md"].decode()
    num_lines = sum("UNKNOWN" in line for line in card.splitlines())
    assert num_lines and f"README.md has {num_lines} lines with UNKNOWN" in said
    assert "n<1K" in card


def test_a_password_of_the_address_of_the_hub_is_shown_nowhere(
    built: Any, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://somebody:secret@127.0.0.1:9")
    said = cli.err(1, "push", TARGET)
    assert "acme/corpus at http://127.0.0.1:9: " in said and "secret" not in said


def test_a_revision_sends_what_is_new_and_the_same_state_nothing(
    hub: Hub, built: Any, cli: Cli, build: Build
) -> None:
    forecast = cli.out("push", TARGET, "--dry-run")
    assert "acme/corpus" not in hub.repositories
    said = cli.out("push", TARGET)
    first, sent = pushed(hub), sum(hub.sent)
    sizes = f"{len(first):,} files"
    assert f"{sizes} of {sent:,} bytes. New: {sizes}, {sent:,} bytes" in said
    assert forecast.splitlines()[0] == said.splitlines()[0]
    assert "Nothing was sent." in cli.out("push", TARGET)
    assert sum(hub.sent) == sent and len(repository(hub).tags) == 1

    write_jsonl(built.config.parent / "input/prose/c.jsonl", records(sentence(900), sentence(901)))
    (built.config.parent / "input/prose/b.jsonl").unlink()
    corpus = open_corpus(built.config)
    build(corpus)
    said = cli.out("push", TARGET)
    second = pushed(hub)
    new = {path for path in second if second[path] != first.get(path)}
    assert new and sum(hub.sent) - sent == sum(len(second[path]) for path in new)
    assert second.keys() - new, "a part that stays is not sent again"
    assert first.keys() - second.keys(), "a part that is gone is in no new revision"
    assert rows(hub, "data/prose/").sort("doc_id").equals(kept(corpus, "prose"))
    old, newest = repository(hub).tags.values()
    assert newest == repository(hub).branches["main"]
    earlier = repository(hub).commits[old]
    assert all(earlier[path] == content for path, content in first.items())


def test_a_push_that_is_killed_goes_on_and_sends_no_file_twice(
    hub: Hub, built: Any, cli: Cli
) -> None:
    process = list[subprocess.Popen[str]]()

    def kill() -> None:
        if len(hub.sent) >= 3:  # files are sent side by side: exactly 3 may never be seen
            process[0].kill()
            process[0].wait()

    hub.before_object = kill
    process.append(start(built.config, "pipeline_defs.commands.main", "push", TARGET))
    assert process[0].wait(LONGEST_SECONDS) == -signal.SIGKILL
    assert len(repository(hub).commits) == 1 and not repository(hub).tags
    there = len(hub.sent)
    hub.before_object = lambda: None
    cli.out("push", TARGET)
    assert there >= 3 and len(hub.sent) == len(pushed(hub))
    repository(hub).tags.clear()  # as if it was killed between the commit and its tag
    assert "Nothing was sent" in cli.out("push", TARGET)
    assert list(repository(hub).tags.values()) == [repository(hub).branches["main"]]
    assert len(repository(hub).commits) == 2


def test_a_licence_that_forbids_it_is_obeyed(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Build, cli: Cli
) -> None:
    build(written(tmp_path, monkeypatch, prose=None, notes="CC-BY-NC-ND-4.0"))
    refused = cli.err(2, "push", TARGET)
    assert (
        "prose: 32 documents without a licence; notes: 41 documents of the licence 'CC" in refused
    )
    config = yaml.safe_load((tmp_path / "pipeline.yaml").read_text())
    for prose, notes, message in (
        (True, None, "Not pushed: notes: 41 documents .* or push the others: --source prose\n"),
        (False, True, "Not pushed: prose: `redistribute: false`. .*--source notes\n"),
    ):
        config["sources"][0]["redistribute"] = prose
        config["sources"][1]["redistribute"] = notes
        (tmp_path / "pipeline.yaml").write_text(yaml.safe_dump(config))
        assert re.search(message, cli.err(2, "push", TARGET))
    assert not hub.repositories
    cli.out("push", TARGET, "--source", "notes")
    cli.out("push", f"{TARGET}-decisions", "--what", "decisions")


def test_what_was_taken_down_is_not_sent_and_earlier_revisions_are_named(
    hub: Hub, built: Any, cli: Cli, build: Build
) -> None:
    cli.out("push", TARGET, "--source", "notes")
    doc_id = kept(built, "prose")["doc_id"][0]
    requests = iter([["takedown", "--doc", doc_id, "--reason", "asked"]])  # while files are sent
    hub.before_object = lambda: [main(each) for each in requests]
    for _ in range(2):
        refused = cli.err(1, "push", TARGET)
        assert "raw[prose] has documents of takedown 1 (asked)" in refused
    assert not [*requests] and len(repository(hub).tags) == 1
    build(open_corpus(built.config))
    assert "Revisions before it may have documents" in cli.out("push", TARGET)
    assert doc_id not in rows(hub, "data/")["doc_id"]


def test_a_commit_names_its_manifests_and_the_runs_that_made_them(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    corpus = written(tmp_path, monkeypatch)
    with dg.DagsterInstance.get() as instance:
        job = build_defs(corpus).resolve_job_def("build_corpus")
        run = job.execute_in_process(instance=instance).run_id
    cli.out("push", TARGET, "--source", "notes")
    made = corpus.store.newest("deduped", "notes").fingerprint
    assert repository(hub).messages[-1].endswith(f"\n\ndeduped[notes] {made}, run {run}")
    card = repository(hub).commits[repository(hub).branches["main"]]["README.md"].decode()
    assert "| notes " in card and "prose" not in card


def test_an_error_says_what_to_do(hub: Hub, built: Any, cli: Cli) -> None:
    hub.add("acme/corpus", {"README.md": b"of others"})
    assert "no `corpus push` has written" in cli.err(2, "push", TARGET)
    assert "Write hf://owner/name" in cli.err(2, "push", f"{TARGET}/data")
    hub.add("acme/closed", {}, token="hf_other")
    assert "that HF_TOKEN may write" in cli.err(1, "push", "hf://acme/closed")
    hub.add("acme/shared", {".gitattributes": b""})
    shared = hub.repositories["acme/shared"]
    hub.before_object = lambda: shared.commit({"other.parquet": b""})
    assert "push again: what was sent is there" in cli.err(1, "push", "hf://acme/shared")
    assert not shared.tags, "`main` has moved"


def test_rows_that_come_in_between_change_the_pages_near_them() -> None:
    """A hub with Xet keeps chunks of bytes that it has: most of them are in both files."""
    texts = [sentence(number, 60) for number in range(8_000)]
    before = as_parquet(pl.DataFrame({"text": texts}))
    after = as_parquet(pl.DataFrame({"text": [*texts[:10], "a new text", *texts[10:]]}))
    assert as_parquet(pl.DataFrame({"text": texts})) == before
    probes = [before[at : at + 64] for at in range(0, len(before) - 64, len(before) // 100)]
    assert sum(probe in after for probe in probes) > 80  # 49 without
