"""Recognise what a file holds by its first bytes, where its name says something else."""

import re

from assets.raw.readers.input_file import Compression

MAGIC: tuple[tuple[re.Pattern[bytes], str, Compression | None], ...] = (
    (re.compile(rb"\x1f\x8b"), "gzip", "gz"),
    (re.compile(rb"\x28\xb5\x2f\xfd"), "zstd", "zst"),
    (re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), "bzip2", "bz2"),
    (re.compile(rb"\xfd7zXZ\0"), "xz", "xz"),
)
UTF_32 = (b"\xff\xfe\0\0", b"\0\0\xfe\xff")
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
PROBED_BYTES = 64  # of text in UTF-16 without its mark; ASCII letters have a zero byte each


def foreign_content(head: bytes, own: Compression | None = None) -> str:
    """Return what the first bytes are if they are no UTF-8 text, and what to do; else "".

    `own` is the compression that the bytes should have.
    """
    for magic, name, compression in MAGIC:
        if compression != own and magic.match(head):
            return f"this is {name}: add .{compression} to the file's name{_in_place_of(own)}"
    if encoding := _wide_encoding(head):
        return f"this is {encoding}: convert it with iconv -f {encoding} -t UTF-8"
    return ""


def plain_content(head: bytes, own: Compression) -> str:
    """Return that the first bytes are text and not compressed, and what to do; else ""."""
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:  # else the last character is cut
            return ""
        text = head[: error.start].decode()
    if not text or "\0" in text:
        return ""
    kind = "JSON" if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[") else "text"
    return f"this is plain {kind}: remove .{own} from the file's name"


def zstd_window(head: bytes) -> int:
    """Return the window that a zst frame needs, in bytes (RFC 8878 3.1.1.1); 0 if it is none."""
    if len(head) < 6 or head[:4] != b"\x28\xb5\x2f\xfd" or head[4] & 0x20:
        return 0  # 0x20: a single segment, whose window is its content
    exponent, mantissa = head[5] >> 3, head[5] & 7
    base = 1 << (10 + exponent)
    return base + base // 8 * mantissa


def _in_place_of(own: Compression | None) -> str:
    return f" in place of .{own}" if own else ""


def _wide_encoding(head: bytes) -> str:
    if head.startswith(UTF_32):
        return "UTF-32"
    if head.startswith(UTF_16):
        return "UTF-16"
    probe = head[:PROBED_BYTES]
    even, odd = probe[::2], probe[1::2]
    if len(probe) >= 8 and not any(odd) and all(even):
        return "UTF-16LE"
    return "UTF-16BE" if len(probe) >= 8 and not any(even) and all(odd) else ""
