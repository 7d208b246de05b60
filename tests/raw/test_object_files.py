"""Sources on object stores: what a URL matches, what is read again, and copies that are bounded."""

import gzip

import dagster as dg
from builders import Build, open_corpus, published, sentence, write_corpus
from flaky_proxy import flaky_proxy
from prelude import Any, Iterator, Path, json, os, pytest
from s3_server import s3_bucket

from assets.raw.places.find_inputs import find_inputs
from assets.raw.places.object_files import bucket_at
from assets.raw.readers.input_file import ChangedFileError
from assets.raw.readers.open_input import open_input
from corpus_loader.places import transports
from corpus_loader.places.objects import Objects
from resources.errors import InputError
from resources.materialize import materialization
from resources.settings.full_source import Source
from resources.settings.pipeline import SettingsError, load_settings
from resources.store import store_place
from resources.store.store_place import ScratchConfig

LINES = [json.dumps({"text": sentence(number)}).encode() + b"\n" for number in range(40)]
KEYS = [
    "web/a.jsonl",
    "web/b.jsonl.gz",
    "web/deep/c.jsonl",
    "web/deep/er/d.jsonl",
    "web/.hidden/e.jsonl",
    "web/notes.md5",
    "website/f.jsonl",
]


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Objects]:
    """A bucket with files of one document each."""
    with s3_bucket(monkeypatch):
        bucket_at.cache_clear()  # its clients keep the endpoint that they began with
        objects = Objects("s3://corpora")
        for number, key in enumerate(KEYS):
            packed = gzip.compress if key.endswith("gz") else bytes
            objects.put(key, packed(LINES[number]))
        yield objects


def source(*where: str) -> Source:
    return Source(name="web", where=where)


def found(folder: Path, *where: str) -> list[str]:
    files = find_inputs(source(*where), folder, folder / "store/_downloads").files
    return [file.name.removeprefix("s3://corpora/") for file in files]


@pytest.mark.parametrize(
    ("where", "keys"),
    [
        ("s3://corpora/web", [0, 1, 2, 3]),
        ("s3://corpora/web/", [0, 1, 2, 3]),
        ("s3://corpora", [0, 1, 2, 3, 6]),
        ("s3://corpora/web/a.jsonl", [0]),
        ("s3://corpora/web/*.jsonl", [0]),
        ("s3://corpora/web/*", [0, 1, 2, 3]),
        ("s3://corpora/web/**/*.jsonl", [0, 2, 3]),
        ("s3://corpora/we*/**", [0, 1, 2, 3, 6]),
        ("s3://corpora/web/?.jsonl*", [0, 1]),
        ("s3://corpora/web/.hidden/*", [4]),
        ("s3://corpora/web/deep/[e]r", [3]),
    ],
)
@pytest.mark.usefixtures("bucket")
def test_urls_match_as_paths_do(tmp_path: Path, where: str, keys: list[int]) -> None:
    """The same files in a folder are matched by the same pattern."""
    for key in KEYS:
        (tmp_path / "corpora" / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "corpora" / key).touch()
    on_disk = found(tmp_path, where.removeprefix("s3://"))

    assert found(tmp_path, where) == [KEYS[index] for index in keys]
    assert [name.removeprefix("corpora/") for name in on_disk] == [KEYS[index] for index in keys]


@pytest.mark.usefixtures("bucket")
def test_what_matches_nothing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no input file matches 's3://corpora/none/\*'"):
        found(tmp_path, "s3://corpora/none/*")
    with pytest.raises(InputError, match=r"source 'web'.*s3://elsewhere/.*no such bucket"):
        found(tmp_path, "s3://elsewhere/*")


def test_a_store_in_the_same_bucket_is_not_read(bucket: Objects, tmp_path: Path) -> None:
    root = store_place.root_of("s3://corpora/web/deep", tmp_path, ScratchConfig(folder="scratch"))
    files = find_inputs(source("s3://corpora/web"), tmp_path, root / "_downloads").files
    assert [file.name for file in files] == [
        "s3://corpora/web/a.jsonl",
        "s3://corpora/web/b.jsonl.gz",
    ]


@pytest.mark.parametrize("where", ["s3://key:hunter2@corpora/web", "s3://corpora/a?sig=hunter2"])
def test_credentials_in_a_url_are_refused(tmp_path: Path, where: str) -> None:
    config = write_corpus(tmp_path, sources=[{"name": "prose", "where": where}], phases=[])
    with pytest.raises(SettingsError, match="Credentials come from the environment") as error:
        load_settings(config)
    assert "hunter2" not in str(error.value)


