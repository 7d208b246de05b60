"""Downloads: identities, credentials, lengths and limits, against a real local server."""

import base64
import gzip
import socket

from answering_site import Site, answering_site
from prelude import Iterator, Path, pytest
from served import Answering, served

from assets.raw.places import downloads
from assets.raw.places.find_inputs import find_inputs
from assets.raw.readers.input_file import InputFile
from assets.raw.readers.read_chunks import read_chunks, whole
from corpus_loader.places import http_client, transports
from resources.errors import InputError
from resources.settings.sources import SourceConfig

LINE = b'{"text": "here"}\n'


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with answering_site(monkeypatch) as state:
        yield state


def find(base: Path, url: str, **options: object) -> InputFile:
    source = SourceConfig.model_validate({"name": "s", "where": url, **options})
    return find_inputs(source, base, base / "store/_downloads").files[0]


def refusal(base: Path, url: str, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        find(base, url, **options)
    return str(caught.value)


def test_a_renewed_signature_is_the_same_file(site: Site, tmp_path: Path) -> None:
    site.answers = [(200, LINE, {"ETag": '"v1"'}), (304, b"", {}), (200, LINE * 2, {})]
    url = f"http://{site.place}/a.jsonl"

    files = [find(tmp_path, f"{url}?X-Amz-Signature={n}&X-Amz-Date={n}") for n in range(3)]

    assert [file.name for file in files] == [url] * 3
    assert len({file.path for file in files}) == 1 and files[0].digest == files[1].digest
    assert site.asked[1]["If-None-Match"] == '"v1"'
    assert site.paths[2] == "/a.jsonl?X-Amz-Signature=2&X-Amz-Date=2"
    assert b"Signature" not in b"".join(p.read_bytes() for p in files[0].path.parent.iterdir())


def test_named_keys_of_a_query_belong_to_the_identity(site: Site, tmp_path: Path) -> None:
    site.answers = [(200, LINE * n, {}) for n in (1, 2)]
    url = f"http://{site.place}/a.jsonl"

    files = [find(tmp_path, f"{url}?token=abc&page={n}", identity_query=["page"]) for n in (1, 2)]

    assert [file.name for file in files] == [f"{url}?page=1", f"{url}?page=2"]
    assert files[0].path != files[1].path
    site.answers = [(404, b"", {})]
    assert f"{url}?page=3 could not" in refusal(
        tmp_path, f"{url}?token=abc&page=3", identity_query=["page"]
    )


def test_variables_are_replaced_for_the_request_only(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "HOOK": "T0/s3cret",
        "MARKS": "?#",
        "SAS": "sv=1&sig=a%2Fb",
        "PW": "p:w/@",
    }.items():
        monkeypatch.setenv(name, value)
    site.answers = [(200, LINE, {}), (404, b"", {}), (302, b"", {"Location": "ftp://h/T0/s3cret"})]
    url = f"http://me:${{PW}}@{site.place}/${{HOOK}}${{MARKS}}/a.jsonl?${{SAS}}"

    file = find(tmp_path, url)

    assert file.name == f"http://{site.place}/${{HOOK}}${{MARKS}}/a.jsonl"
    assert site.paths == ["/T0/s3cret%3F%23/a.jsonl?sv=1&sig=a%2Fb"]
    assert site.asked[0]["Authorization"] == "Basic " + base64.b64encode(b"me:p:w/@").decode()
    for _ in range(2):
        assert "s3cret" not in refusal(tmp_path, url)


def test_a_variable_that_is_not_set_is_named(site: Site, tmp_path: Path) -> None:
    url = f"http://{site.place}/a.jsonl?token=${{TOKENMILL_NO_SUCH}}"
    assert "variable TOKENMILL_NO_SUCH is not set" in refusal(tmp_path, url)
    assert "a host cannot come from a variable" in refusal(tmp_path, "http://${PATH}/a.jsonl")
    assert site.asked == []


def test_netrc_is_used(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password pw\n")
    monkeypatch.setenv("NETRC", str(netrc))
    site.answers = [(200, LINE, {}), (401, b"", {})]

    find(tmp_path, f"http://{site.place}/a.jsonl")

    assert site.asked[0]["Authorization"] == "Basic bWU6cHc="
    message = refusal(tmp_path, f"http://{site.place}/a.jsonl")
    assert "HTTP 401 Unauthorized, with user and password" in message


def test_a_refusal_says_that_there_were_no_credentials(site: Site, tmp_path: Path) -> None:
    site.answers = [(401, b"", {})]
    message = refusal(tmp_path, f"http://{site.place}/a.jsonl")
    assert "HTTP 401 Unauthorized, without user and password" in message


def test_a_file_over_the_limit_is_not_stored(site: Site, tmp_path: Path) -> None:
    site.answers = [(200, LINE, {}), (200, b"5\r\nhello\r\n", {"Transfer-Encoding": "chunked"})]
    url = f"http://{site.place}/a.jsonl"

    assert "announces 17 bytes, over 4" in refusal(tmp_path, url, max_download_bytes=4)
    assert "sends over 4 bytes" in refusal(tmp_path, url, max_download_bytes=4)
    assert list((tmp_path / "store/_downloads").iterdir()) == []


def test_a_file_longer_than_announced_is_refused(site: Site, tmp_path: Path) -> None:
    site.answers = [(200, LINE + b"more", {"Content-Length": str(len(LINE))})]

    message = refusal(tmp_path, f"http://{site.place}/a.jsonl")

    assert "sends more than the 17 bytes that it announces, attempt 1 of 4" in message


def test_a_file_shorter_than_announced_is_asked_for_again(site: Site, tmp_path: Path) -> None:
    site.answers = [(200, LINE[:4], {"Content-Length": "17"})] * 4

    message = refusal(tmp_path, f"http://{site.place}/a.jsonl")

    assert "cut 13 bytes before the end, attempt 4 of 4" in message


def test_a_server_that_asks_for_a_longer_pause_than_there_is_time_is_given_up_at_once(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(transports.RETRY_VARIABLE, "20")
    site.answers = [(429, b"", {"Retry-After": "86400"})]

    message = refusal(tmp_path, f"http://{site.place}/a.jsonl")

    assert "asked to wait 86,400 s, over the TOKENMILL_RETRY_SECONDS of 20, attempt 1 of" in message


def test_a_silent_server_is_not_asked_again_when_the_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "READ_SECONDS", 0.1)
    monkeypatch.setenv(transports.RETRY_VARIABLE, "0.05")
    with socket.create_server(("127.0.0.1", 0)) as server:
        message = refusal(tmp_path, f"http://127.0.0.1:{server.getsockname()[1]}/a.jsonl")
    assert "timed out, attempt 1 of 4" in message


def test_a_server_that_keeps_the_connection_open_costs_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "CLOSE_SECONDS", 0.05)

    class Handler(Answering):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.answer(200, {"Content-Length": str(len(LINE))}, LINE)
            self.close_connection = False  # though it was asked to close

    with served(Handler) as url:
        file = find(tmp_path, f"{url}/a.jsonl")

    assert file.bytes == len(LINE)


@pytest.mark.parametrize(
    ("status", "headers", "reason"),
    [
        (206, {}, "HTTP 206 Partial Content, which is not the whole file"),
        (204, {}, "HTTP 204 No Content, which is not the whole file"),
        (200, {"Content-Encoding": "br"}, "encoded as 'br', which was not asked"),
        (302, {"Location": "ftp://127.0.0.1:9/a"}, "ftp://127.0.0.1:9/a, which is not http(s)"),
        (302, {"Location": "file:///etc/passwd"}, "or one that is not http(s)"),
    ],
)
def test_an_answer_that_is_not_the_file_is_refused_at_once(
    site: Site, tmp_path: Path, status: int, headers: dict[str, str], reason: str
) -> None:
    site.answers = [(status, b"" if status == 204 else LINE, headers)] * 2  # with a range, without

    message = refusal(tmp_path, f"http://{site.place}/a.jsonl")

    assert reason in message and "attempt 1 of 4" in message


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl"])
def test_a_file_that_is_declared_as_encoded_is_stored_as_it_is_and_read(
    site: Site, tmp_path: Path, name: str
) -> None:
    body = gzip.compress(LINE)
    site.answers = [(200, body, {"Content-Encoding": "x-gzip"})]
    file = find(tmp_path, f"http://{site.place}/{name}")
    source = SourceConfig(name="s", where=("x",))

    [chunk] = read_chunks(file, whole(file), source, 1 << 20)

    assert file.path.read_bytes() == body
    assert chunk.documents.height == 1


@pytest.mark.parametrize(
    "url",
    [
        "http://me:s3/cret@127.0.0.1:9/a.jsonl",
        "http://me:s3cret@[::1/a.jsonl?token=s3cret",
        "http:/me:s3cret@127.0.0.1:9/a.jsonl?token=s3cret",
        "ftp://me:s3cret@h/a.jsonl?s3cret",
        "http://me:s3cret@h℀/a.jsonl",
        "http://me:s3cret@h:port/a.jsonl",
        "http://me:s3cret@127.0.0.1:9/a?token=s3 cret",
        "http://me:s3cret@127.0.0.1:9/a.jsonl?s3cret#s3cret",
    ],
)
def test_no_error_and_no_cause_of_it_has_a_secret(site: Site, tmp_path: Path, url: str) -> None:
    with pytest.raises(InputError) as caught:
        find(tmp_path, url)

    error: BaseException | None = caught.value
    while error is not None:
        assert "s3" not in str(error).replace("s3://", "").replace("http(s), s3, gs", "")
        assert "cret" not in str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
