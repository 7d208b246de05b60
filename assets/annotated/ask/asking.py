"""Ask about many texts at a time, and write each answer down before the next is asked for."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from assets.annotated.ask.endpoint import Budget, Endpoint, Refused
from assets.annotated.ask.journal_files import Answer, Journal
from assets.annotated.ask.question import Question
from resources.errors import InputError

NO_ANSWER = "the answer is not in the form"
FEWEST = 5  # texts before a server that refuses all of them is the fault
REFUSED = "refused: "


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
