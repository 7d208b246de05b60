"""Subtitles, SubRip (.srt) and WebVTT (.vtt): what is said in a file, as one document.

The lines of a cue are joined by a space, and so are cues while a sentence goes on. A new line
begins behind the end of a sentence, with a dash of dialogue, behind a pause of a second where a
capital follows, and with each cue in scripts without capitals; a paragraph behind a pause of three
seconds. The pauses, and a sentence for a cue where writing does not tell, are those of srt2xml,
which made the corpora OpenSubtitles (Lison and Tiedemann 2016).
Numbers and names of cues, times, positions, styling and the blocks of WebVTT that nobody sees
(https://www.w3.org/TR/webvtt1/#file-structure) are no text. A block before any times, or with an
arrow that is none of times, is a record in quarantine.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from assets.raw.readers.input_file import InputFile, Slice
from assets.raw.readers.input_record import InputRecord
from assets.raw.readers.read_pages import whole_file
from resources.settings.sources import SourceConfig

NEW_SENTENCE, NEW_PARAGRAPH = 1.0, 3.0  # seconds: PAUSETHR1 and PAUSETHR2 of srt2xml
CLOCK = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})(?:[,.:]\s?(\d{1,3}))?"
TIMES = re.compile(rf"\s*{CLOCK}\s*-{{1,2}}>\s*{CLOCK}(?:\s.*)?")
ARROW = re.compile(r"\d\s*-{1,2}>\s*\d|-->")
UNSEEN = re.compile(r"(?:WEBVTT|NOTE|STYLE|REGION)(?:[ \t].*)?")
NUMBER = re.compile(r"\s*\d+\s*")
BLOCK = re.compile(r"[^\n]+(?:\n[^\n]+)*")
WORD_TIME = re.compile(r"<(?:\d+:)?\d\d:\d\d\.\d{3}>")  # of captions that come word by word
STYLING = re.compile(
    r"</?(?:[biusvc]|font|lang|ruby|rt)(?:[.\s][^<>]*)?>|<(?:\d+:)?\d\d:\d\d\.\d{3}>"
    r"|\{\\[^{}]*\}|\{/?[bius]\d?\}|\{[ycs]:[^{}]*\}",
    re.I,
)
DASH = re.compile(r"[-\u2010-\u2015\u2212]+\s*(?=\S)")
SENTENCE_END = re.compile(r"""[.!?…。！？؟।॥♪]["'”’»)\]]*$""")
NO_TIMES = "subtitle cue has no times: 00:00:01,000 --> 00:00:02,500 is expected before its text"


class Cue(NamedTuple):
    """Lines that are shown from `start` to `end`, in seconds."""

    start: float
    end: float
    lines: list[str]


def read(file: InputFile, source: SourceConfig, _cut: Slice) -> Iterator[InputRecord]:
    """Yield the record of a file, then those of its broken cues, by their number as blocks."""
    data = whole_file(file, source)
    if isinstance(data, InputRecord):
        yield data
        return
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    cues, broken = list[Cue](), list[InputRecord]()
    line = at = 0
    blocks = [*BLOCK.finditer(text)]
    for row, (block, after) in enumerate(zip_longest(blocks, blocks[1:]), 1):
        line += text.count("\n", at, at := block.start())
        if NUMBER.fullmatch(block[0]) and after and TIMES.match(after[0]):
            continue  # of a file with a blank line behind each line
        if not _add(cues, block[0].split("\n")):
            raw = block[0].encode("utf-8", "surrogateescape")
            broken.append(InputRecord(row, None, raw, NO_TIMES, line + 1))
    if cues:
        yield InputRecord(0, {source.text_field: _said(cues, text)})
        yield from broken
    elif broken:
        yield InputRecord(0, None, data, NO_TIMES)


def _add(cues: list[Cue], lines: list[str]) -> bool:
    """Add the cues of a block, or its text to the last one; return whether it can be read."""
    if UNSEEN.fullmatch(lines[0]):
        return True
    found, rest = list[Cue](), list[str]()
    for line in lines:
        if "->" not in line:
            rest.append(line)
        elif times := TIMES.fullmatch(line):
            if len(rest) == 1 and not found:  # the number, or the name of the cue
                rest.clear()
            elif rest and NUMBER.fullmatch(rest[-1]):
                rest.pop()
            if rest and not found:
                return False
            start, end = _seconds(times.groups()[:4]), _seconds(times.groups()[4:])
            found.append(Cue(start, end, rest := []))
        elif ARROW.search(line):
            return False
        else:
            rest.append(line)
    if not found and cues:
        cues[-1].lines.extend(rest)
    cues += found
    return bool(cues)


def _seconds(clock: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, rest = (each or "0" for each in clock)
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds) + float(f"0.{rest}")


def _said(cues: list[Cue], text: str) -> str:
    """Return what the cues of a file say, in lines and paragraphs."""
    is_escaped, is_rolling = text.startswith("WEBVTT"), WORD_TIME.search(text) is not None
    parts, before, end = list[str](), "", 0.0
    for cue in cues:
        lines = [line for each in cue.lines if (line := _plain(each, is_escaped))]
        if is_rolling and lines[:1] == [before]:  # it shows the line before once more
            del lines[0]
        pause = cue.start - end
        for line in lines:
            parts += [_between(before, line, pause) if parts else "", line]
            before, pause = line, -1.0
        end = max(end, cue.end)
    return "".join(parts)


def _plain(line: str, is_escaped: bool) -> str:
    shown = STYLING.sub("", line)
    return " ".join((html.unescape(shown) if is_escaped else shown).split())


def _between(before: str, line: str, pause: float) -> str:
    """Return what stands between a line and the next; `pause` is below 0 within a cue."""
    if pause > NEW_PARAGRAPH:
        return "\n\n"
    is_caseless = pause >= 0 and before.lower() == before.upper()
    is_capital = pause > NEW_SENTENCE and line[0].isupper()
    is_new = is_caseless or is_capital or DASH.match(line) or SENTENCE_END.search(before)
    return "\n" if is_new else " "
