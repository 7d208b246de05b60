"""Count words, lines, paragraphs, their repetition and the form of a page in one pass.

The counts behind most filter scores: `text_words` counts characters and words, `text_lines` lines
and paragraphs, `ngrams` repeated runs of words; `page_words` and `page_form` what tells prose from
menus, lists of links, keywords, noise and pages that were cut.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment"

from collections.abc import Iterator

import numpy as np
import polars as pl
from numba import njit, uint64

from assets.filtered.kernels.ngrams import NGRAM_COUNTS, count_ngrams
from assets.filtered.kernels.page_form import (
    Line,
    add_to_lines,
    end_line,
    end_text,
    longer_by,
    look_at_end,
    weigh_pairs,
)
from assets.filtered.kernels.page_words import (
    SLOTS,
    WINDOW,
    Form,
    Seen,
    count_odd,
    count_signs,
    count_windows,
    count_word,
)
from assets.filtered.kernels.sign_masks import (
    LINE_FEED,
    SPACE,
    Bytes,
    Classes,
    Integers,
    Signs,
    character_classes,
    read_signs,
)
from assets.filtered.kernels.text_lines import count_ellipses, count_lines
from assets.filtered.kernels.text_words import (
    Count,
    Word,
    Words,
    add_word,
    add_words,
    count_characters,
    hash_words,
    read_word,
)
from assets.text.buffers import text_buffers
from assets.text.kernels.compiling import ARRAY_KERNEL, INLINED, KERNEL
from assets.text.kernels.hashing import hash_bytes
from assets.text.kernels.utf8 import decode
from assets.text.table_rows import table_of

BLOCK_BYTES = 1 << 20  # the arrays of a block fit the cache
NO_PAIRS = np.zeros(0, np.uint8)
NAMES, FORM_NAMES = ([count.name.lower() for count in counts] for counts in (Count, Form))
WORD_NAMES = NAMES[Count.WORD_CHARACTERS : Count.ALPHABETIC_WORDS + 1]


def count_text(
    texts: pl.Series, *, ngrams: bool = True, pair_scores: Bytes = NO_PAIRS
) -> pl.DataFrame:
    """Return one Int64 column per count, named in lower case; one row per text (no nulls).

    The columns are those of `Count`; with `ngrams` of `kernels.ngrams.NGRAM_COUNTS`; and with
    `pair_scores`, the table of `page_form.pair_table`, of `page_words.Form`.
    """
    return _count_and_work(texts, ngrams, pair_scores)[0]


def count_form(texts: pl.Series, pair_scores: Bytes) -> pl.DataFrame:
    """Return those columns of `count_text` that are counts of words, and those of the form."""
    counts = _count_and_work(texts, False, pair_scores, lines=False)[0]
    return counts.select(*WORD_NAMES, *FORM_NAMES)


def count_work(texts: pl.Series) -> int:
    """Return the number of table slots and n-grams that `count_text` reads, to test linear work."""
    return _count_and_work(texts, True, NO_PAIRS)[1]


def _count_and_work(
    texts: pl.Series, ngrams: bool, pair_scores: Bytes, *, lines: bool = True
) -> tuple[pl.DataFrame, int]:
    names = (NAMES, NGRAM_COUNTS if ngrams else (), FORM_NAMES if len(pair_scores) else ())
    counts, ngram_counts, form = (np.zeros((len(texts), len(own)), np.int64) for own in names)
    (data, starts), words, work = text_buffers(texts.rechunk()), _room_for_words(0), 0
    for rows in blocks(np.diff(starts)):
        own_starts = starts[rows.start : rows.stop + 1]
        num_words = int(own_starts[-1] - own_starts[0] + len(own_starts)) // 2  # at most
        if len(words[0]) < num_words and (ngrams or len(pair_scores)):
            words = _room_for_words(num_words)
        tables = (character_classes(), pair_scores, lines)
        own_counts = (counts[rows], form[rows])
        word_offsets, probes = _count_documents((data, own_starts), tables, words, own_counts)
        work += probes
        if ngrams:
            work += sum(count_ngrams(*words, word_offsets, ngram_counts[rows]))
    frames = map(table_of, (counts, ngram_counts, form), names)
    return pl.concat([frame for frame in frames if frame.width], how="horizontal"), work


def _room_for_words(num_words: int) -> Words:
    return np.empty(num_words, np.uint64), np.empty(num_words, np.uint32)


def blocks(num_bytes: Integers) -> Iterator[slice]:
    """Yield runs of rows of at most BLOCK_BYTES, or a single row with a longer text."""
    ends, first = np.cumsum(num_bytes), 0
    while first < len(ends):
        before = ends[first - 1] if first else 0
        last = max(int(np.searchsorted(ends, before + BLOCK_BYTES, "right")), first + 1)
        yield slice(first, last)
        first = last


@njit(**ARRAY_KERNEL)
def _count_documents(
    texts: tuple[Bytes, Integers],
    tables: tuple[Classes, Bytes, bool],
    words: Words,
    all_counts: tuple[Integers, Integers],
) -> tuple[Integers, int]:
    """Fill the counts, and the hash and end of each word if there is room; return word offsets."""
    (data, starts), (classes, pair_scores, has_lines), (counts, form) = texts, tables, all_counts
    kinds, window = np.zeros(64 + 4, np.uint16), np.zeros(1 + WINDOW, np.uint64)
    work = (window, Seen(np.zeros(SLOTS, np.uint8), np.zeros(WINDOW + 1, np.uint8)))
    word_offsets = np.zeros(len(starts), np.int64)
    num_words, probes = 0, 0
    for row in range(len(counts)):
        span = (uint64(starts[row]), uint64(starts[row + 1]))
        own = (words[0][num_words:], words[1][num_words:])
        own_counts, own_form = counts[row], form[row]
        _count_words(data, span, (classes, kinds), own, (own_counts, own_form))
        if has_lines:
            count_characters(data, span, own_counts)
            text = data[starts[row] : starts[row + 1]]
            is_wide = len(text) > own_counts[Count.CHARACTERS]
            own_counts[Count.ELLIPSES] = count_ellipses(text, is_wide)
            probes += count_lines(data, span, classes, own_counts)
        num_words += own_counts[Count.WORDS] if len(words[0]) else 0
        word_offsets[row + 1] = num_words
        if len(own_form):
            count_windows(own[0], own_counts[Count.WORDS], work, own_form)
            look_at_end(data, span, classes, own_form)
            weigh_pairs(data, span, pair_scores, own_form)
    return word_offsets, probes


@njit(**KERNEL)
def _count_words(
    data: Bytes,
    span: tuple[int, int],
    tables: tuple[Classes, Classes],
    words: Words,
    all_counts: tuple[Integers, Integers],
) -> None:
    """Fill the counts of words, and of the form if there is room."""
    (at, stop), (classes, kinds), form = span, tables, all_counts[1]
    line, label = Line(0, 0, 0, 0), 0  # characters of the line before, if it may be a label
    while at < stop:
        signs, feeds, size = read_signs(data, (at, stop), classes, kinds)
        code, width = decode(data, at)
        if size:
            _add_signs(data, at, signs, words, all_counts)
            if len(form):
                line, label = add_to_lines(data, at, (signs, feeds), classes, (line, label, form))
        elif classes[code] & SPACE:
            size += width
            if code == LINE_FEED and line.characters:
                label = end_line(line, label, form)
                line = Line(0, 0, 0, 0)
        else:
            end, word = read_word(data, (at, stop), classes)
            _add_word(data, (at, end), word, words, all_counts)
            if len(form):
                line = longer_by(word, np.int64(classes[code]), line)
            size = end - at
        at += size
    if len(form):
        end_text(line, label, form)


@njit(**INLINED)
def _add_signs(
    data: Bytes, at: int, signs: Signs, words: Words, all_counts: tuple[Integers, Integers]
) -> None:
    """Count the words of a mask."""
    counts, form = all_counts
    if signs.words:
        if len(words[0]):
            hash_words(data, at, signs, words, counts)
        add_words(signs, counts)
        if len(form):
            count_signs(signs, form)
            count_odd(data, at, signs, form)


@njit(**INLINED)
def _add_word(
    data: Bytes,
    span: tuple[int, int],
    word: Word,
    words: Words,
    all_counts: tuple[Integers, Integers],
) -> None:
    """Count the word data[span]."""
    counts, form = all_counts
    if len(words[0]):
        place = uint64(counts[Count.WORDS])
        words[0][place] = hash_bytes(data, span[0], span[1])
        words[1][place] = counts[Count.WORD_CHARACTERS] + word.characters
    add_word(word, counts)
    if len(form):
        count_word(word, form)
