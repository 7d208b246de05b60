"""A server with OpenAI's protocol, whose answers a test makes."""

import atexit
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

from served import Answering, served

Seen = list[tuple[dict[str, Any], dict[str, str]]]
Reply = tuple[int, dict[str, str], str | bytes]


@contextmanager
def chat_server(answer: Callable[[str], Reply]) -> Iterator[tuple[str, Seen]]:
    """The URL of an endpoint, and the bodies and headers of its requests.

    `answer` makes (status, headers, content) of the user's message; text is put into a completion.
    """
    seen: Seen = []

    class Chat(Answering):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append((body, dict(self.headers)))
            status, headers, content = answer(body["messages"][1]["content"])
            if isinstance(content, str):
                message = {"choices": [{"message": {"role": "assistant", "content": content}}]}
                usage = {"usage": {"total_tokens": 10}, "model": "judge-2026"}
                content = json.dumps(message | usage).encode()
            headers = headers | {"Content-Length": str(len(content))}
            self.answer(status, headers, content)

    with served(Chat) as url:
        yield f"{url}/v1", seen


def score(message: str) -> int:
    """What a judge says of a document: the number of its letters e, modulo 6."""
    return message.split("\n", 1)[1].rsplit("\n", 1)[0].count("e") % 6


def judge(message: str) -> Reply:
    """Answer with two scores of a document."""
    return 200, {}, f"Score: {score(message)}, or else {5 - score(message)}"


@cache
def judge_url() -> str:
    """The URL of a judge who answers as long as this process runs."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(chat_server(judge))[0]
