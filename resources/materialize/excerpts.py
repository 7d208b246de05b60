"""Excerpts of untrusted text for Markdown reports."""

from __future__ import annotations

import re

from corpus_loader.places.url_secrets import masked

EXCERPT_CHARS = 200
JOINERS = "\u200c\u200d"  # needed by Persian and emoji; they hide nothing


class DocumentText(str):
    """Markdown with text of documents: shown in a file of the store, not in Dagster's records."""

    __slots__ = ()


def as_excerpt(text: str, chars: int = EXCERPT_CHARS) -> str:
    """Return the first characters of an untrusted text as one line of plain text in Markdown.

    White space is folded, and characters that cannot be printed are replaced by U+FFFD. Punctuation
    becomes character references, which have no meaning in Markdown or HTML. A word joiner keeps
    renderers from linking bare addresses. Secrets in URLs are masked.
    """
    words = " ".join(masked(text[: chars * 10]).split())
    shown = words if len(words) <= chars else f"{words[:chars]}…"
    visible = "".join(c if c.isprintable() or c in JOINERS else "\ufffd" for c in shown)
    unlinked = re.sub(r"(:(?=//)|www(?=\.)|@)", "\\1\u2060", visible, flags=re.IGNORECASE)
    return re.sub(r"[!-/:-@[-`{-~]", lambda sign: f"&#{ord(sign[0])};", unlinked)
