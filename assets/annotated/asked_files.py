"""The questions of annotators that ask, and the files of the answers."""

from __future__ import annotations

from collections import Counter, defaultdict

from assets.annotated.annotated_records import AskedNumbers
from resources.corpus import Corpus
from resources.errors import InputError
from resources.settings.annotations import AskAnnotator
from resources.store.records import Empty, Manifest, fingerprint_of

MOST_PROMPT_BYTES = 1 << 18
MOST_FAILED = 0.1  # of the texts that are asked about, before that is told


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


def unanswered_lines(manifest: Manifest[Empty, AskedNumbers]) -> list[str]:
    """Return a line for each annotator with texts to ask about, or that often gets no answer."""
    left, asked = Counter[str](), Counter[str]()
    failed = defaultdict[str, Counter[str]](Counter)
    for numbers in (part.stats.numbers for part in manifest.parts):
        left[numbers.annotator] += numbers.left
        asked[numbers.annotator] += sum(numbers.answered.values())
        failed[numbers.annotator].update(numbers.failed)
    lines = [
        f"{name}: {count:,} texts are not asked about yet; the next run goes on (`max_requests`)"
        for name, count in left.items()
        if count
    ]
    for name, reasons in failed.items():
        if reasons.total() > MOST_FAILED * asked[name]:
            told = "; ".join(f"{reason}: {count:,}" for reason, count in reasons.most_common(5))
            lines.append(f"{name}: {reasons.total():,} of {asked[name]:,} have no answer ({told})")
    return lines
