"""Streams of a real Redis: every entry once, whatever is killed, and whatever it trims."""

import shutil
import signal
from functools import partial

import dagster as dg
from builders import Build, hashes, open_corpus, published, sentence, write_corpus, write_jsonl
from command_line import start_raw, until
from prelude import Any, Iterator, Path, json, os, pytest
from redis_server import PASSWORD, RedisServer, redis_server

from pipeline_defs.commands.life.repair import repair
from pipeline_defs.commands.life.verify import find_faults
from pipeline_defs.commands.main import main

PART_BYTES = 2048
table = partial(published, source="stream")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RedisServer]:
    """A server of this test, for which the environment has the password."""
    monkeypatch.setenv("REDIS_PASSWORD", PASSWORD)
    folder = tmp_path / "redis"
    folder.mkdir()
    with redis_server(folder) as running:
        yield running


def stream_corpus(folder: Path, server: RedisServer, **options: Any) -> Any:
    """A corpus of one stream and one source of files."""
    files = {"name": "notes", "where": "input/notes/*"}
    stream = {"name": "stream", "where": server.url, **options}
    phases = [{"name": "main", "weights": {"stream": 0.5, "notes": 0.5}}]
    config = write_corpus(
        folder,
        sources=[stream, files],
        phases=phases,
        part_bytes=PART_BYTES,
        engine={"kind": "in_process"},
    )
    return open_corpus(config)


def records(first: int, number: int) -> list[dict[str, Any]]:
    """Records with a number each."""
    return [{"text": sentence(i, 20 + i % 9), "n": i} for i in range(first, first + number)]


def texts(corpus: Any) -> list[str]:
    """Texts of the stream's documents, in order."""
    return table(corpus)["text"].to_list()


def warnings_of(result: Any) -> list[str]:
    """Warnings of the last check of what was read."""
    checks = [each for each in result.get_asset_check_evaluations()]
    return [each.description for each in checks if each.check_name == "inputs_read"]


def test_each_night_takes_what_is_new_and_keeps_what_the_server_trims(
    tmp_path: Path, server: RedisServer, build: Build
) -> None:
    corpus = stream_corpus(tmp_path, server)
    every = records(0, 120)
    server.add(every[:50])
    build(corpus, "raw")
    before = hashes(corpus.store.root / "raw/stream")
    server.client.xtrim("docs", maxlen=0, approximate=False)
    server.add(every[50:])

    build(corpus, "raw")

    assert texts(corpus) == [each["text"] for each in every]
    after = hashes(corpus.store.root / "raw/stream")
    assert {name: after.get(name) for name in before} == before
    manifest = corpus.store.newest("raw", "stream")
    ranges = manifest.provenance["streams"][server.name]["ranges"]
    assert len(ranges) == len(manifest.parts) > 3
    assert sum(count for _, _, count, _ in ranges) == 120
    assert len(set(table(corpus)["doc_id"])) == 120


def test_a_night_without_entries_computes_nothing(
    tmp_path: Path, server: RedisServer, build: Build
) -> None:
    corpus = stream_corpus(tmp_path, server)
    server.add(records(0, 30))
    build(corpus, "raw")
    before = hashes(corpus.store.root / "raw")

    build(corpus, "raw")

    assert hashes(corpus.store.root / "raw") == before


def test_the_same_entries_in_one_night_or_in_many_have_the_same_ids(
    tmp_path: Path, server: RedisServer, build: Build
) -> None:
    at_once = stream_corpus(tmp_path / "once", server)
    in_steps = stream_corpus(tmp_path / "steps", server, max_entries=17)
    server.add(records(0, 60))
    build(at_once, "raw")
    counts = []
    for _ in range(5):
        build(in_steps, "raw")
        counts.append(table(in_steps).height)

    assert counts == [17, 34, 51, 60, 60]
    assert table(in_steps).equals(table(at_once))


