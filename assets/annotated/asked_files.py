"""The questions of annotators that ask, and the files of the answers."""

from __future__ import annotations

from assets.annotated.annotated_records import ANSWERS, ASKED
from resources.corpus import Corpus
from resources.errors import InputError
from resources.made_under import check_made_under
from resources.settings.annotations import AskAnnotator
from resources.store.published import PublishedFile
from resources.store.records import fingerprint_of, required_file
from resources.store.store import StoreError
from resources.tasks import GLOBAL

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


def required_asked(
    corpus: Corpus, annotator: AskAnnotator, source: str, part: str
) -> tuple[tuple[PublishedFile, ...], list[str]]:
    """Return the file of an annotator's answers about a deduped part, and its digest.

    Raises StoreError if the answers are to another question, or older than the part.
    """
    asked = corpus.once("asked", lambda: newest_asked(corpus))
    record = asked.get(asked_name(annotator.name, source, part))
    if record is None:
        raise StoreError(
            f"asked[{GLOBAL}] has no answers about part {part} of the source {source!r}. "
            "Materialize asked first."
        )
    return (record[0],), [record[1]]


def newest_asked(corpus: Corpus) -> dict[str, tuple[PublishedFile, str]]:
    """Return the files of answers by name of the part, each with its digest."""
    manifest = corpus.store.newest(ASKED, GLOBAL)
    check_made_under(manifest, config=questions_of(corpus), section="annotations")
    files = {part.name: required_file(manifest, part, ANSWERS) for part in manifest.parts}
    return {name: (corpus.store.file_of(manifest, f), f.sha256) for name, f in files.items()}
