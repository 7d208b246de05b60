"""The one error of the loader, and the advice that its messages end with."""

from __future__ import annotations

from corpus_loader.places.url_secrets import redacted


class CorpusError(RuntimeError):
    """The corpus, or a request to it, is invalid; the message says what to do, without secrets."""

    def __init__(self, message: str) -> None:
        super().__init__(redacted(message))


def repair(relative: str) -> str:
    """Return the advice for a broken file of a store."""
    return f"`corpus verify --repair` writes {relative} again; then start again from the last state"
