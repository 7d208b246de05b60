"""Compare two texts word by word.

Equal ends are cut off, and difflib compares the words between them. Its work can grow with the
square of their number, so longer texts are not compared.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby, islice
from operator import itemgetter
from typing import Literal

Change = Literal["same", "removed", "added"]
Segment = tuple[Change, str]

# Han and kana have no blanks between words: a sign is a word there.
SIGNS = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"[{SIGNS}]|[^\W{SIGNS}]+|[^\w\s]")
TOKEN = re.compile(rf"{WORD.pattern}|\s")
MAX_TOKENS = 40_000  # words and signs of white space, of both texts
CHARS_PER_WORD = 40  # a longer "word" is cut where context is shown


def diff_texts(one: str, other: str) -> list[Segment]:
    """Compare two texts; where they differ in over MAX_TOKENS, one is removed and one added whole.

    The segments "same" and "removed" together are the first text, "same" and "added" the second.
    Equal ends do not count towards the size. White space and punctuation marks count, case matters.
    """
    head = _blank_before(one, common_start(one, other))
    tail = _blank_before(one[::-1], common_start(one[head:][::-1], other[head:][::-1]))
    inner = one[head : len(one) - tail], other[head : len(other) - tail]
    ends: tuple[Segment, Segment] = ("same", one[:head]), ("same", one[len(one) - tail :])
    joined = [
        (change, "".join(text for _, text in run))
        for change, run in groupby([ends[0], *_segments(*inner), ends[1]], itemgetter(0))
    ]
    return [segment for segment in joined if segment[1]]


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


def _segments(one: str, other: str) -> Iterator[Segment]:
    """Yield the segments of two texts; removed comes before added."""
    words = [[m[0] for m in islice(TOKEN.finditer(t), MAX_TOKENS + 1)] for t in (one, other)]
    if sum(map(len, words)) > MAX_TOKENS:
        words = [[one], [other]]
    before, after = words
    for change, first, last, start, stop in SequenceMatcher(None, before, after).get_opcodes():
        if change == "equal":
            yield "same", "".join(before[first:last])
        else:
            yield "removed", "".join(before[first:last])
            yield "added", "".join(after[start:stop])


def fold(segments: Sequence[Segment], context: int, most: int) -> Iterator[tuple[str, str]]:
    """Yield (change, text) for display: of "same" the `context` words next to a change.

    Of a removed or added segment the first `most` characters. What is left out becomes a segment
    "omitted", whose text says how many characters it had.
    """
    for number, (change, text) in enumerate(segments):
        if change != "same":
            head, tail = min(most, len(text)), 0
        else:
            window = min(len(text), context * CHARS_PER_WORD)
            ends = [match.end() for match in islice(WORD.finditer(text[:window]), context)]
            last = text[len(text) - window :]
            starts = [match.start() for match in WORD.finditer(last)][-context:]
            head = ends[-1] if number and ends else 0
            tail = window - starts[0] if context and starts and number < len(segments) - 1 else 0
        omitted = len(text) - head - tail
        if omitted <= CHARS_PER_WORD:  # the note would be as long
            yield change, text
            continue
        if head:
            yield change, text[:head]
        yield "omitted", f"{omitted:,} characters"
        if tail:
            yield change, text[len(text) - tail :]
