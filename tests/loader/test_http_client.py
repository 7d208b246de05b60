"""The http(s) client: redirects that are followed, and those that the guard refuses."""

import socket
import threading
from contextlib import ExitStack, suppress
from typing import ClassVar

from prelude import Callable, Iterator, Path, pytest, time
from served import Answering, served
from tables import cases

from corpus_loader.places import http_client
from corpus_loader.places.errors import CorpusError
from corpus_loader.places.http_client import (
    Reach,
    StatusError,
    open_url,
    reach_of,
    read_block,
)
from corpus_loader.places.http_transport import HttpTransport
from corpus_loader.places.transports import Interrupted

Speech = Callable[[socket.socket], None]


class Site(Answering):
    """Answers "here", redirects from paths in `redirects`, and has no file "gone"."""

    redirects: ClassVar[dict[str, str]] = {}
    asked: ClassVar[list[str]] = []
    headers_of: ClassVar[list[dict[str, str]]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.headers_of.append(dict(self.headers))
        if "/gone" in self.path:
            self.send_error(404, f"nothing at {self.path}")
            return
        target = self.redirects.get(self.path)
        if target:
            self.answer(302, {"Location": target, "Content-Length": "0"}, b"")
        else:
            self.answer(200, {"Content-Length": "4"}, b"here")


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a local server."""
    monkeypatch.setattr(Site, "redirects", {})
    monkeypatch.setattr(Site, "asked", [])
    monkeypatch.setattr(Site, "headers_of", [])
    http_client.opener.cache_clear()
    with served(Site) as url:
        yield url
    http_client.opener.cache_clear()


@cases("""
    reach      | hosts
    loopback   | 127.0.0.1 127.8.8.8 ::1 ::ffff:127.0.0.1 0.0.0.0 localhost
    link-local | 169.254.169.254 fe80::1%lo
    private    | 10.1.2.3 172.16.0.1 192.168.1.1 100.64.0.1 fd00::1
    public     | 8.8.8.8 2606:4700::1 example.org
    # In disguise.
    loopback   | 2130706433 0x7f.1 0177.0.0.1 127.1 LOCALHOST. a.localhost ::127.0.0.1 2002:7f00:1::
    link-local | "64:ff9b::a9fe:a9fe"
    private    | ::ffff:10.0.0.1 fec0::1 224.0.0.1
    public     | 64:ff9b::808:808 2852039166.example
""")
def test_networks_of_addresses(reach: Reach, hosts: str) -> None:
    assert {host: reach_of(host) for host in hosts.split()} == dict.fromkeys(hosts.split(), reach)


def test_a_redirect_within_one_kind_of_network_is_followed(site: str) -> None:
    Site.redirects |= {"/a": f"{site}/b", "/b": "/c"}
    with open_url(f"{site}/a", {}) as answer:
        assert answer.read() == b"here"
    assert Site.asked == ["/a", "/b", "/c"]


@pytest.mark.parametrize("origin", ["public", "private", "link-local"])
def test_a_redirect_to_this_machine_from_elsewhere_is_refused(
    site: str, monkeypatch: pytest.MonkeyPatch, origin: Reach
) -> None:
    Site.redirects["/a"] = f"{site}/secret"
    reaches: list[Reach] = [origin, "loopback"]
    monkeypatch.setattr(http_client, "reach_of", lambda _: reaches.pop(0))

    with pytest.raises(CorpusError, match=f"redirect from a {origin} address led to it, a loop"):
        open_url(f"{site}/a", {})
    assert Site.asked == ["/a"]


def test_the_guard_looks_at_the_address_and_not_at_the_name(
    site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Site.redirects["/a"] = site.replace("127.0.0.1", "harmless.example") + "/secret"
    connect = socket.create_connection
    monkeypatch.setattr(
        socket, "create_connection", lambda to, *rest: connect(("127.0.0.1", to[1]), *rest)
    )
    looked_at, reach = [], http_client.reach_of

    def judge(host: str) -> Reach:
        looked_at.append(host)
        return "public" if len(looked_at) == 1 else reach(host)

    monkeypatch.setattr(http_client, "reach_of", judge)
    with pytest.raises(CorpusError, match=r"harmless\.example.* was not requested"):
        open_url(f"{site}/a", {})
    assert looked_at == ["127.0.0.1"] * 2 and Site.asked == ["/a"]


def test_a_proxy_is_not_asked_for_addresses_of_its_own_network(
    site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", site)
    monkeypatch.setenv("no_proxy", "")
    first, metadata = "http://mirror.example/a", "http://169.254.169.254/latest"
    Site.redirects[first] = metadata

    with pytest.raises(CorpusError, match="from a public address led to it, a link-local one"):
        open_url(first, {})
    assert Site.asked == [first]


def test_a_redirect_to_another_scheme_is_refused_and_a_loop_ends(site: str) -> None:
    Site.redirects |= {"/a": "ftp://127.0.0.1/secret", "/loop": "/loop"}
    with pytest.raises(CorpusError, match=r"redirects to ftp://127\.0\.0\.1/secret"):
        next(HttpTransport(site).blocks("a", 0))
    with pytest.raises(StatusError, match="HTTP 302"):
        open_url(f"{site}/loop", {})


def test_a_broken_url_is_no_fault_of_the_network() -> None:
    with pytest.raises(CorpusError, match="is not a valid URL"):
        open_url("http://a.b:port/x", {})
    with pytest.raises(Interrupted, match="refused"):
        open_url("http://127.0.0.1:9/x", {})


def test_a_user_and_a_password_are_sent_to_their_host_only(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(Site) as other:
        Site.redirects |= {"/a": "/b", "/b": f"{other}/c"}
        open_url(site.replace("//", "//me:pw@") + "/a", {"Cookie": "c", "X-Kept": "x"}).close()

    sent = [headers.get("Authorization") for headers in Site.headers_of]
    assert sent == ["Basic bWU6cHc=", "Basic bWU6cHc=", None]
    assert [headers.get("Cookie") for headers in Site.headers_of] == ["c", "c", None]
    assert [headers.get("X-Kept") for headers in Site.headers_of] == ["x"] * 3


def test_errors_have_neither_secrets_nor_words_of_the_server(site: str) -> None:
    secret_url = site.replace("//", "//me:pw@") + "/gone?token=abc"
    with pytest.raises(StatusError) as caught:
        open_url(secret_url, {})
    assert str(caught.value) == f"{site}/gone?token=***: HTTP 404 Not Found"
    assert caught.value.__suppress_context__ and caught.value.__cause__ is None

    with pytest.raises(Interrupted) as cut_off:
        open_url("http://me:pw@127.0.0.1:9/x?token=abc", {})
    assert "http://127.0.0.1:9/x?token=***: " in str(cut_off.value)


@pytest.fixture
def speak() -> Iterator[Callable[[Speech], str]]:
    """Starts a server that gives each connection to a function; returns its URL."""
    with ExitStack() as stack:

        def start(speech: Speech) -> str:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

            def serve() -> None:
                with suppress(OSError):
                    while True:
                        connection, _ = listener.accept()
                        with connection, suppress(OSError):
                            connection.recv(1 << 16)
                            speech(connection)

            thread = threading.Thread(target=serve)
            thread.start()
            stack.callback(thread.join)
            stack.callback(listener.shutdown, socket.SHUT_RDWR)
            return f"http://127.0.0.1:{listener.getsockname()[1]}/a"

        yield start


def drip(before: bytes, dripped: bytes) -> Speech:
    def speech(connection: socket.socket) -> None:
        connection.sendall(before)
        while True:
            connection.sendall(dripped)
            time.sleep(0.01)

    return speech


@cases(r"""
    before                    | dripped
    b"HTTP/1.1 200 OK\r\nX: " | b"x"
    b""                       | b"HTTP/1.1 100 Continue\r\n\r\n"
    b""                       | b"x"
""")
def test_headers_that_never_end_are_given_up(
    speak: Callable[[Speech], str], monkeypatch: pytest.MonkeyPatch, before: bytes, dripped: bytes
) -> None:
    monkeypatch.setattr(http_client, "ANSWER_SECONDS", 0.3)
    with pytest.raises(Interrupted, match=r"too slow: not done within 0\.3 s"):
        open_url(speak(drip(before, dripped)), {})


@cases(r"""
    before                                                        | dripped
    b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"         | b"x"
    b"HTTP/1.1 200 OK\r\n\r\n"                                    | b"x"
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"      | b"1\r\nx\r\n"
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;"    | b"x"
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" | b"X: y\r\n"
""")
def test_a_body_that_drips_is_given_up(
    speak: Callable[[Speech], str], monkeypatch: pytest.MonkeyPatch, before: bytes, dripped: bytes
) -> None:
    monkeypatch.setattr(http_client, "BLOCK_SECONDS", 0.3)
    with (
        open_url(speak(drip(before, dripped)), {}) as answer,
        pytest.raises(Interrupted, match=r"too slow: not done within 0\.3 s"),
    ):
        read_block(answer)


def test_the_endless_body_of_a_redirect_is_not_read(speak: Callable[[Speech], str]) -> None:
    target = speak(lambda link: link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere"))
    head = f"HTTP/1.1 302 Found\r\nLocation: {target}\r\n\r\n".encode()
    with open_url(speak(drip(head, b"x")), {}) as answer:
        assert answer.read() == b"here"
