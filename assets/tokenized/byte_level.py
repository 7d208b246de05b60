"""The letters that a byte-level tokenizer writes bytes with."""

from __future__ import annotations

from functools import cache


@cache
def byte_letters() -> list[str]:
    """The character that stands for each byte: itself if it is visible Latin-1, else from 256 on.

    GPT-2's alphabet (openai/gpt-2, src/encoder.py), which byte-level BPE spells its tokens in.
    """
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in visible]
    return [chr(byte if byte in visible else 256 + hidden.index(byte)) for byte in range(256)]
