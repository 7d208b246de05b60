"""Takedowns that came after a mixture was made: a loader does not start on what they mean.

Requests are numbered without gaps and never changed, and a mixture says how many it obeys: one read
of a small file that is most often missing tells that there are no more, on any kind of store.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

from corpus_loader.mixture import Mixture
from corpus_loader.places.errors import CorpusError
from corpus_loader.places.files import DIGITS, Files
from corpus_loader.seal import unsealed

FOLDER = "_takedowns"
logger = logging.getLogger(__name__)


def check_accepted(number: object) -> None:
    """Raise CorpusError for what is no number of a takedown."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise CorpusError(
            f"accept_takedown is {number!r:.100}; it must be the number of a takedown, as "
            "`corpus takedown list` has it"
        )


def check_takedowns(files: Files, mixture: Mixture, accepted: int) -> None:
    """Raise CorpusError if a takedown that a mixture does not obey names a part it draws from.

    Those up to the number `accepted` are logged instead.
    """
    newer = dict(newer_takedowns(files, mixture.takedowns))
    withdrawn = {takedown.get("withdraws") for takedown in newer.values()}
    drawn = {source.name for source in mixture.sources if source.samples}
    found = {
        number: sorted(drawn & takedown.get("parts", {}).keys())
        for number, takedown in newer.items()
        if number not in withdrawn and "withdraws" not in takedown
    }
    concerned = {number: sources for number, sources in found.items() if sources}
    for number, sources in concerned.items():
        what = f"takedown {number} removed documents of {', '.join(sources)}"
        if number > accepted:
            raise CorpusError(
                f"{what} after the mixture of phase {mixture.phase!r} was made (it obeys "
                f"{mixture.takedowns}). Run `corpus build`, and open the newest mixture. To train "
                f"on with these documents: LoaderOptions(accept_takedown={max(concerned)})."
            )
        logger.warning(
            "%s: accept_takedown=%d lets phase %r draw them", what, accepted, mixture.phase
        )


def newer_takedowns(files: Files, obeyed: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the takedowns of a store after the first `obeyed`, with their numbers."""
    number = obeyed
    while True:
        number += 1
        name = f"{FOLDER}/{number:0{DIGITS}d}.json"
        try:
            takedown = json.loads(unsealed(files.read(name)))
            takedown["parts"].keys()
        except FileNotFoundError:
            return
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CorpusError(
                f"{name} is damaged ({type(error).__name__}: {error}): what it means must not be "
                "trained on. Put a copy of the file there."
            ) from error
        yield number, takedown
