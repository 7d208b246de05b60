"""Count the visible characters of HTML."""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit

from assets.filtered.kernels.code_syntax import LF, Bytes, is_blank
from assets.text.kernels.compiling import ARRAY_KERNEL

HTML_COMMENT, HTML_COMMENT_END, TAG_END, SCRIPT, SCRIPT_END, STYLE, STYLE_END = (
    np.frombuffer(mark, np.uint8)
    for mark in (b"<!--", b"-->", b">", b"<script", b"</script", b"<style", b"</style")
)


@njit(**ARRAY_KERNEL)
def count_visible(text: Bytes) -> int:
    """Count characters outside tags, comments, script and style; a run of blanks counts as one."""
    visible, at, was_blank = 0, 0, True
    while at < len(text):
        byte = text[at]
        if byte == 60 and at + 1 < len(text) and _may_be_tag(text[at + 1]):
            at = _tag_end(text, at)
            continue
        blank = byte == LF or is_blank(byte)
        visible += (byte & 0xC0) != 0x80 and not (blank and was_blank)
        was_blank = blank
        at += 1
    return visible


@njit(**ARRAY_KERNEL)
def _may_be_tag(byte: int) -> bool:
    return 97 <= (byte | 32) <= 122 or byte == 47 or byte == 33 or byte == 63  # letter / ! ?


@njit(**ARRAY_KERNEL)
def _tag_end(text: Bytes, at: int) -> int:
    """Return the end of the tag, comment, script or style element that begins at `at`."""
    if _is_at(text, at, HTML_COMMENT):
        return _find_after(text, at + len(HTML_COMMENT), HTML_COMMENT_END)
    end = _find_after(text, at, TAG_END)
    if _is_at(text, at, SCRIPT):
        return _find_after(text, _find_after(text, end, SCRIPT_END), TAG_END)
    if _is_at(text, at, STYLE):
        return _find_after(text, _find_after(text, end, STYLE_END), TAG_END)
    return end


@njit(**ARRAY_KERNEL)
def _is_at(text: Bytes, at: int, pattern: Bytes) -> bool:
    """Compare with a lower-case pattern, ignoring the case of ASCII letters."""
    if at + len(pattern) > len(text):
        return False
    for k in range(len(pattern)):
        byte = text[at + k]
        if byte != pattern[k] and (byte | 32 != pattern[k] or not 65 <= byte <= 90):
            return False
    return True


@njit(**ARRAY_KERNEL)
def _find_after(text: Bytes, at: int, pattern: Bytes) -> int:
    while at < len(text):
        if _is_at(text, at, pattern):
            return at + len(pattern)
        at += 1
    return len(text)
