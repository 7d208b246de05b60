"""Excerpts of untrusted text for Markdown reports."""

from __future__ import annotations

import re

EXCERPT_CHARS = 200


JOINERS = "\u200c\u200d"  # Persian and emoji need them, and they hide nothing


def as_excerpt(text: str) -> str:
    """The beginning of an untrusted text as one line that is nothing but text in Markdown.

    White space is folded, what cannot be seen replaced, 200 characters shown. Punctuation becomes
    character references, which neither Markdown nor HTML gives a meaning; a word joiner keeps
    renderers that link bare addresses from doing so.
    """
    words = " ".join(text[: EXCERPT_CHARS * 10].split())
    shown = words if len(words) <= EXCERPT_CHARS else f"{words[:EXCERPT_CHARS]}…"
    visible = "".join(c if c.isprintable() or c in JOINERS else "\ufffd" for c in shown)
    unlinked = re.sub(r"(:(?=//)|www(?=\.)|@)", "\\1\u2060", visible, flags=re.IGNORECASE)
    return re.sub(r"[!-/:-@[-`{-~]", lambda sign: f"&#{ord(sign[0])};", unlinked)