def texts(corpus: Any) -> list[str]:
    return published(corpus)["text"].to_list()


def test_only_new_and_changed_objects_are_read(
    bucket: Objects, tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = {"kind": "in_process", "workers": 1}
    where = {"name": "prose", "where": "s3://corpora/web/**/*.jsonl"}
    rest = {"name": "notes", "where": "input/notes/*"}
    corpus = open_corpus(
        write_corpus(tmp_path, sources=[where, rest], engine=engine, part_bytes=1024)
    )
    read: list[str] = []
    get_part = Objects.get_part

    def spy(objects: Objects, key: str, start: int, stop: int) -> Any:
        read.append(key)
        return get_part(objects, key, start, stop)

    monkeypatch.setattr(Objects, "get_part", spy)
    build(corpus, "raw")
    assert sorted(read) == [KEYS[0], KEYS[2], KEYS[3]]
    assert sorted(texts(corpus)) == sorted(sentence(number) for number in (0, 2, 3))
    assert not corpus.downloads.exists()

    read.clear()
    build(corpus, "raw")
    assert read == []

    bucket.put(KEYS[2], LINES[20])
    bucket.put("web/new.jsonl", LINES[21])
    build(corpus, "raw")
    assert set(read) >= {KEYS[2], "web/new.jsonl"}
    assert sorted(texts(corpus)) == sorted(sentence(number) for number in (0, 3, 20, 21))


def test_an_object_that_changes_after_planning_is_named(bucket: Objects, tmp_path: Path) -> None:
    files = find_inputs(source("s3://corpora/web/a.jsonl"), tmp_path, tmp_path / "d").files
    bucket.put("web/a.jsonl", b"{}\n")
    with pytest.raises(ChangedFileError, match=r"s3://corpora/web/a\.jsonl has changed"):
        open_input(files[0]).read()
    bucket.delete("web/a.jsonl")
    with pytest.raises(ChangedFileError, match=r"s3://corpora/web/a\.jsonl was removed"):
        open_input(files[0]).read()


def test_a_listing_that_is_cut_goes_on_behind_its_last_page(
    bucket: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transports, "FIRST_WAIT_SECONDS", 0.001)
    for number in range(2500):
        bucket.put(f"many/{number:05d}", b"")
    with flaky_proxy(os.environ["AWS_ENDPOINT_URL"]) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        objects = Objects("s3://corpora").each_object("many")
        keys = [next(objects).key for _ in range(1000)]
        proxy.refuse(503, most=3)
        keys += [info.key for info in objects]
    assert proxy.refused == 3
    assert keys == [f"many/{number:05d}" for number in range(2500)]


def test_an_expired_token_is_named_and_the_other_sources_are_built(
    bucket: Objects,
    tmp_path: Path,
    build: Build,
    dagster_build: Build,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planning lists the objects; the token expires before they are read."""
    monkeypatch.setattr(materialization, "RETRIES", dg.RetryPolicy(max_retries=0))
    where = {"name": "prose", "where": "s3://corpora/web/*.jsonl"}
    rest = {"name": "notes", "where": "input/notes/*"}
    engine = {"kind": "in_process", "workers": 1}
    corpus = open_corpus(write_corpus(tmp_path, sources=[where, rest], engine=engine))
    get_part = Objects.get_part
    body = "<Error><Code>ExpiredToken</Code></Error>"

    with flaky_proxy(os.environ["AWS_ENDPOINT_URL"]) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        bucket_at.cache_clear()

        def expire(objects: Objects, key: str, start: int, stop: int) -> Any:
            proxy.refuse(403, body)
            return get_part(objects, key, start, stop)

        monkeypatch.setattr(Objects, "get_part", expire)
        result = dagster_build(corpus, "raw", raise_on_error=False)
        assert not result.success
        assert corpus.store.partition("raw", "prose").newest_manifest() is None
        assert corpus.store.partition("raw", "notes").newest_manifest() is not None
        observed = [
            each.asset_observation_data.asset_observation.metadata
            for each in result.all_events
            if each.event_type_value == "ASSET_OBSERVATION"
        ]
        errors = [str(each["error"].value) for each in observed if "error" in each]
        assert len(errors) == 1
        assert "s3://corpora/web/a.jsonl could not be read: HTTP 403 ExpiredToken" in errors[0]
        assert "Check the credentials" in errors[0]

        proxy.recover()
        monkeypatch.setattr(Objects, "get_part", get_part)
        build(corpus, "raw")
    assert texts(corpus) == [sentence(0)]
