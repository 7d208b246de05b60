"""A headless Chromium, driven over its DevTools protocol."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from websockets.sync.client import ClientConnection, connect

T = TypeVar("T")
NAMES = ("chromium", "chromium-browser", "google-chrome")
SWITCHES = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--no-first-run", "--disable-background-networking", "--remote-debugging-port=0"),
    "--host-resolver-rules=MAP evil.example 127.0.0.1",
)


def chromium() -> str:
    """Path of the browser; without one the test is skipped, but fails with TOKENMILL_BROWSER=1."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        message = "no Chromium: install the system package chromium"
        if os.environ.get("TOKENMILL_BROWSER") == "1":
            pytest.fail(message)
        pytest.skip(message)
    return found


def wait_for(what: Callable[[], T], seconds: float = 60) -> T:
    """Return the first true value of a function; fail if there is none in time."""
    end = time.monotonic() + seconds
    while not (value := what()):
        assert time.monotonic() < end, f"waited for {seconds} s"
        time.sleep(0.05)
    return value


class Browser:
    """A running browser."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.numbers = itertools.count(1)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; events on the way are dropped."""
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        self.connection.send(json.dumps(message | ({"sessionId": session} if session else {})))
        while True:
            answer = json.loads(self.connection.recv(timeout=60))
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def open(self, url: str) -> Page:
        """Open a tab and wait until its page is loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        page = self.attach(target)
        self.call("Page.navigate", page.session, url=url)
        loaded = "location.href != 'about:blank' && document.readyState == 'complete'"
        wait_for(lambda: page.run(loaded))
        return page

    def attach(self, target: str) -> Page:
        """Return the page of a target's id."""
        result = self.call("Target.attachToTarget", targetId=target, flatten=True)
        return Page(self, result["sessionId"])

    def frames(self) -> list[Page]:
        """Frames that belong to another origin than their page."""
        infos = self.call("Target.getTargets", filter=[{}])["targetInfos"]
        return [self.attach(info["targetId"]) for info in infos if info["type"] == "iframe"]


FIND = """(text => {
    const has = e => e.innerText !== undefined && e.innerText.trim().startsWith(text);
    const shown = [...document.querySelectorAll('*')].filter(
        e => has(e) && e.getClientRects().length && !e.closest('[disabled]'));
    const inner = shown.filter(e => !shown.some(o => o !== e && e.contains(o))).pop();
    if (!inner) return null;
    inner.scrollIntoView({block: 'center'});
    const box = inner.getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
})"""


class Page:
    """A tab."""

    def __init__(self, browser: Browser, session: str) -> None:
        self.browser = browser
        self.session = session

    def run(self, script: str) -> Any:
        """Value of a JavaScript expression, as the page itself would compute it."""
        result = self.browser.call(
            "Runtime.evaluate",
            self.session,
            expression=script,
            awaitPromise=True,
            returnByValue=True,
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def text(self) -> str:
        """Text of the page, as a reader sees it."""
        return str(self.run("document.body?.innerText ?? ''"))

    def click(self, text: str, until: Callable[[], Any] = lambda: True) -> None:
        """Click what begins with a text, with the mouse, until something is true.

        A page that is being drawn may not listen yet, and what it opens may still move.
        """
        for _ in range(6):
            x, y = wait_for(lambda: self.place_of(text))
            for kind in ("mousePressed", "mouseReleased"):
                self.send(
                    "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
                )
            end = time.monotonic() + 5
            while time.monotonic() < end:
                if until():
                    return
                time.sleep(0.1)
        raise AssertionError(f"clicked {text!r} in vain: {self.text()[-2000:]}")

    def place_of(self, text: str) -> list[float] | None:
        """Return where what begins with a text is shown; None while it moves, or is not there."""
        look = f"{FIND}({json.dumps(text)})"
        first = self.run(look)
        time.sleep(0.2)
        return first if first == self.run(look) else None

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command to this tab."""
        return self.browser.call(method, self.session, **parameters)

    def screenshot(self, path: Path, height: int = 800) -> None:
        """Write a picture of the page, 1280 wide."""
        size = {"width": 1280, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        time.sleep(2)  # it is drawn again
        path.write_bytes(b64decode(self.send("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def running_browser(folder: Path) -> Iterator[Browser]:
    """Start a browser with a profile of its own, and end it."""
    command = [chromium(), *SWITCHES, f"--user-data-dir={folder}", "about:blank"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        active = folder / "DevToolsActivePort"
        wait_for(lambda: active.is_file() and "/devtools" in active.read_text())
        port, path = active.read_text().split()
        address = f"ws://127.0.0.1:{port}{path}"
        with connect(address, max_size=None, proxy=None) as connection:
            browser = Browser(connection)
            yield browser
            browser.call("Browser.close")
    finally:
        process.terminate()
        process.wait(20)
