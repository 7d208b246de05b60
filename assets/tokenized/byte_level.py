"""Alphabet of byte-level BPE: the characters in which its entries spell bytes."""

from __future__ import annotations

from resources.made_once import made_once


@made_once
def byte_letters() -> list[str]:
    """List the characters that stand for the bytes 0 to 255.

    This is the alphabet of GPT-2 (openai/gpt-2, src/encoder.py). A byte of visible Latin-1 is
    written as itself; the others get code points from 256 on.
    """
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in visible]
    return [chr(byte if byte in visible else 256 + hidden.index(byte)) for byte in range(256)]
