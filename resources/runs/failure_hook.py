"""Tell of a run that failed or found a drift, by the webhook and the command of `notify`.

Once per run: the first process to make the file `<run>.told` beside its note tells of it. Whatever
happens to the hook is a line for the run's log; it never fails a run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from resources.corpus import Corpus
from resources.runs.run_notes import StepFault, notes_folder
from resources.settings.operations import NotifyConfig, is_web_address
from resources.store.records import to_json

WEBHOOK_VARIABLE = "TOKENMILL_WEBHOOK"


class RunMessage(msgspec.Struct, frozen=True):
    """The JSON that the webhook and the command get."""

    corpus: str
    store: str
    job: str
    run_id: str
    status: str
    error: str
    failed: tuple[StepFault, ...]
    failed_sources: dict[str, str] = {}  # reason by source
    drifts: tuple[str, ...] = ()
    url: str | None = None


def tell_once(corpus: Corpus, message: RunMessage, seconds: float | None = None) -> list[str]:
    """Call the hook for a run, unless it was called before; return lines for the log.

    `seconds` is a time limit, if it is less than that of pipeline.yaml.
    """
    hook = corpus.settings.notify
    url = webhook_of(hook)
    if not (url or hook.command) or not claim(corpus.store.root, message.run_id):
        return []
    limit = min(hook.seconds, seconds or hook.seconds)
    link = f"{hook.ui.rstrip('/')}/runs/{message.run_id}" if hook.ui else None
    body = to_json(msgspec.structs.replace(message, url=link))
    lines = []
    if url:
        lines.append(f"notify.webhook: {attempt(lambda: post(url, body, limit), limit)}")
    if command := hook.command:
        folder = corpus.config.parent
        lines.append(f"notify.command: {run_command(command, body, folder, limit)}")
    return lines


def webhook_of(hook: NotifyConfig) -> str | None:
    """Return the URL of the webhook, that of the environment first."""
    if given := os.environ.get(WEBHOOK_VARIABLE):
        return given
    return hook.webhook.get_secret_value() if hook.webhook else None


def claim(store: Path, run_id: str) -> bool:
    """Return whether this process is the first to tell of a run."""
    folder = notes_folder(store)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        os.close(os.open(folder / f"{run_id}.told", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def attempt(call: Callable[[], str], seconds: float) -> str:
    """Return what a call returns, or that it took too long.

    The time limit of urllib is one per read: a server that sends a byte a second keeps within it.
    """
    answer = [f"no answer within {seconds:g} s"]

    def run() -> None:
        answer[0] = call()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    return answer[0]


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuse redirects: a POST is not repeated elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        """Follow none: the status becomes an error."""
        return None


def post(url: str, body: bytes, seconds: float) -> str:
    """Send JSON to a URL; return how it went, without the URL."""
    if not is_web_address(url):
        return f"${WEBHOOK_VARIABLE} is no URL with http:// or https:// and a host"
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.build_opener(NoRedirect).open(request, timeout=seconds) as answer:
            return f"sent, status {answer.status}"
    except urllib.error.HTTPError as error:
        with error:
            return f"refused, status {error.code}"
    except urllib.error.URLError as error:
        return f"not sent ({type(error.reason).__name__})"
    except Exception as error:  # noqa: BLE001 - http.client and ssl raise many; none fails a run
        return f"not sent ({type(error).__name__})"


def run_command(command: tuple[str, ...], body: bytes, folder: Path, seconds: float) -> str:
    """Run a program with JSON on stdin; return how it ended. What it started ends with it."""
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        return f"{command[0]!r} cannot be started ({error.strerror})"
    with process:
        try:
            process.communicate(body, timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return f"{command[0]!r} was ended after {seconds:g} s"
    return f"{command[0]!r} ended with exit code {process.returncode}"
