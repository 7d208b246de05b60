"""Counts of a text, in the order of the columns that `text_scores` fills."""

from enum import IntEnum, auto

SHORT_LINE_CHARS = 30  # datatrove's FineWeb filter: len(line) <= 30


class Count(IntEnum):
    """Counts, in the order of the columns; numba takes the members as integers."""

    CHARACTERS = 0
    WORD_CHARACTERS = auto()  # not white space
    ALPHANUMERIC_CHARACTERS = auto()
    ALPHABETIC_CHARACTERS = auto()
    DIGIT_CHARACTERS = auto()
    UPPERCASE_CHARACTERS = auto()
    WORDS = auto()
    ALPHABETIC_WORDS = auto()  # with at least one letter
    LONGEST_WORD = auto()  # characters
    NEWLINES = auto()
    HASHES = auto()  # "#"
    ELLIPSES = auto()  # "..." from left to right, and "…"
    RAW_LINES = auto()  # split at "\n", blank ones too
    LONGEST_RAW_LINE = auto()  # characters
    LINES = auto()
    BULLET_LINES = auto()
    ELLIPSIS_LINES = auto()
    TERMINAL_LINES = auto()
    SHORT_LINES = auto()
    DUPLICATE_LINES = auto()  # copies after the first (datatrove's reading of Gopher)
    DUPLICATE_LINE_CHARACTERS = auto()
    REPEATED_LINES = auto()  # all copies, if there are two or more (DCLM's reading)
    REPEATED_LINE_CHARACTERS = auto()
    PARAGRAPHS = auto()
    DUPLICATE_PARAGRAPHS = auto()
    DUPLICATE_PARAGRAPH_CHARACTERS = auto()  # of their lines, without line ends
    REPEATED_PARAGRAPHS = auto()
    REPEATED_PARAGRAPH_CHARACTERS = auto()
