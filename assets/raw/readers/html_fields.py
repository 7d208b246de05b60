"""Turn HTML in text fields into plain text: all of it, or the main text of a page.

Method: resiliparse's parser (HTML5, as browsers read it) and its plain text, in which blocks begin
lines, list items have bullets and table cells are apart.
Trade-off: tags that only style words are dropped before, since unclosed ones make any HTML5 parser
quadratic. Deep nesting does so, too: a page nested deeper than MAX_DEPTH, or whose indented lists
would outgrow it, only loses its tags.
"""

import html
import re
from itertools import accumulate

from resiliparse.extract.html2text import extract_plain_text

from assets.raw.readers.page_child import main_text

MAX_DEPTH = 100  # real pages stay below 50; a parser's time for a tag grows with it
_STYLING = "a|b|big|code|em|font|i|nobr|s|small|span|strike|strong|sub|sup|tt|u"
_BLOCKS = (
    "address|article|aside|blockquote|body|br|caption|center|dd|details|dialog|div|dl|dt|fieldset"
    "|figcaption|figure|footer|form|h1|h2|h3|h4|h5|h6|head|header|hr|html|li|main|nav|ol|option|p"
    "|pre|section|summary|table|tbody|td|tfoot|th|thead|title|tr|ul"
)
_OTHERS = "button|iframe|img|input|label|link|meta|script|select|style|svg|textarea|video"
# Elements without an end tag, or whose end tag may be left out: they do not nest by themselves.
_UNNESTED = (
    *("br", "hr", "img", "input", "link", "meta", "p", "li", "td", "th", "tr", "dt", "dd"),
    *("option", "tbody", "thead", "tfoot", "body", "html", "head"),
)
# `[^<>]*+` gives nothing back and stops at the next tag: linear for any text.
_REST = r"(?:[\s/][^<>]*+)?+>"
_KNOWN = re.compile(rf"</?(?:{_STYLING}|{_BLOCKS}|{_OTHERS}){_REST}", re.I)
_STYLE = re.compile(rf"</?(?:{_STYLING}){_REST}", re.I)
_TAG = re.compile(rf"<(/?)([a-z][a-z0-9:-]*+){_REST}", re.I)
_BLOCK = re.compile(rf"</?(?:{_BLOCKS}){_REST}", re.I)
# What nothing closes runs to the end, as in HTML5, and is not searched again.
_HIDDEN = re.compile(
    r"<(script|style)\b[^>]*+>.*?(?:</\1\b[^>]*+>|\Z)|<!--.*?(?:-->|\Z)", re.I | re.S
)
_REFERENCE = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")


def plain_text(text: str) -> str:
    """Return the text of HTML; a text without a known tag and character reference as it is."""
    if _KNOWN.search(text) is None:
        return html.unescape(text) if _REFERENCE.search(text) else text
    shown = _STYLE.sub("", _HIDDEN.sub("", text))
    if _depth(shown) <= MAX_DEPTH:
        found = str(extract_plain_text(shown, preserve_formatting=True, main_content=False))
        if len(found) <= 2 * len(text) + 100:
            return found
    return html.unescape(_TAG.sub("", _BLOCK.sub("\n", shown))).strip()


def field_page_text(text: str) -> str:
    """Return the main text of a page in HTML, as of WARC files; a text without a tag as above.

    Raises what `main_text` does.
    """
    return plain_text(text) if _KNOWN.search(text) is None else main_text(text)


def _depth(text: str) -> int:
    """Return the deepest nesting, counted without the end tags that may be left out."""
    steps = (-1 if tag[1] else 1 for tag in _TAG.finditer(text) if tag[2].lower() not in _UNNESTED)
    return max(accumulate(steps, lambda depth, step: max(depth + step, 0), initial=0))


HTML_TO_TEXT = {"text": plain_text, "page": field_page_text}  # by `html` of a source
