"""Compare two texts word by word.

Equal ends are cut off, and difflib compares the words between them. Its work can grow with the
square of their number, so that longer texts are compared by whole lines, or not at all.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby, islice
from operator import itemgetter
from typing import Literal

Change = Literal["same", "removed", "added"]
Segment = tuple[Change, str]
Unit = Literal["words", "lines", "text"]

# Han and kana have no blanks between words: a sign is a word there.
SIGNS = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"[{SIGNS}]|[^\W{SIGNS}]+|[^\w\s]")
TOKEN = re.compile(rf"{WORD.pattern}|\s")
LINE = re.compile(r"[^\n]*\n|[^\n]+")
MAX_TOKENS = 40_000  # words and signs of white space, of both texts
MAX_LINES = 20_000  # both texts
CHARS_PER_WORD = 40  # a longer "word" is cut where context is shown


@dataclass(frozen=True)
class Diff:
    """Segments in order, and the unit of comparison: words, lines of long texts, or whole texts.

    The segments "same" and "removed" together are the first text, "same" and "added" the second.
    """

    segments: list[Segment]
    unit: Unit


def diff_texts(one: str, other: str) -> Diff:
    """Compare two texts: by words if they differ in a few thousand, then by lines, or not at all.

    Equal ends do not count towards the size. White space and punctuation marks count, case matters.
    """
    head = _blank_before(one, common_start(one, other))
    tail = _blank_before(one[::-1], common_start(one[head:][::-1], other[head:][::-1]))
    inner = one[head : len(one) - tail], other[head : len(other) - tail]
    segments, unit = _compared(*inner)
    ends: tuple[Segment, Segment] = ("same", one[:head]), ("same", one[len(one) - tail :])
    joined = [
        (change, "".join(text for _, text in run))
        for change, run in groupby([ends[0], *segments, ends[1]], itemgetter(0))
    ]
    return Diff([segment for segment in joined if segment[1]], unit)


def common_start(one: str, other: str) -> int:
    """Count the equal characters at the start of both texts, by halving."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _blank_before(text: str, end: int) -> int:
    """Return the end of the last blank before `end`, 0 if there is none: no word is cut in two."""
    return 1 + max(text.rfind(" ", 0, end), text.rfind("\n", 0, end))


def _compared(one: str, other: str) -> tuple[list[Segment], Unit]:
    """Compare two texts by the smallest units of which there are not too many."""
    units: tuple[tuple[Unit, re.Pattern[str], int], ...] = (
        ("words", TOKEN, MAX_TOKENS),
        ("lines", LINE, MAX_LINES),
    )
    for unit, pattern, most in units:
        texts = [[m[0] for m in islice(pattern.finditer(t), most + 1)] for t in (one, other)]
        if sum(map(len, texts)) <= most:
            return list(_segments(*texts)), unit
    return [("removed", one), ("added", other)], "text"


def _segments(one: Sequence[str], other: Sequence[str]) -> Iterator[Segment]:
    """Yield the segments of two texts that are cut into units; removed comes before added."""
    for change, first, last, start, stop in SequenceMatcher(None, one, other).get_opcodes():
        if change == "equal":
            yield "same", "".join(one[first:last])
        else:
            yield "removed", "".join(one[first:last])
            yield "added", "".join(other[start:stop])


def fold(segments: Sequence[Segment], context: int, most: int) -> Iterator[tuple[str, str]]:
    """Yield (change, text) for display: of "same" the `context` words next to a change.

    Of a removed or added segment the first `most` characters. What is left out becomes a segment
    "omitted", whose text says how many characters it had.
    """
    for number, (change, text) in enumerate(segments):
        if change != "same":
            head, tail = min(most, len(text)), 0
        else:
            head = _end_of_words(text, context) if number else 0
            tail = _start_of_words(text, context) if number < len(segments) - 1 else 0
        omitted = len(text) - head - tail
        if omitted <= CHARS_PER_WORD:  # the note would be as long
            yield change, text
            continue
        if head:
            yield change, text[:head]
        yield "omitted", f"{omitted:,} characters"
        if tail:
            yield change, text[len(text) - tail :]


def _end_of_words(text: str, count: int) -> int:
    """Count the characters of `text` up to the end of its first `count` words."""
    window = text[: count * CHARS_PER_WORD]
    return max((match.end() for match in islice(WORD.finditer(window), count)), default=0)


def _start_of_words(text: str, count: int) -> int:
    """Count the characters of `text` from the start of its last `count` words."""
    window = text[len(text) - min(len(text), count * CHARS_PER_WORD) :]
    starts = [match.start() for match in WORD.finditer(window)]
    return len(window) - starts[-count:][0] if starts and count else 0
