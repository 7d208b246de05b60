"""A chat endpoint with OpenAI's protocol: one request, repeated as long as that may help.

Source: OpenAI's API reference, "Create chat completion"; vLLM, SGLang and llama.cpp serve the same.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from corpus_loader.places.http_client import StatusError, open_url, whole_body
from corpus_loader.places.transports import Interrupted, Patience
from corpus_loader.places.url_secrets import shown
from resources.errors import InputError

MAX_ANSWER_BYTES = 4 << 20
READ_SECONDS = 120.0  # a long answer comes in one piece
OF_THE_TEXT = frozenset({400, 413, 422})  # statuses that another document may not get


class Refused(Exception):
    """The server does not answer about this text; the message is a status, in words."""


class Message(msgspec.Struct):
    """The text of an answer."""

    content: str | None = None


class Choice(msgspec.Struct):
    """One of the answers."""

    message: Message


class Usage(msgspec.Struct):
    """Tokens of a request and its answer."""

    total_tokens: int = 0


class Reply(msgspec.Struct):
    """What is read of an answer's JSON."""

    choices: list[Choice]
    model: str = ""
    usage: Usage | None = None


@dataclass
class Budget:
    """Requests and tokens that a run may still use; None: any number."""

    requests: int | None
    tokens: int | None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> bool:
        """Return whether another request may be sent, and count it."""
        with self.lock:
            if self.requests == 0 or (self.tokens is not None and self.tokens <= 0):
                return False
            self.requests = None if self.requests is None else self.requests - 1
            return True

    def use(self, tokens: int) -> None:
        """Count the tokens of an answer: those in flight may go beyond."""
        with self.lock:
            self.tokens = None if self.tokens is None else self.tokens - tokens


@dataclass(frozen=True)
class Endpoint:
    """The URL before `/chat/completions`, and the key that requests have, if any."""

    url: str
    api_key: str | None = field(default=None, repr=False)

    def ask(self, body: Mapping[str, Any]) -> Reply:
        """Return the answer to a request; the pauses that the server asks for are kept.

        Raises Refused for a status about this text alone, InputError for any other that another
        attempt will not change, CorpusError if no answer comes for the time of Patience.
        """
        url, patience = f"{self.url.rstrip('/')}/chat/completions", Patience()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        content = msgspec.json.encode(body)
        while True:
            try:
                with open_url(url, headers, READ_SECONDS, content) as answer:
                    found = b"".join(whole_body(answer, MAX_ANSWER_BYTES))
                return msgspec.json.decode(found, type=Reply)
            except Interrupted as error:
                advice = "Start the server, or remove the annotator; what is answered is kept."
                patience.wait(f"{shown(url)} does not answer: {error}", error, advice)
            except StatusError as error:
                if error.status in OF_THE_TEXT:
                    raise Refused(error.fact) from None
                raise InputError(
                    f"{error}. Compare `endpoint`, `model` and the key in the environment "
                    "(`api_key`) with what the server expects."
                ) from None
            except msgspec.DecodeError as error:
                raise InputError(
                    f"{shown(url)} answers with no chat completion ({error}). Correct `endpoint`: "
                    "it ends before /chat/completions, often with /v1."
                ) from None
