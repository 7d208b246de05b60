"""The questions of annotators that ask, and the files of the answers."""

from __future__ import annotations

from resources.corpus import Corpus
from resources.errors import InputError
from resources.settings.annotations import AskAnnotator
from resources.store.records import fingerprint_of

MOST_PROMPT_BYTES = 1 << 18


def prompt_of(corpus: Corpus, annotator: AskAnnotator) -> str:
    """Read the prompt of an annotator; InputError if it is no text."""
    path = corpus.config.parent / annotator.prompt
    named = f"annotations: annotator {annotator.name!r}: prompt {annotator.prompt!r}"
    try:
        content = path.read_bytes()
        text = content.decode()
    except OSError as error:
        raise InputError(f"{named} cannot be read ({error.strerror}). Correct `prompt`.") from None
    except UnicodeDecodeError:
        raise InputError(f"{named} is no UTF-8 text. Convert it.") from None
    if not text.strip() or len(content) > MOST_PROMPT_BYTES:
        raise InputError(f"{named} must have text, and at most {MOST_PROMPT_BYTES:,} bytes.")
    return text


def question_digest(annotator: AskAnnotator, prompt: str) -> str:
    """Return the digest of all that an answer depends on, besides the text."""
    return fingerprint_of(annotator.saying(), prompt)


def questions_of(corpus: Corpus) -> dict[str, str]:
    """Return the digest of the question of each annotator that asks."""
    asking = corpus.settings.asking
    return {each.name: question_digest(each, prompt_of(corpus, each)) for each in asking}


def asked_name(annotator: str, source: str, part: str) -> str:
    """Return the name of the part with the answers about a deduped part."""
    return f"{annotator}-{source}-{part}"
