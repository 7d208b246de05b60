"""Ask about many texts at a time, and write each answer down before the next is asked for."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from assets.annotated.ask.endpoint import Budget, Endpoint, Refused
from assets.annotated.ask.question import Question, Values
from resources.errors import InputError

NO_ANSWER = "the answer is not in the form"
FEWEST = 5  # texts before a server that refuses all of them is the fault
REFUSED = "refused: "


class Answer(msgspec.Struct, frozen=True):
    """What was answered about a text, by the hash of the text; `reason` why `values` is empty."""

    key: str
    values: Values = {}
    model: str = ""
    tokens: int = 0
    reason: str | None = None


@dataclass
class Journal:
    """Answers of a part that is not published yet: a killed run repeats what was in flight."""

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


@dataclass(frozen=True)
class Asking:
    """A question, whom it is asked, how many at a time, and what it may cost in this run."""

    question: Question
    endpoint: Endpoint
    parallel: int
    budget: Budget

    def ask_all(self, texts: Mapping[str, str], journal: Journal) -> dict[str, Answer]:
        """Return the answers about texts, by key; those beyond the budget are not there.

        Raises what `Endpoint.ask` does, and InputError for a server that refuses most texts. What
        was answered until then is in the journal.
        """
        journal.repair()
        answers = {key: a for key, a in journal.read().items() if key in texts}
        waiting = [key for key in texts if key not in answers]
        stop = threading.Event()

        def ask_one(key: str) -> Answer | None:
            if stop.is_set() or not self.budget.take():
                return None
            try:
                answer = self.ask(key, texts[key])
                if not is_refused(answer):  # asked again if the server is at fault
                    journal.add(answer)
            except BaseException:
                stop.set()
                raise
            return answer

        with ThreadPoolExecutor(self.parallel) as pool:
            found = [answer for answer in pool.map(ask_one, waiting) if answer is not None]
        refused = [answer for answer in found if is_refused(answer)]
        if len(refused) >= max(FEWEST, len(found) / 2):
            raise InputError(
                f"the server refuses {len(refused)} of {len(found)} texts ({refused[0].reason}): "
                "that is no fault of theirs. Compare `model`, `parameters` and `max_chars` with "
                "what it accepts."
            )
        return answers | {answer.key: answer for answer in found}

    def ask(self, key: str, text: str) -> Answer:
        """Ask about one text."""
        try:
            reply = self.endpoint.ask(self.question.request(text))
        except Refused as error:
            return Answer(key, reason=f"{REFUSED}{error}")
        tokens = reply.usage.total_tokens if reply.usage else 0
        self.budget.use(tokens)
        content = reply.choices[0].message.content if reply.choices else None
        values = self.question.values(content or "")
        reason = NO_ANSWER if values is None else None
        return Answer(key, values or {}, reply.model, tokens, reason)


def is_refused(answer: Answer) -> bool:
    """Return whether the server has refused to answer about a text."""
    return answer.reason is not None and answer.reason.startswith(REFUSED)
