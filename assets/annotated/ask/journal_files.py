"""Answers that are not published yet, a line each: a killed run repeats what was in flight."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from assets.annotated.ask.question import Values


class Answer(msgspec.Struct, frozen=True):
    """What was answered about a text, by the hash of the text; `reason` why `values` is empty."""

    key: str
    values: Values = {}
    model: str = ""
    tokens: int = 0
    reason: str | None = None


@dataclass
class Journal:
    """The answers about the documents of a part."""

    path: Path
    lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self) -> dict[str, Answer]:
        """Return the answers by key; a line that was cut off is none."""
        found = dict[str, Answer]()
        lines = self.path.read_bytes().split(b"\n")[:-1] if self.path.exists() else []
        for line in lines:
            answer = msgspec.json.decode(line, type=Answer)
            found[answer.key] = answer
        return found

    def add(self, answer: Answer) -> None:
        """Write an answer to the disk."""
        with self.lock, self.path.open("ab") as file:
            file.write(msgspec.json.encode(answer) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def repair(self) -> None:
        """Cut a line that a killed run began."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+") as file:
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
