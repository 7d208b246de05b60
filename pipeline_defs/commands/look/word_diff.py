"""Compare two texts word by word.

Equal ends are cut off, and difflib compares the words between them. Its work can grow with the
square of their number, so that longer texts are compared by whole lines, or not at all.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import Literal

Change = Literal["same", "removed", "added"]
Segment = tuple[Change, str]
Unit = Literal["words", "lines", "text"]
Span = tuple[int, int]  # of characters

# Han and kana have no blanks between words: a sign is a word there.
SIGNS = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"[{SIGNS}]|[^\W{SIGNS}]+|[^\w\s]")
LINE = re.compile(r"[^\n]+")
MAX_WORDS = 20_000  # both texts
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

    Equal ends do not count towards the size. White space counts, punctuation marks are words of
    their own, case matters.
    """
    if one == other:
        return Diff([("same", one)] if one else [], "words")
    head = _blank_before(one, common_start(one, other))
    tail = _blank_before(one[::-1], common_start(one[head:][::-1], other[head:][::-1]))
    inner = one[head : len(one) - tail], other[head : len(other) - tail]
    segments, unit = _compared(*inner)
    ends: tuple[Segment, Segment] = ("same", one[:head]), ("same", one[len(one) - tail :])
    return Diff(_joined([ends[0], *segments, ends[1]]), unit)


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
    if words := _units(one, other, WORD, MAX_WORDS):
        return _segments(one, other, *words), "words"
    if lines := _units(one, other, LINE, MAX_LINES):
        return _segments(one, other, *lines), "lines"
    return [("removed", one), ("added", other)], "text"


def _units(
    one: str, other: str, unit: re.Pattern[str], most: int
) -> tuple[list[Span], list[Span]] | None:
    """Return the places of the units of both texts; None if there are more than `most`."""
    of_one = [match.span() for match in islice(unit.finditer(one), most + 1)]
    of_other = [match.span() for match in islice(unit.finditer(other), most + 1)]
    return (of_one, of_other) if len(of_one) + len(of_other) <= most else None


def _segments(
    one: str, other: str, of_one: Sequence[Span], of_other: Sequence[Span]
) -> list[Segment]:
    """Compare two texts by units, whose places are given."""
    words = [one[start:end] for start, end in of_one]
    matcher = SequenceMatcher(None, words, [other[start:end] for start, end in of_other])
    segments: list[Segment] = []
    end_one = end_other = 0
    for match in matcher.get_matching_blocks():
        spans_one = of_one[match.a : match.a + match.size]
        spans_other = of_other[match.b : match.b + match.size]
        for (start_one, stop_one), (start_other, stop_other) in zip(
            spans_one, spans_other, strict=True
        ):
            segments += _between(one[end_one:start_one], other[end_other:start_other])
            segments.append(("same", one[start_one:stop_one]))
            end_one, end_other = stop_one, stop_other
    return [*segments, *_between(one[end_one:], other[end_other:])]


def _between(one: str, other: str) -> Iterator[Segment]:
    """Yield the segments between two common words: white space at either end may be the same."""
    if one == other:
        yield "same", one
        return
    head = _common_blanks(one, other)
    yield "same", one[:head]
    one, other = one[head:], other[head:]
    tail = _common_blanks(one[::-1], other[::-1])
    yield "removed", one[: len(one) - tail]
    yield "added", other[: len(other) - tail]
    yield "same", one[len(one) - tail :]


def _common_blanks(one: str, other: str) -> int:
    """Count the equal characters of white space at the start of both texts."""
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b or not a.isspace():
            break
        count += 1
    return count


def _joined(segments: Sequence[Segment]) -> list[Segment]:
    """Drop empty segments and merge neighbours of one change; removed comes before added."""
    groups: list[tuple[Change, list[str]]] = []
    for change, text in segments:
        if not text:
            continue
        if groups and groups[-1][0] == change:
            groups[-1][1].append(text)
        elif change == "removed" and groups and groups[-1][0] == "added":
            if len(groups) > 1 and groups[-2][0] == "removed":
                groups[-2][1].append(text)
            else:
                groups.insert(-1, (change, [text]))
        else:
            groups.append((change, [text]))
    return [(change, "".join(texts)) for change, texts in groups]


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
