"""Excerpts of untrusted text for Markdown reports."""

from __future__ import annotations

import re

EXCERPT_CHARS = 200


JOINERS = "\u200c\u200d"  # needed by Persian and emoji; they hide nothing


def as_excerpt(text: str) -> str:
    """Return the first 200 characters of an untrusted text as one line of plain text in Markdown.

    White space is folded, and characters that cannot be printed are replaced by U+FFFD. Punctuation
    becomes character references, which have no meaning in Markdown or HTML. A word joiner keeps
    renderers from linking bare addresses.
    """
    words = " ".join(text[: EXCERPT_CHARS * 10].split())
    shown = words if len(words) <= EXCERPT_CHARS else f"{words[:EXCERPT_CHARS]}…"
    visible = "".join(c if c.isprintable() or c in JOINERS else "\ufffd" for c in shown)
    unlinked = re.sub(r"(:(?=//)|www(?=\.)|@)", "\\1\u2060", visible, flags=re.IGNORECASE)
    return re.sub(r"[!-/:-@[-`{-~]", lambda sign: f"&#{ord(sign[0])};", unlinked)
