"""Cut long texts into pieces that are encoded one by one, to the same ids.

An encoder takes up to 25 bytes of memory a token, 1.3 GB for 50 MB of digits. All published
patterns begin a new word between certain characters wherever they meet, so that a text may be cut
there. A word longer than a piece is cut inside, and the cut is moved until the tokens on both sides
of it, encoded together, are the same: no merge of BPE then crosses it. Other tokenizers get their
texts whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from assets.tokenized.encoders import Encoder, Ids, ReferenceEncoder
from resources.settings.tokenizer import GPT2, PATTERNS, word_regex

PIECE_CHARS = 1 << 20
SEARCHED_CHARS = 1 << 16  # at the end of a piece
TRIES = 32  # places of a cut inside of a word; two in three random digits will do
# A blank after another character, letters beside digits, a line end or mark after either: of marks,
# some patterns take the line ends that follow into the same word.
BETWEEN_WORDS = re.compile(
    r"(?<=\S)(?=[ \t])|(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z])(?=[0-9])"
    r"|(?<=[A-Za-z0-9\u4e00-\u9fff])(?=[-\r\n,.;:!?(){}<>/=+\"\uff0c\u3001\u3002])"
)
# Eight characters of one kind: no contraction such as 'll ends in them.
INSIDE = re.compile(r"(?:[0-9]{8}|[A-Za-z\u4e00-\u9fff\u3041-\u3094\u30a1-\u30fa\uac00-\ud7a3]{8})")
# Other patterns count digits from their first, and GPT-4o's looks back at the case of letters.
INSIDE_OTHERS = re.compile("[a-z]{8}")
PUBLISHED = frozenset(word_regex(name, digits) for name in PATTERNS for digits in (None, 1, 3))


def is_cut(text: str, reference: ReferenceEncoder) -> bool:
    """Check whether a text is longer than a piece, and its tokenizer allows cuts."""
    return len(text) > PIECE_CHARS and reference.split_regex in PUBLISHED


def inside_words(reference: ReferenceEncoder) -> re.Pattern[str]:
    """Return what matches around a place inside of a word where it may be cut, 4 before it."""
    return INSIDE if reference.split_regex == PATTERNS[GPT2] else INSIDE_OTHERS


def encode_pieces(
    encoder: Encoder, text: str, sizes: Ids, inside: re.Pattern[str]
) -> Iterator[Ids]:
    """Yield the ids of a text piece by piece.

    `sizes` is the number of bytes of each id, `inside` is that of `inside_words`.
    """
    start, end = 0, piece_end(text, 0, inside)
    ids = encode_one(encoder, text[start:end])
    while end < len(text):
        following = piece_end(text, end, inside)
        for cut in cuts_before(text, start, end, inside):
            if cut < end:
                ids = encode_one(encoder, text[start:cut])
            after = encode_one(encoder, text[cut:following])
            if joins(encoder, (text[start:cut], ids), (text[cut:following], after), sizes):
                yield ids
                start, ids = cut, after
                break
        else:
            ids = encode_one(encoder, text[start:following])
        end = following
    yield ids


def encode_one(encoder: Encoder, text: str) -> Ids:
    """Encode one text."""
    return encoder.encode([text])[0]


def piece_end(text: str, start: int, inside: re.Pattern[str]) -> int:
    """Return the end of the piece that begins at `start`: the last cut between words, if any."""
    end = start + PIECE_CHARS
    while end < len(text):
        cuts = BETWEEN_WORDS.finditer(text, max(end - SEARCHED_CHARS, start + 1), end)
        last = max((cut.start() for cut in cuts), default=end)
        if any(cuts_before(text, start, last, inside)):
            return last
        end += PIECE_CHARS
    return len(text)


def cuts_before(text: str, start: int, end: int, inside: re.Pattern[str]) -> Iterator[int]:
    """Yield the places to try for a cut at `end`: itself, or up to TRIES inside of a word."""
    if BETWEEN_WORDS.match(text, end):
        yield end
        return
    for cut in range(end, max(end - TRIES, start + 4), -1):
        if inside.match(text, cut - 4):
            yield cut


def joins(encoder: Encoder, left: tuple[str, Ids], right: tuple[str, Ids], sizes: Ids) -> bool:
    """Return whether the ids of two neighbouring pieces are those of both together.

    They are if the last tokens of the one and the first of the other, as many as make whole
    characters, are their own encoding.
    """
    (text, ids), (next_text, next_ids) = left, right
    if BETWEEN_WORDS.match(text[-1:] + next_text[:1], 1):
        return True
    num_last, tail = whole_characters(text[-64:], sizes[ids[:-64:-1]], from_end=True)
    num_first, head = whole_characters(next_text[:64], sizes[next_ids[:64]], from_end=False)
    if not num_last or not num_first:
        return False
    wanted = np.concatenate([ids[-num_last:], next_ids[:num_first]])
    return np.array_equal(encode_one(encoder, tail + head), wanted)


def whole_characters(text: str, sizes: Ids, *, from_end: bool) -> tuple[int, str]:
    """Return the least number of tokens at an end of a text that make characters, and these.

    `sizes` are those of the tokens, from that end. (0, "") if there are none in the text.
    """
    data = text.encode()
    for number, num_bytes in enumerate(np.cumsum(sizes).tolist(), 1):
        edge = len(data) - num_bytes if from_end else num_bytes
        if not 0 <= edge <= len(data):
            break
        if edge == len(data) or data[edge] & 0xC0 != 0x80:  # RFC 3629: no continuation byte
            return number, (data[edge:] if from_end else data[:edge]).decode()
    return 0, ""
