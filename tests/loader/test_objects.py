"""The layer over object storage, against a local S3 server."""

import errno
import threading
from datetime import UTC, datetime

from flaky_proxy import FlakyProxy, flaky_proxy
from prelude import Iterator, Path, os, pytest, re
from s3_server import s3_bucket
from tables import cases

from corpus_loader.places import transports
from corpus_loader.places.errors import CorpusError
from corpus_loader.places.objects import ObjectInfo, Objects, object_info
from corpus_loader.places.traffic import REQUESTS, SENT
from corpus_loader.places.transports import Patience

LARGE = 11_000_000  # bytes: an upload of three parts


@pytest.fixture
def objects(monkeypatch: pytest.MonkeyPatch) -> Iterator[Objects]:
    """The objects below s3://corpora/mine, none so far."""
    monkeypatch.setattr(transports, "FIRST_WAIT_SECONDS", 0.001)
    with s3_bucket(monkeypatch):
        yield Objects("s3://corpora/mine/")


@pytest.fixture
def disturbed(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Objects, FlakyProxy]]:
    """Objects behind a network that can be disturbed."""
    monkeypatch.setattr(transports, "FIRST_WAIT_SECONDS", 0.001)
    with s3_bucket(monkeypatch) as endpoint, flaky_proxy(endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        yield Objects("s3://corpora/mine"), proxy


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("size", [0, 5, LARGE])
def test_files_come_back_as_they_were_put(objects: Objects, tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    objects.put_from_file("a/b c#.bin", write(tmp_path / "in", b"before"))
    objects.put_from_file("a/b c#.bin", write(tmp_path / "in", content))

    (tmp_path / "folder").mkdir()
    objects.get_to_file("a/b c#.bin", tmp_path / "folder/out")

    assert (tmp_path / "folder/out").read_bytes() == content
    assert len(list((tmp_path / "folder").iterdir())) == 1
    assert b"".join(objects.blocks("a/b c#.bin", 0)) == content
    if size:  # ranges end with the object
        assert objects.get_range("a/b c#.bin", 2, 2) == content[2:4]
        assert objects.get_range("a/b c#.bin", size - 2, 30) == content[-2:]
        assert b"".join(objects.blocks("a/b c#.bin", size - 3)) == content[-3:]


def test_objects_below_a_folder_are_listed(objects: Objects, tmp_path: Path) -> None:
    for key in ("web/2.jsonl", "web/1.jsonl", "web/deep/3.jsonl", "website/4.jsonl"):
        objects.put_from_file(key, write(tmp_path / "in", key.encode()))

    listed = objects.list_objects("web")
    assert objects.list_folder("web") == ({"1.jsonl": 11, "2.jsonl": 11}, ["deep"])
    assert objects.list_folder() == ({}, ["web", "website"])

    expected = [("web/1.jsonl", 11), ("web/2.jsonl", 11), ("web/deep/3.jsonl", 16)]
    assert [(info.key, info.num_bytes) for info in listed] == expected
    assert len({info.etag for info in listed}) == 3
    assert all(info.modified.utcoffset() is not None for info in listed)
    assert len(objects.list_objects()) == 4
    assert objects.list_objects("none") == []
    assert objects.names("web") == ["1.jsonl", "2.jsonl", "deep"]


@pytest.mark.parametrize(
    ("answered", "etag"), [('"0x1D0B"', '"0x1D0B"'), ("0x1D0B", '"0x1D0B"'), (None, None)]
)
def test_an_etag_is_the_same_in_a_listing_without_its_quotes(
    answered: str | None, etag: str | None
) -> None:
    now = datetime.now(UTC)
    listed = {"path": "a", "size": 1, "e_tag": answered, "last_modified": now, "version": None}
    assert object_info(listed) == ObjectInfo("a", 1, etag, now)


def test_of_many_that_create_one_object_the_first_succeeds(objects: Objects) -> None:
    assert objects.create("00000001.json", b"mine")
    assert not objects.create("00000001.json", b"theirs")
    assert objects.create("00000001.json", b"mine")  # as after an answer that was lost
    assert objects.get_range("00000001.json", 0, 10) == b"mine"

    created: list[bool] = []
    threads = [
        threading.Thread(target=lambda n=n: created.append(objects.create("lock", b"%d" % n)))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(created) == [False] * 7 + [True]

    for _ in range(2):  # a deleted object is gone and may be deleted again
        objects.delete("lock")
    assert objects.names("") == ["00000001.json"]


def test_a_missing_object_is_named_and_leaves_no_file(objects: Objects, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for read in (
        lambda: objects.get_range("none.bin", 0, 1),
        lambda: objects.get_to_file("none.bin", folder / "out"),
        lambda: next(objects.blocks("none.bin", 0)),
    ):
        with pytest.raises(FileNotFoundError, match=r"^s3://corpora/mine/none\.bin could not be"):
            read()
    assert not list(folder.iterdir())


def test_a_missing_bucket_is_named(objects: Objects, tmp_path: Path) -> None:
    elsewhere = Objects("s3://nothing")
    path = write(tmp_path / "in", b"")
    for done, request in {
        "read": lambda: elsewhere.get("a"),
        "written": lambda: elsewhere.put_from_file("a", path),
        "listed": lambda: elsewhere.list_objects("a"),
        "deleted": lambda: elsewhere.delete("a"),
    }.items():
        with pytest.raises(CorpusError) as error:
            request()
        assert str(error.value) == (
            f"s3://nothing/a could not be {done}: HTTP 404 NoSuchBucket: no such bucket. Check its "
            "name, the endpoint and the region."
        )


def test_a_key_that_leaves_its_folder_is_refused(objects: Objects) -> None:
    with pytest.raises(CorpusError, match=r"'\.\./secret' is no valid key"):
        objects.get_range("../secret", 0, 1)


def test_local_faults_are_not_those_of_the_object(objects: Objects, tmp_path: Path) -> None:
    objects.create("a", b"x")
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path / "gone"))) as error:
        objects.put_from_file("b", tmp_path / "gone")
    assert error.value.errno == errno.ENOENT
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path / "no"))) as error:
        objects.get_to_file("a", tmp_path / "no/out")
    assert error.value.errno == errno.ENOENT