def test_a_cap_on_text_is_never_exceeded_and_keeps_what_was_read(
    tmp_path: Path, server: RedisServer, build: Build
) -> None:
    corpus = stream_corpus(tmp_path, server, max_text_bytes=3000)
    server.add(records(0, 60))
    build(corpus, "raw")
    first = texts(corpus)
    build(corpus, "raw")
    more = stream_corpus(tmp_path, server, max_text_bytes=6000)
    server.client.xtrim("docs", maxlen=58 - len(first), approximate=False)
    build(more, "raw")

    assert 2000 < sum(map(len, first)) <= 3000
    assert texts(more)[: len(first)] == first
    assert sum(map(len, texts(more))) <= 6000


@pytest.mark.parametrize("at_part", [0, 1, 3, 8])
def test_no_entry_is_lost_or_doubled_when_the_run_is_killed(
    at_part: int, tmp_path: Path, server: RedisServer
) -> None:
    corpus = stream_corpus(tmp_path, server)
    every = records(0, 4000)
    server.add(every[:3500])
    config = corpus.config
    killed = start_raw(config, "--partition", "stream")
    folder = corpus.store.root / "raw/stream/_parts"
    until(lambda: len(list(folder.glob("*.json"))) >= at_part and folder.parent.exists(), killed)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    server.add(every[3500:])

    assert start_raw(config, "--partition", "stream").wait() == 0

    assert texts(corpus) == [each["text"] for each in every]


def test_no_entry_is_lost_or_doubled_when_the_server_is_killed(
    tmp_path: Path, server: RedisServer
) -> None:
    corpus = stream_corpus(tmp_path, server)
    every = records(0, 4000)
    server.add(every)
    run = start_raw(corpus.config, "--partition", "stream")
    folder = corpus.store.root / "raw/stream/_parts"
    until(lambda: len(list(folder.glob("*.json"))) >= 3, run)
    server.kill()
    server.start()

    assert run.wait() == 0

    assert texts(corpus) == [each["text"] for each in every]


def test_trimmed_entries_that_were_never_read_are_a_warning_with_their_number(
    tmp_path: Path, server: RedisServer, build: Build, dagster_build: Build
) -> None:
    corpus = stream_corpus(tmp_path, server)
    first = server.add(records(0, 20))
    build(corpus, "raw")
    later = server.add(records(20, 30))
    server.client.xtrim("docs", maxlen=10, approximate=False)

    result = dagster_build(corpus, "raw")

    [warning] = warnings_of(result)
    assert f"20 entries of {server.name} were trimmed or deleted before they were read" in warning
    assert f"20, where {first[-1]} is known and the first there is {later[20]}" in warning
    assert table(corpus).height == 30


def test_a_stream_that_was_made_again_is_an_error_of_its_source_alone(
    tmp_path: Path, server: RedisServer, build: Build, dagster_build: Build
) -> None:
    corpus = stream_corpus(tmp_path, server)
    server.add(records(0, 20))
    build(corpus, "raw")
    before = texts(corpus)
    server.client.delete("docs")
    server.client.xadd("docs", {"text": sentence(1)}, id="1-0")

    result = dagster_build(corpus, "raw", raise_on_error=False)

    error = str(failures(result)["stream"])
    assert "was deleted or made again" in error
    assert "its newest entry is 1-0" in error
    assert texts(corpus) == before
    assert set(failures(result)) == {"stream"}


