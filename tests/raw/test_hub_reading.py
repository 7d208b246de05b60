"""Reading of datasets on the hub: exact rows through faults, few bytes, and what is new alone."""

import csv
import gzip
import io
import signal

from builders import Build, hashes, open_corpus, published, sentence, write_corpus
from command_line import until
from hub_server import Hub, hub_server
from many_runs import begin_raw, exit_codes
from prelude import Any, Iterator, Path, json, os, pl, pytest

from assets.raw.places.find_inputs import find_inputs
from assets.raw.raw_records import RAW
from assets.raw.readers import open_input as opening
from assets.raw.readers.input_file import ChangedFileError
from assets.raw.readers.open_input import open_input
from resources.settings.full_source import Source

pytestmark = pytest.mark.slow

ENGINE = {"kind": "in_process", "workers": 1}
TOKEN = "hf_" + "secret" * 5
NOISE = [os.urandom(500_000).hex() for _ in range(8)]


def lines(*numbers: int) -> bytes:
    """JSON lines with a document per number."""
    return b"".join(json.dumps({"text": sentence(n), "n": n}).encode() + b"\n" for n in numbers)


def rows(*numbers: int) -> bytes:
    """A CSV file with a document per number."""
    out = io.StringIO()
    csv.writer(out).writerows([("text", "n"), *((sentence(n), n) for n in numbers)])
    return out.getvalue().encode()


def parquet(*numbers: int, row_group: int = 100, **more: list[Any]) -> bytes:
    """A Parquet file with a document per number."""
    out = io.BytesIO()
    table = pl.DataFrame({"text": [sentence(n) for n in numbers], "n": [*numbers], **more})
    table.write_parquet(out, row_group_size=row_group)
    return out.getvalue()