def test_small_objects_are_read_and_written_in_memory(objects: Objects) -> None:
    objects.put("a/b", b"before")
    objects.put("a/b", b"now")

    assert objects.get("a/b") == b"now"
    assert objects.get_range("a/b", 1, 0) == b""
    info = objects.head("a/b")
    assert info is not None and (info.key, info.num_bytes) == ("a/b", 3)
    assert info == objects.list_objects("a")[0]
    assert objects.head("a/b") and not objects.head("a/c")
    assert objects.head("a/c") is None
    with pytest.raises(FileNotFoundError, match=r"a/c could not be read: HTTP 404 NoSuchKey\."):
        objects.get("a/c")


def test_many_requests_are_in_flight_and_their_results_in_order(objects: Objects) -> None:
    keys = [f"many/{number:03d}" for number in range(100)]
    objects.each(lambda key: objects.put(key, key.encode()), keys)

    assert objects.each(objects.get, keys) == [key.encode() for key in keys]
    objects.each(objects.delete, keys[:10])
    objects.delete_all(keys)
    assert objects.list_folder("many") == ({}, [])


def test_objects_are_deleted_by_one_request_or_one_by_one_if_the_store_refuses_that(
    disturbed: tuple[Objects, FlakyProxy],
) -> None:
    objects, proxy = disturbed
    keys = [f"many/{number} &<ü" for number in range(40)]
    for refused, requests in ((0, 1), (1, 41)):
        objects.each(lambda key: objects.put(key, b""), keys)
        proxy.refuse(501, "<Error><Code>NotImplemented</Code></Error>", most=refused)
        before = SENT[objects.url, REQUESTS]
        objects.delete_all(keys)
        assert SENT[objects.url, REQUESTS] - before == requests
        assert objects.list_folder("many") == ({}, [])


@cases("""
    status | body
    503    | <Error><Code>SlowDown</Code></Error>
    500    | ""
    429    | ""
    400    | <Error><Code>RequestTimeout</Code></Error>
    409    | <Error><Code>ConditionalRequestConflict</Code></Error>
    403    | <Error><Code>RequestTimeTooSkewed</Code></Error>
""")
def test_requests_are_repeated_until_the_store_has_recovered(
    disturbed: tuple[Objects, FlakyProxy], tmp_path: Path, status: int, body: str
) -> None:
    objects, proxy = disturbed
    for request in (
        lambda: objects.put("a", b"x"),
        lambda: objects.put_from_file("b", write(tmp_path / "in", b"y")),
        lambda: objects.create("c", b"z"),
        lambda: objects.get("a"),
        lambda: objects.get_to_file("b", tmp_path / "out"),
        lambda: objects.list_objects(),
        lambda: objects.delete("c"),
        lambda: b"".join(transports.read_blocks(objects, "b")),
    ):
        proxy.refuse(status, body, most=5)
        request()
    assert (tmp_path / "out").read_bytes() == b"y"
    assert objects.names("") == ["a", "b"]
    assert proxy.refused == 40


