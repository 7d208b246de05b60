"""Classes of characters: tables with a number per code point, and the marks of a class.

Plain Python: the kernels take the tables as arguments. A table takes 0.1 s, once per process.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

BULLETS = "●•*-"  # DCLM's reading of Gopher's "bullet point"
NUM_CODES = 0x110000
LETTERS_END = 0x40000  # Unicode assigns no letters or digits from here on
# Scripts written without spaces, whose characters are words (Unicode's Blocks.txt). Thai, Lao,
# Khmer and Myanmar are not included: their letters are no words, and need a dictionary.
SINGLES = (
    (0x3005, 0x3007),  # ideographic iteration mark, closing mark, zero
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x31F0, 0x31FF),  # Katakana phonetic extensions
    (0x3400, 0x4DBF),  # CJK extension A
    (0x4E00, 0x9FFF),  # CJK unified ideographs
    (0xF900, 0xFAFF),  # CJK compatibility ideographs
    (0xFF66, 0xFF9F),  # half-width Katakana
    (0x1AFF0, 0x1B16F),  # Kana extended and supplement
    (0x20000, 0x3FFFF),  # planes 2 and 3
)
# The 159 sentence ends of datatrove's FineWeb filter, as hexadecimal ranges: Unicode's property
# Sentence_Terminal with the Khmer marks 17D6, 17D9 and 17DA, which newer versions leave out, and
# without marks that newer versions add (one dot leader, Old Nubian, vertical forms). Ellipses
# and closing quotes are not included: a line that ends in `."` is not finished, as in FineWeb.
TERMINAL_RANGES = (
    "21 2E 3F 589 61D-61F 6D4 700-702 7F9 837 839 83D-83E 964-965 104A-104B 1362 1367-1368 166E "
    "1735-1736 17D4-17D6 17D9-17DA 1803 1809 1944-1945 1AA8-1AAB 1B5A-1B5B 1B5E-1B5F 1B7D-1B7E "
    "1C3B-1C3C 1C7E-1C7F 203C-203D 2047-2049 2E2E 2E3C 2E53-2E54 3002 A4FF A60E-A60F A6F3 A6F7 "
    "A876-A877 A8CE-A8CF A92F A9C8-A9C9 AA5D-AA5F AAF0-AAF1 ABEB FE52 FE56-FE57 FF01 FF0E FF1F "
    "FF61 10A56-10A57 10F55-10F59 10F86-10F89 11047-11048 110BE-110C1 11141-11143 111C5-111C6 "
    "111CD 111DE-111DF 11238-11239 1123B-1123C 112A9 1144B-1144C 115C2-115C3 115C9-115D7 "
    "11641-11642 1173C-1173E 11944 11946 11A42-11A43 11A9B-11A9C 11C41-11C42 11EF7-11EF8 "
    "11F43-11F44 16A6E-16A6F 16AF5 16B37-16B38 16B44 16E98 1BC9F 1DA88"
)


def _characters(ranges: str) -> str:
    spans = [[int(end, 16) for end in span.split("-")] for span in ranges.split()]
    return "".join(chr(code) for span in spans for code in range(span[0], span[-1] + 1))


TERMINAL_MARKS = _characters(TERMINAL_RANGES)


def classes_by(tests: Mapping[int, Callable[[str], bool]]) -> NDArray[np.uint16]:
    """Return the sum of the bits whose test is true for each code point, uint16 [NUM_CODES].

    The tests are methods of `str`; numpy's twins of them take 9 ms each, calls take 0.15 s.
    """
    characters = np.arange(NUM_CODES, dtype=np.uint32).view("<U1")
    classes = np.zeros(NUM_CODES, np.uint16)
    for bit, test in tests.items():
        classes += getattr(np.strings, test.__name__)(characters) * np.uint16(bit)
    return classes


def add_marks(classes: NDArray[np.uint16], marks: str, bit: int) -> None:
    """Set the bit of every mark in `classes`."""
    classes[[ord(mark) for mark in marks]] |= np.uint16(bit)