def test_a_server_that_is_down_fails_its_source_alone_and_shows_no_password(
    tmp_path: Path, server: RedisServer, dagster_build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assets.raw.places.streams.redis_stream.RETRIES", 1)
    corpus = stream_corpus(tmp_path, server)
    server.kill()

    result = dagster_build(corpus, "raw", raise_on_error=False)

    error = str(failures(result))
    assert f"{server.name}: the server does not answer" in error
    assert PASSWORD not in error
    assert corpus.store.newest("raw", "notes").stats.rows_kept == 41


def test_a_wrong_password_is_named_and_not_shown(
    tmp_path: Path, server: RedisServer, dagster_build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assets.raw.places.streams.redis_stream.RETRIES", 1)
    monkeypatch.setenv("REDIS_PASSWORD", "mistaken")
    corpus = stream_corpus(tmp_path, server)

    error = str(failures(dagster_build(corpus, "raw", raise_on_error=False)))

    assert "refuses the user or password" in error
    assert "mistaken" not in error


def test_the_password_is_recorded_nowhere(
    tmp_path: Path, server: RedisServer, build: Build
) -> None:
    corpus = stream_corpus(tmp_path, server)
    server.add(records(0, 5))
    build(corpus, "raw")

    for path in (tmp_path / "store").rglob("*.json"):
        assert b"horse" not in path.read_bytes()


def test_an_empty_stream_is_an_error_unless_it_may_be_empty(
    tmp_path: Path, server: RedisServer, build: Build, dagster_build: Build
) -> None:
    strict = stream_corpus(tmp_path / "strict", server)
    lenient = stream_corpus(tmp_path / "lenient", server, allow_no_files=True)

    error = str(failures(dagster_build(strict, "raw", raise_on_error=False)))
    build(lenient, "raw")

    assert "has no entries" in error
    assert lenient.store.newest("raw", "stream").stats.rows_in == 0


def test_bad_entries_are_in_quarantine_with_their_ids(
    tmp_path: Path, server: RedisServer, build: Build
) -> None:
    corpus = stream_corpus(tmp_path, server)
    add = server.client.xadd
    good = [
        add("docs", {"text": sentence(1), "lang": "en", "stars": "5"}),
        add("docs", {"json": json.dumps({"text": sentence(2)})}),
        add("docs", {"data": json.dumps({"text": sentence(3)})}),
    ]
    bad = [
        add("docs", {"title": "no text"}),
        add("docs", {"json": '{"text": "cut'}),
        add("docs", {"text": b"caf\xe9"}),
        add("docs", {"json": b'{"text": "caf\xe9"}'}),
        add("docs", {"text": sentence(4)}, id="99999999999999-9999999"),
    ]

    build(corpus, "raw")

    quarantine = table(corpus, kind="quarantine")
    assert quarantine["position"].to_list()[:4] == [f"entry {each.decode()}" for each in bad[:4]]
    errors = quarantine["error"].to_list()
    assert "text field `text` is missing (fields: title)" in errors[0]
    assert "truncated" in errors[1]
    assert "not valid UTF-8: byte 0xe9" in errors[2]
    assert "not valid UTF-8" in errors[3]
    assert "the id is beyond" in errors[4]
    assert all(quarantine["next_step"])
    documents = table(corpus)
    assert documents["text"].to_list() == [sentence(1), sentence(2), sentence(3)]
    assert documents["lang"].to_list() == ["en", None, None]
    assert documents["meta"].to_list() == ['{"stars":"5"}', "{}", "{}"]
    assert len(good) == 3


def test_a_field_holds_the_record_where_the_config_says_so(
    tmp_path: Path, server: RedisServer, build: Build
) -> None:
    corpus = stream_corpus(tmp_path, server, stream_field="payload")
    server.client.xadd("docs", {"payload": json.dumps({"text": sentence(1)}), "producer": "a"})
    server.client.xadd("docs", {"text": sentence(2)})

    build(corpus, "raw")

    assert texts(corpus) == [sentence(1)]
    assert "stream field `payload` is missing" in table(corpus, kind="quarantine")["error"][0]


def test_a_lost_part_is_made_again_while_the_server_has_its_entries(
    tmp_path: Path, server: RedisServer, build: Build
) -> None:
    corpus = stream_corpus(tmp_path, server)
    server.add(records(0, 60))
    build(corpus, "raw")
    before = hashes(corpus.store.root / "raw")
    server.add(records(60, 5))
    lost = sorted((corpus.store.root / "raw/stream").glob("*.documents.parquet"))[1]
    lost.unlink()

    with dg.DagsterInstance.ephemeral() as instance:
        lines = list(repair(corpus, find_faults(corpus.store).faults, instance))

    assert lines[0].startswith("rebuilt raw[stream]")
    assert hashes(corpus.store.root / "raw") == before


def test_a_lost_part_of_trimmed_entries_is_named_as_lost(
    tmp_path: Path, server: RedisServer, build: Build
) -> None:
    corpus = stream_corpus(tmp_path, server)
    ids = server.add(records(0, 60))
    build(corpus, "raw")
    server.client.xtrim("docs", maxlen=0, approximate=False)
    lost = sorted((corpus.store.root / "raw/stream").glob("*.documents.parquet"))[0]
    lost.unlink()

    with dg.DagsterInstance.ephemeral() as instance:
        [line] = repair(corpus, find_faults(corpus.store).faults, instance)

    assert line.startswith("not rebuilt raw[stream]")
    assert "cannot be made again" in line
    assert lost.name.split("-0000-0000")[0] in line
    assert ids[0] in line


def test_a_bad_entry_is_patched_after_the_server_has_trimmed_it(
    tmp_path: Path, server: RedisServer, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = stream_corpus(tmp_path / "patched", server)
    fresh = stream_corpus(tmp_path / "fresh", server)
    server.add(records(0, 10))
    bad = [server.client.xadd("docs", {"json": line}).decode() for line in ("{", "[")]
    server.add(records(12, 10))
    build(corpus, "raw")
    lines = [
        {"file": server.name, "position": f"entry {bad[i]}", "record": records(10 + i, 1)[0]}
        for i in range(2)
    ]
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    patches = "_patches/stream"
    shutil.copytree(replayed(corpus, lines[:1]) / patches, fresh.store.root / patches)
    build(fresh, "raw")  # reads the entries again
    server.client.xtrim("docs", maxlen=0, approximate=False)

    assert corpus.store.newest("raw", "stream").parts == fresh.store.newest("raw", "stream").parts
    replayed(corpus, lines[1:])

    assert texts(corpus) == [each["text"] for each in records(0, 22)]
    assert table(corpus)["doc_id"].n_unique() == 22

    assert main(["states", "gc", "--keep", "1", "--delete"]) == 0  # the parts without all patches
    doc_ids = table(corpus)["doc_id"]
    for taken in ([9], [9, 10]):  # one of no patch, and one of a patch
        assert main(["takedown", "--doc", doc_ids[taken[-1]], "--reason", "asked for"]) == 0
        build(corpus, "raw")
        kept = [each["text"] for n, each in enumerate(records(0, 22)) if n not in taken]
        assert texts(corpus) == kept
    build(corpus, "raw")
    assert texts(corpus) == kept
    patched = [each.read_bytes() for each in (corpus.store.root / patches).iterdir()]
    assert not any(records(10, 1)[0]["text"].encode() in content for content in patched)


def replayed(corpus: Any, lines: list[dict[str, Any]]) -> Path:
    """Replay patches; return the store."""
    file = write_jsonl(corpus.config.parent / "patched.jsonl", lines)
    assert main(["quarantine", "replay", "stream", "--patched", str(file)]) == 0
    root: Path = corpus.store.root
    return root


def failures(result: Any) -> dict[str, str]:
    """Sources that failed in a run, with the reason."""
    found: dict[str, str] = {}
    for each in result.get_asset_check_evaluations():
        if each.check_name == "sources_complete":
            found |= each.metadata["failed"].value
    return found


def test_documents_are_taken_down_after_the_server_has_trimmed_them(
    tmp_path: Path, server: RedisServer, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = stream_corpus(tmp_path, server)
    server.add(records(0, 40))
    build(corpus, "raw")
    server.client.xtrim("docs", maxlen=0, approximate=False)
    before = table(corpus)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))

    for row in (7, 8):  # one after the other: the second finds the part of the first
        doc_id = before["doc_id"][row]
        assert main(["takedown", "--doc", doc_id, "--reason", "asked for"]) == 0
        build(corpus, "raw")

    assert texts(corpus) == [t for i, t in enumerate(before["text"]) if i not in (7, 8)]
    stats = corpus.store.newest("raw", "stream").stats
    assert (stats.rows_in, stats.rows_kept, stats.rejected) == (40, 38, {"taken_down": 2})
