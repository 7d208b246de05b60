"""Classes of characters by which GPT-2's split cuts text into words.

`tokenizers` has tables of a later Unicode version than Python may have. Characters that are not
assigned in Python's are of unknown class: `tokenizers` cuts the texts that have them. Classes of
assigned characters do not change (a test compares all of them).
"""

from __future__ import annotations

import unicodedata

import numpy as np
from numpy.typing import NDArray

from resources.made_once import made_once

NUM_POINTS = 0x40000  # planes 0 to 3: what comes later is rare, and of unknown class as well
# White_Space of https://www.unicode.org/Public/UNIDATA/PropList.txt
BLANKS = (
    *range(0x09, 0x0E),
    *(0x20, 0x85, 0xA0, 0x1680),
    *range(0x2000, 0x200B),
    *(0x2028, 0x2029, 0x202F, 0x205F, 0x3000),
)


@made_once
def character_classes() -> NDArray[np.uint8]:
    """Return the class of each code point, uint8 [NUM_POINTS]; takes 0.05 s, once."""
    from assets.tokenized.kernels.word_cutting import BLANK, LETTER, NUMBER, OTHER, UNKNOWN

    of_category = {"L": LETTER, "N": NUMBER}
    category = unicodedata.category
    names = [category(chr(point)) for point in range(NUM_POINTS)]
    classes = [UNKNOWN if name == "Cn" else of_category.get(name[0], OTHER) for name in names]
    table = np.array(classes, np.uint8)
    table[list(BLANKS)] = BLANK
    return table