FILES = {
    "train/a.jsonl": lines(*range(120)),
    "train/b.jsonl.gz": gzip.compress(lines(*range(120, 200)), mtime=0),
    "train/c.csv": rows(*range(200, 320)),
    "train/d.txt": sentence(320, 3000).encode(),
    "train/e.parquet": parquet(*range(400, 520), row_group=50),
    "train/small.jsonl": lines(600),
    "test/x.jsonl": lines(9000),
    "README.md": b"# A dataset",
}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub without repositories."""
    with hub_server(monkeypatch) as found:
        yield found


def write(folder: Path, where: str = "hf://acme/web", part_bytes: int = 4096, **more: Any) -> Path:
    """Write a corpus, one of whose sources is on the hub."""
    folder.mkdir(exist_ok=True)
    prose = {"name": "prose", "where": where, **more}
    notes = {"name": "notes", "where": "input/notes/*"}
    return write_corpus(folder, sources=[prose, notes], engine=ENGINE, part_bytes=part_bytes)


def commits(corpus: Any) -> dict[str, str]:
    return corpus.store.newest(RAW, "prose").provenance.commits


def built(build: Build, config: Path) -> Any:
    corpus = open_corpus(config)
    build(corpus, "raw")
    return corpus


def test_rows_are_exact_through_cut_connections_and_503s(
    hub: Hub, tmp_path: Path, build: Build
) -> None:
    hub.add("acme/web", FILES)
    calm = built(build, write(tmp_path / "calm"))
    hub.busy, hub.cuts = 7, 9
    rough = built(build, write(tmp_path / "rough"))
    assert (hub.busy, hub.cuts) == (0, 0)
    raw = [hashes(corpus.store.root / "raw/prose") for corpus in (calm, rough)]
    assert raw[0] == raw[1]

    for path, content in FILES.items():
        (tmp_path / "copy" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "copy" / path).write_bytes(content)
    local = built(build, write(tmp_path / "local", str(tmp_path / "copy/train")))
    same = ["text", "meta"]
    assert published(rough).select(same).equals(published(local).select(same))
    assert published(rough)["text"].n_unique() == 442
    origins = published(rough)["origin"].struct.field("file").unique()
    assert "hf://acme/web/train/e.parquet" in origins


def test_a_repository_that_changes_costs_what_is_new(
    hub: Hub, tmp_path: Path, build: Build
) -> None:
    first = hub.add("acme/web", FILES)
    config = write(tmp_path)
    corpus = built(build, config)
    assert commits(corpus) == {"acme/web": first}
    before = published(corpus)

    hub.requests.clear()
    built(build, config)
    assert hub.served() == 0

    hub.requests.clear()
    new = {"train/f.parquet": parquet(700), "train/c.csv": rows(*range(800, 900))}
    second = hub.repositories["acme/web"].commit({**FILES, **new})
    built(build, config)
    read = {each.path.partition(f"/{second}/")[2] for each in hub.requests if each.served}
    assert read == {"train/f.parquet", "train/c.csv", "README.md"}
    assert commits(corpus) == {"acme/web": second}

    again = built(build, write(tmp_path / "first", revision=first))
    assert commits(again) == {"acme/web": first}
    assert published(again).equals(before)


def test_a_commit_without_changes_is_recorded_too(hub: Hub, tmp_path: Path, build: Build) -> None:
    hub.add("acme/web", FILES)
    config = write(tmp_path)
    built(build, config)
    second = hub.repositories["acme/web"].commit(FILES)
    corpus = built(build, config)
    assert commits(corpus) == {"acme/web": second}


def test_only_the_bytes_of_wanted_columns_are_asked_for(
    hub: Hub, tmp_path: Path, build: Build
) -> None:
    wide = {"train.parquet": parquet(*range(8), row_group=1, noise=NOISE, url=["u"] * 8)}
    hub.add("acme/web", wide)
    corpus = built(build, write(tmp_path, columns=["text", "url"]))
    assert published(corpus)["text"].to_list() == [sentence(n) for n in range(8)]
    assert published(corpus)["meta"].to_list() == ['{"url":"u"}'] * 8
    end = 64 * 1024  # to plan, and for each of eight slices
    assert hub.served() < (1 + 8) * end + 8 * 4096 < len(wide["train.parquet"]) / 5


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.csv", "a.parquet"])
def test_fields_that_are_not_wanted_are_left_out_of_every_format(
    hub: Hub, tmp_path: Path, build: Build, name: str
) -> None:
    write_as = {"a.jsonl": lines, "a.csv": rows, "a.parquet": parquet}
    content = gzip.compress(lines(1, 2)) if name == "a.jsonl.gz" else write_as[name](1, 2)
    hub.add("acme/web", {name: content})
    corpus = built(build, write(tmp_path, columns=["text"]))
    assert published(corpus)["meta"].to_list() == ["{}", "{}"]


@pytest.mark.parametrize(("most", "part_bytes"), [(60, 4096), (250, 4096), (250, 1 << 20)])
def test_a_cap_of_documents_stops_at_the_same_one(
    hub: Hub, tmp_path: Path, build: Build, most: int, part_bytes: int
) -> None:
    hub.add("acme/web", FILES)
    whole = published(built(build, write(tmp_path / "all")))
    config = write(tmp_path, part_bytes=part_bytes, max_documents=most)
    corpus = built(build, config)
    assert published(corpus).equals(whole.head(most))
    hub.requests.clear()
    built(build, config)
    assert hub.served() == 0


def test_a_cap_stops_requests_early(
    hub: Hub, tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "WINDOW_BYTES", 1 << 20)
    large = [os.urandom(40_000).hex() for _ in range(200)]
    table = io.BytesIO()
    pl.DataFrame({"text": large}).write_parquet(
        table, row_group_size=10, compression="uncompressed"
    )
    text = "".join(json.dumps({"text": each}) + "\n" for each in large).encode()
    for name, content in (("a.parquet", table.getvalue()), ("a.jsonl", text)):
        repository = {name: content, "b.parquet": table.getvalue(), "c.jsonl": text}
        for cap in ({"max_documents": 15}, {"max_text_bytes": 15 * 80_000}):
            hub.add("acme/web", repository)
            hub.requests.clear()
            place = tmp_path / name / next(iter(cap))
            place.parent.mkdir(exist_ok=True)
            corpus = built(build, write(place, part_bytes=1 << 20, **cap))
            assert published(corpus)["text"].to_list() == large[:15]
            assert hub.served() < len(content) / 2
            assert not [
                each.path for each in hub.requests if each.path.endswith(("b.parquet", "c.jsonl"))
            ]


def test_a_file_that_is_gone_or_another_one_is_named(hub: Hub, tmp_path: Path) -> None:
    sha = hub.add("acme/web", {"a.jsonl": lines(1), "b.jsonl": lines(2)})
    source = Source(name="web", where=("hf://acme/web",))
    gone, longer = find_inputs(source, tmp_path, tmp_path / "d").files
    hub.repositories["acme/web"].commits[sha] = {"b.jsonl": lines(2, 3)}
    for file, message in ((gone, "was removed between"), (longer, "has changed between")):
        with pytest.raises(ChangedFileError, match=message), open_input(file) as stream:
            stream.read()


def test_a_killed_run_goes_on_without_a_row_lost_or_doubled(
    hub: Hub, tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kill raw twice while it reads, then continue: the bytes are those of an undisturbed run."""
    paths = [f"train/{name}-{path[6:]}" for name in "abcdef" for path in FILES if "train" in path]
    files = {path: FILES[f"train/{path[8:]}"] for path in paths}
    hub.add("acme/web", files, token=TOKEN)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    calm = built(build, write(tmp_path / "calm"))
    total = hub.served()

    config = write(tmp_path / "killed")
    hub.requests.clear()
    hub.seconds = 0.03
    for share in (0.2, 0.5):
        run = begin_raw(config)
        until(lambda least=share * total: hub.served() > least)
        run.kill()
        assert exit_codes([run]) == [-signal.SIGKILL]
    hub.seconds = 0.0
    hub.requests.clear()
    assert exit_codes([begin_raw(config)]) == [0]
    assert hub.served() < 0.9 * total, "finished parts are not read again"
    raw = [hashes(each / "store/raw/prose") for each in (calm.config.parent, config.parent)]
    finished = [{k: v for k, v in of.items() if not k.startswith("_")} for of in raw]
    assert finished[0] == finished[1]
    assert published(open_corpus(config)).equals(published(calm))
    for folder in (tmp_path, Path(os.environ["DAGSTER_HOME"])):
        for path in folder.rglob("*"):
            assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path
