"""The hook of a failed run: a real web server, real programs."""

from contextlib import suppress

import psutil
from builders import open_corpus, write_corpus
from prelude import Any, Iterator, Path, json, pytest, sys, time
from served import Answering, served

from resources.runs.failure_hook import WEBHOOK_VARIABLE, RunMessage, tell_once
from resources.runs.run_notes import StepFault
from resources.settings.pipeline import SettingsError

SECRET = "T0K3N-of-the-hook"
WRITE = "import sys; open('got.json', 'a').write(sys.stdin.read())"


class Receiver(Answering):
    """Keeps what it gets; the path says how it answers."""

    got: list[tuple[str, Any]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.got.append((self.path, json.loads(body)))
        if "slow" in self.path:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            for _ in range(300):  # a byte at a time keeps within every limit per read
                self.wfile.write(b"x")
                time.sleep(0.1)
            return
        is_moved = "moved" in self.path
        status = 302 if is_moved else 404 if "gone" in self.path else 200
        self.answer(status, {"Location": "/elsewhere"} if is_moved else {}, b"")


@pytest.fixture
def receiver() -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """Address of a web server, and what it got."""
    got: list[tuple[str, Any]] = []
    handler = type("Kept", (Receiver,), {"got": got})
    with served(handler) as url:
        yield url, got


def message(run_id: str = "1234") -> RunMessage:
    """A run that failed at one step."""
    failed = (StepFault("raw", "no file matches in/*.jsonl"),)
    error = failed[0].error
    return RunMessage("p.yaml", "store", "build_corpus", run_id, "FAILURE", error, failed)


def corpus_with(folder: Path, **hook: Any) -> Any:
    return open_corpus(write_corpus(folder, notify=hook))


def test_webhook_and_command_get_the_same_json_once(
    tmp_path: Path, receiver: tuple[str, list[tuple[str, Any]]]
) -> None:
    address, got = receiver
    command = [sys.executable, "-c", WRITE]
    corpus = corpus_with(
        tmp_path, webhook=f"{address}/{SECRET}", command=command, ui="http://127.0.0.1:3000/"
    )

    lines = tell_once(corpus, message())
    assert lines == [
        "notify.webhook: sent, status 200",
        f"notify.command: {sys.executable!r} ended with exit code 0",
    ]
    assert tell_once(corpus, message()) == []

    [(path, body)] = got
    assert path == f"/{SECRET}"
    assert body == json.loads((tmp_path / "got.json").read_text())
    assert body == {
        "corpus": "p.yaml",
        "store": "store",
        "job": "build_corpus",
        "run_id": "1234",
        "status": "FAILURE",
        "error": "no file matches in/*.jsonl",
        "failed": [{"step": "raw", "error": "no file matches in/*.jsonl"}],
        "failed_sources": {},
        "drifts": [],
        "url": "http://127.0.0.1:3000/runs/1234",
    }
    assert len(tell_once(corpus, message("5678"))) == 2


def test_the_url_of_the_environment_comes_first(
    tmp_path: Path,
    receiver: tuple[str, list[tuple[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address, got = receiver
    monkeypatch.setenv(WEBHOOK_VARIABLE, f"{address}/mine")
    tell_once(corpus_with(tmp_path, webhook="http://127.0.0.1:9/"), message())
    assert [path for path, _ in got] == ["/mine"]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("gone", "notify.webhook: refused, status 404"),
        ("moved", "notify.webhook: refused, status 302"),
        ("slow", "notify.webhook: no answer within 1 s"),
    ],
)
def test_a_webhook_that_fails_is_a_line_without_its_url(
    tmp_path: Path, receiver: tuple[str, list[tuple[str, Any]]], path: str, line: str
) -> None:
    address, got = receiver
    corpus = corpus_with(tmp_path, webhook=f"{address}/{SECRET}/{path}", seconds=1)
    start = time.monotonic()
    assert tell_once(corpus, message()) == [line]
    assert time.monotonic() - start < 20  # 30 s to the last byte
    assert len(got) == 1
    assert SECRET not in repr(corpus.settings)


def test_no_server_and_no_program_are_lines(tmp_path: Path) -> None:
    corpus = corpus_with(tmp_path, webhook=f"http://127.0.0.1:9/{SECRET}", command=["no-such"])
    assert tell_once(corpus, message()) == [
        "notify.webhook: not sent (ConnectionRefusedError)",
        "notify.command: 'no-such' cannot be started (No such file or directory)",
    ]


def test_a_command_ends_at_its_time_limit_with_all_that_it_started(tmp_path: Path) -> None:
    program = (
        "import subprocess, sys, time;"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        "open('child', 'w').write(str(child.pid));"
        "time.sleep(60)"
    )
    corpus = corpus_with(tmp_path, command=[sys.executable, "-c", program], seconds=3)
    start = time.monotonic()
    assert "was ended after 3 s" in tell_once(corpus, message())[0]
    assert time.monotonic() - start < 30
    assert has_ended(int((tmp_path / "child").read_text()))


def has_ended(pid: int) -> bool:
    """Wait until a process, not our child, is gone or a zombie."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        with suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                time.sleep(0.05)
                continue
        return True
    return False


def test_a_command_gets_no_shell(tmp_path: Path) -> None:
    corpus = corpus_with(tmp_path, command=[sys.executable, "-c", "pass", "; touch shell"])
    assert tell_once(corpus, message())[0].endswith("exit code 0")
    assert not (tmp_path / "shell").exists()


@pytest.mark.parametrize("url", ["ftp://host/T0K3N", "file:///T0K3N", "T0K3N", "https:///T0K3N"])
def test_what_is_no_web_address_is_refused_and_not_repeated(tmp_path: Path, url: str) -> None:
    config = write_corpus(tmp_path, notify={"webhook": url})
    with pytest.raises(SettingsError, match=r"notify.webhook: must be a URL with http") as refused:
        open_corpus(config)
    assert "T0K3N" not in str(refused.value)
