"""A web server on the loopback address that answers from a list."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from served import Answering, served

from corpus_loader.places import transports


@dataclass
class Site:
    """A web server that answers from a list of (status, body, headers)."""

    answers: list[tuple[int, bytes, dict[str, str]]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    asked: list[dict[str, str]] = field(default_factory=list)
    place: str = ""


@contextmanager
def answering_site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Serve a site; downloads wait a millisecond between attempts and know no credentials."""
    state = Site()

    class Handler(Answering):
        def do_GET(self) -> None:
            state.asked.append(dict(self.headers))
            state.paths.append(self.path)
            status, body, headers = state.answers.pop(0)
            self.answer(status, {"Content-Length": str(len(body)), **headers}, body)

    monkeypatch.setattr(transports, "FIRST_WAIT_SECONDS", 0.001)
    monkeypatch.setenv("NETRC", "/dev/null")
    with served(Handler) as url:
        state.place = url.removeprefix("http://")
        yield state
