"""Processes that read HTML pages: only what is a page's own doing is held against the page."""

import signal
import subprocess

from input_files import read, write
from prelude import Callable, Path, os, pytest, sys, time

from assets.raw.readers import html_child, page_child
from assets.raw.readers.page_child import ChildError, PageError, page_text

PAGE = b"<main><p>The page is read.</p></main>"
WARC_PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + PAGE
WARC = b"WARC/1.0\r\nWARC-Type: response\r\nContent-Type: application/http; msgtype=response\r\n"
Behave = Callable[[str], None]


@pytest.fixture
def behave(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Behave:
    """Let children run code before they answer a page, which is `request`."""

    def behave(code: str) -> None:
        script = Path(html_child.__file__).read_text()
        answer = '    """Return the answer to a page."""\n'
        assert answer in script
        (tmp_path / "html_child.py").write_text(script.replace(answer, f"{answer}    {code}\n"))

    monkeypatch.setattr(page_child, "SCRIPT", tmp_path / "html_child.py")
    monkeypatch.setattr(page_child, "_of_thread", type(page_child._of_thread)())
    return behave


def child() -> subprocess.Popen[bytes]:
    found: subprocess.Popen[bytes] = page_child._of_thread.child.process
    return found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_child_that_is_killed_costs_no_page(number: signal.Signals) -> None:
    assert page_text(PAGE)
    os.kill(child().pid, number)
    assert page_text(PAGE) == "The page is read."


def test_an_interrupt_from_the_terminal_does_not_reach_a_child() -> None:
    assert page_text(PAGE)
    before = child().pid
    assert os.getpgid(before) == before != os.getpgrp()
    os.kill(before, signal.SIGINT)
    assert (page_text(PAGE), child().pid) == ("The page is read.", before)


@pytest.mark.parametrize("number", ["SIGKILL", "SIGINT", "SIGTERM", "SIGUSR1"])
def test_children_that_always_end_for_another_reason_end_the_part(
    tmp_path: Path, behave: Behave, number: str
) -> None:
    code = f"signal.signal(2, signal.SIG_DFL); signal.raise_signal(signal.{number})"
    behave(f'{code} if b"page" in request else None')
    length = f"Content-Length: {len(WARC_PAGE)}\r\n\r\n".encode()
    for file in (
        write(tmp_path, "a.html", PAGE),
        write(tmp_path, "a.warc", WARC + length + WARC_PAGE + b"\r\n\r\n"),
    ):
        with pytest.raises(ChildError, match="no fault of the page"):
            read(file)


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGBUS"])
def test_a_page_that_crashes_its_children_alone_is_to_blame(
    tmp_path: Path, behave: Behave, name: str
) -> None:
    behave(f'signal.raise_signal(signal.{name}) if b"bad" in request else None')
    chunk = read(write(tmp_path, "a.html", b"<p>a bad page</p>"))
    assert chunk.quarantine["error"].to_list() == [page_child.CRASHED]
    assert page_text(PAGE) == "The page is read."


def test_children_that_crash_for_every_page_blame_none(behave: Behave) -> None:
    behave('signal.raise_signal(signal.SIGSEGV) if b"page" in request else None')
    with pytest.raises(ChildError):
        page_text(PAGE)


def test_one_crash_beside_a_kill_blames_no_page(tmp_path: Path, behave: Behave) -> None:
    """The first child crashes, the second is killed: the third is asked again, and answers."""
    mark = f'__import__("pathlib").Path({str(tmp_path)!r})'
    count = f'len(list({mark}.glob("*.n")))'
    touch = f'({mark} / f"{{os.getpid()}}.n").touch()'
    kill = f"signal.raise_signal((11, 9)[{count} - 1])"
    behave(f'b"page" in request and ({touch}, {count} < 3 and {kill})')
    assert page_text(PAGE) == "The page is read."


def test_a_page_over_a_limit_is_to_blame_at_once(behave: Behave) -> None:
    behave('signal.raise_signal(signal.SIGXCPU) if b"cpu" in request else None')
    with pytest.raises(PageError, match="10 s of CPU time or 2 GiB"):
        page_text(b"cpu")
    behave('bytearray(3 << 30) if b"memory" in request else None')
    with pytest.raises(PageError, match="10 s of CPU time or 2 GiB"):
        page_text(b"memory")


def test_a_lack_of_memory_below_the_limit_of_a_child_blames_no_page(behave: Behave) -> None:
    limit = "resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))"
    behave(f'b"page" in request and ({limit}, bytearray(1 << 30))')
    with pytest.raises(ChildError, match="exit code 1"):
        page_text(PAGE)


@pytest.mark.parametrize("limit", ["-v 1000000", "-t 5"])
def test_limits_of_the_whole_build_blame_no_page(limit: str) -> None:
    code = "from assets.raw.readers.page_child import page_text; page_text(b'a page')"
    command = f'ulimit {limit}; exec "{sys.executable}" -c "{code}"'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert "ChildError" in done.stderr and "exit code 1" in done.stderr


def test_an_interrupted_answer_is_not_that_of_the_next_page(behave: Behave) -> None:
    behave('time.sleep(0.5) if b"slow" in request else None')
    code = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            for _ in range(9):
                page_text(b"<main><p>slow</p></main>")
    finally:
        signal.signal(signal.SIGALRM, code)
    assert page_text(PAGE) == "The page is read."


def test_no_child_outlives_its_parent(tmp_path: Path) -> None:
    code = (
        "import os, sys; from assets.raw.readers import page_child as p; p.page_text(b'a page'); "
        "print(p._of_thread.child.process.pid, flush=True); "
        "p._of_thread.child.pages.send_bytes(bytes(1) + b'<div>' * 3_000_000); sys.stdin.read()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    number = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    until = time.monotonic() + 5
    while is_running(number):
        assert time.monotonic() < until
        time.sleep(0.01)


def is_running(number: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{number}/status").read_text()
    except OSError:
        return False
