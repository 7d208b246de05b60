"""The http(s) client: redirects that are followed, and those that the guard refuses."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from corpus_loader import http_client
from corpus_loader.errors import CorpusError
from corpus_loader.http_client import HttpTransport, Reach, StatusError, open_url, reach_of
from corpus_loader.transports import Interrupted


class Site(BaseHTTPRequestHandler):
    """Answers "here", and redirects from paths in `redirects`."""

    redirects: ClassVar[dict[str, str]] = {}
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        target = self.redirects.get(self.path)
        self.send_response(302 if target else 200)
        if target:
            self.send_header("Location", target)
        self.send_header("Content-Length", "0" if target else "4")
        self.end_headers()
        self.wfile.write(b"" if target else b"here")

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a local server."""
    monkeypatch.setattr(Site, "redirects", {})
    monkeypatch.setattr(Site, "asked", [])
    http_client.opener.cache_clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            http_client.opener.cache_clear()


@pytest.mark.parametrize(
    ("host", "reach"),
    [
        ("127.0.0.1", "loopback"),
        ("127.8.8.8", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("0.0.0.0", "loopback"),
        ("localhost", "loopback"),
        ("169.254.169.254", "link-local"),
        ("fe80::1%lo", "link-local"),
        ("10.1.2.3", "private"),
        ("172.16.0.1", "private"),
        ("192.168.1.1", "private"),
        ("100.64.0.1", "private"),
        ("fd00::1", "private"),
        ("8.8.8.8", "public"),
        ("2606:4700::1", "public"),
        ("example.org", "public"),
    ],
)
def test_networks_of_addresses(host: str, reach: Reach) -> None:
    assert reach_of(host) == reach


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


def test_the_loader_refuses_a_redirect_to_another_scheme(site: str) -> None:
    Site.redirects["/a"] = "ftp://127.0.0.1/secret"
    with pytest.raises(CorpusError, match=r"redirects to ftp://127\.0\.0\.1/secret"):
        next(HttpTransport(site).blocks("a", 0))


def test_a_loop_of_redirects_ends(site: str) -> None:
    Site.redirects["/a"] = "/a"
    with pytest.raises(StatusError, match="HTTP 302"):
        open_url(f"{site}/a", {})


def test_a_broken_url_is_no_fault_of_the_network() -> None:
    with pytest.raises(CorpusError, match="is not a valid URL"):
        open_url("http://a.b:port/x", {})
    with pytest.raises(Interrupted, match="refused"):
        open_url("http://127.0.0.1:9/x", {})
