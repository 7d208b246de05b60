"""Words and their hashes in plain Python, which the kernels are held to, and texts that are odd."""

import unicodedata

import polars as pl
from hypothesis import strategies as st

from assets.text.buffers import _UNSPACED, normalized_text

MASK = (1 << 64) - 1
GOLDEN, STEP, CHAIN = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B
NASTY = [
    *("", " ", "a", "_", "A b", "a a a", "é", "ÉCOLE école", "ΣΑΣ σας", "İi", "x1_y-z", "a日b"),
    *("שלום עולם", "ไทย ก", "🙂🙂", "🙂a🙂", "\x00a\x00", "\u0301\u0308", "e\u0301", "ｱｲｳ"),
    *("日本語", "\U00020000a"),
    *("\U0010ffff", "𝒜𝟘 ok", "a" * 70_000, "ab " * 20_000, "漢" * 20_000, "\n" * 1000),
]  # fmt: skip
TEXT = st.text(st.sampled_from("aB1_é Σ漢かกİς🙂\u0301\n-\x00\U00020000")) | st.text(
    st.characters(exclude_categories=["Cs"])
)


def words_slowly(text: str) -> list[str]:
    """Lower-cased runs of letters, digits, marks and `_`; kana and the like by themselves."""
    words, run = [], ""
    for character in [*normalized_text(pl.Series([text])).item(), " "]:
        code = ord(character)
        is_plane_2 = 0x20000 <= code < 0x40000
        is_word = (
            character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M"
        )
        is_single = is_plane_2 or (is_word and any(a <= code <= b for a, b in _UNSPACED))
        if is_single or not is_word or code >= 0x40000:
            words += [run] if run else []
            run = ""
            words += [character] if is_single else []
        else:
            run += character
    return words


def hash_slowly(word: str) -> int:
    key = GOLDEN
    for character in word:
        key = (key ^ ord(character)) * STEP & MASK
    return key