def test_a_transfer_that_is_cut_goes_on_where_it_was(
    disturbed: tuple[Objects, FlakyProxy], tmp_path: Path
) -> None:
    objects, proxy = disturbed
    content = os.urandom(LARGE)
    objects.put_from_file("a", write(tmp_path / "in", content))
    proxy.cut(4_000_000, 4_000_000)
    before = proxy.passed

    objects.get_to_file("a", tmp_path / "out")

    assert (tmp_path / "out").read_bytes() == content
    assert LARGE <= proxy.passed - before < LARGE + 3_000_000


def test_a_transfer_of_an_object_that_changes_begins_again(
    disturbed: tuple[Objects, FlakyProxy], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects, proxy = disturbed
    objects.put("a", b"1" * LARGE)
    proxy.cut(4_000_000)
    monkeypatch.setattr(Patience, "wait", lambda *_: objects.put("a", b"2" * (LARGE + 1)))

    info = objects.get_to_file("a", tmp_path / "out")

    assert (tmp_path / "out").read_bytes() == b"2" * (LARGE + 1)
    assert info == objects.head("a")


def test_the_time_of_attempts_is_set_by_the_environment(
    disturbed: tuple[Objects, FlakyProxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    objects, proxy = disturbed
    proxy.refuse(503, "<Error><Code>SlowDown</Code></Error>")
    monkeypatch.setenv("TOKENMILL_RETRY_SECONDS", "0.1")
    with pytest.raises(CorpusError) as error:
        objects.get("a")
    assert re.fullmatch(
        r"s3://corpora/mine/a could not be read: HTTP 503 SlowDown \(\d+ attempts in 0\.1 s, "
        r"TOKENMILL_RETRY_SECONDS is 0\.1\)\. Check the network, the endpoint, the credentials, "
        r"the bucket, the region and this machine's clock\.",
        str(error.value),
    )
    monkeypatch.setenv("TOKENMILL_RETRY_SECONDS", "ten")
    with pytest.raises(CorpusError, match="TOKENMILL_RETRY_SECONDS='ten' is no number of seconds"):
        objects.get("a")


@cases("""
    status | code
    403    | AccessDenied
    403    | SignatureDoesNotMatch
    403    | InvalidAccessKeyId
    400    | ExpiredToken
    400    | AuthorizationHeaderMalformed
    301    | PermanentRedirect
    403    | ""
""")
def test_refusals_are_not_repeated(
    disturbed: tuple[Objects, FlakyProxy], status: int, code: str
) -> None:
    objects, proxy = disturbed
    proxy.refuse(status, f"<Error><Code>{code}</Code></Error>")
    for request in (
        lambda: objects.get("a"),
        lambda: objects.put("a", b""),
        lambda: objects.create("a", b""),
        lambda: objects.list_objects(),
        lambda: objects.delete("a"),
        lambda: b"".join(transports.read_blocks(objects, "a")),
        lambda: objects.get_range("a", 0, 1),
    ):
        with pytest.raises(CorpusError, match=r"Check .*the credentials") as error:
            request()
        assert code in str(error.value) or "redirect" in str(error.value)
        assert "Debug" not in str(error.value) and "\n" not in str(error.value)
    assert proxy.refused == 7


def test_a_wrong_clock_is_named_soon(
    disturbed: tuple[Objects, FlakyProxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    objects, proxy = disturbed
    monkeypatch.setattr(transports, "SOON_SECONDS", 0.1)
    proxy.refuse(403, "<Error><Code>RequestTimeTooSkewed</Code></Error>")
    with pytest.raises(CorpusError, match=r"this machine's clock differs from the store's.*0\.1 s"):
        objects.get("a")


@pytest.mark.parametrize(
    "url", ["s3://keyid:hunter2@corpora/a", "s3://corpora/a?X-Amz-Signature=hunter2"]
)
def test_credentials_in_a_url_are_refused(url: str) -> None:
    pytest.importorskip("obstore")
    with pytest.raises(CorpusError, match="credentials come from environment") as error:
        Objects(url)
    assert "hunter2" not in str(error.value) and "keyid" not in str(error.value)


def test_an_http_endpoint_must_be_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    with s3_bucket(monkeypatch):
        monkeypatch.delenv("AWS_ALLOW_HTTP")
        with pytest.raises(CorpusError, match="AWS_ALLOW_HTTP=true"):
            Objects("s3://corpora").get("a")
