"""Patterns and validators of e-mail addresses.

Sources: RFC 5322 and 5321 (all characters of a local part, quoted local parts, literal domains),
RFC 6531 (letters of all scripts), IANA's list of top-level domains for scripts without blanks.
Trade-off: characters such as "=", "/" and "|" are legal in a local part and more often separate it
from what comes before; the characters around the whole decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from assets.filtered.pii.scan import FAR, Scan, Span

# File extensions and names of private hosts that look like top-level domains.
_NO_DOMAIN = re.compile(
    "(?i)png|jpe?g|gif|svg|webp|ico|bmp|avif|s?css|less|m?jsx?|tsx?|json|html?|xml|ya?ml|toml|txt|"
    "pdf|"
    "lock|php|rb|go|java|kt|exe|dll|local(?:host|domain)?|internal|lan|invalid|service|socket|"
    "target|"
    "timer|mount|device|slice|scope|path|conf|cfg|ini|log|journal|cephfs"
)
# Chinese, Japanese and Thai text goes on after a domain without a blank.
_WIDE_TLD = (
    "中国|中國|公司|网络|網絡|网址|網址|商城|商店|商标|台湾|台灣|香港|新加坡|澳门|澳門|集团|我爱你|在线|"
    "中文网|手机|移动|政务|政府|公益|机构|组织机构|游戏|娱乐|网店|网站|信息|招聘|餐厅|食品|广东|佛山|健康|"
    "时尚|慈善|通販|购物|珠宝|企业|八卦|广告|测试|測試|大拿|世界|书籍|みんな|コム|グーグル|クラウド|ストア|"
    "セール|ファッション|ポイント|テスト|คอม|ไทย"
)
_WITHOUT_BLANKS = r"\u2e80-\ua4ff\u0e00-\u0e7f"  # scripts
_LABEL = r"[^\W_](?:[\w\u0900-\u0dff-]{0,61}[^\W_]|[\w\u0900-\u0dff-]{0,61}[\u0900-\u0dff])?"
_DOMAIN = re.compile(
    rf"(?:{_LABEL}\.)+(xn--[A-Za-z0-9-]{{2,59}}|[A-Za-z]{{2,24}}|(?:{_WIDE_TLD})|"
    rf"(?:(?![A-Za-z0-9{_WITHOUT_BLANKS}])[^\W\d_][\u0900-\u0dff]?){{2,24}})"
    r"(?![A-Za-z0-9_(@\[]|\.\w{1,63}[(@])"
)
_USER_OF_URL = re.compile(r"//[^\s/@]*\Z")
_WIDE = "\\u2e80-\\ua4ff\\uac00-\\ud7a3\\uf900-\\ufaff\\uff00-\\uffef"
_LATIN_END = re.compile(rf"[^{_WIDE}]+\Z")
_WIDE_END = re.compile(rf"[{_WIDE}]{{1,16}}\Z")
_KEY = re.compile(
    r"(?i)(?:.*[?&])?[\w.-]*(?:mail|mailto|to|from|cc|bcc|user(?:name)?|login|id|name|contact|"
    r"author|"
    r"owner|reply|address|account|sender|recipient|uid|usr|who)=|(?-i:[A-Z][A-Z_0-9]+=)"
)
# A variable of a template, or an operator before a decorator, has no address.
_NO_LOCAL = re.compile(r"\$?\{+[^}]*\}+|\$[A-Z_]+|%[sdv]|%|[^\w]{1,4}|git|.*[%$]\{.*")
_CLOSED_BY = {
    "}": "{",
    "'": "'",
    "`": "`",
    "*": "*",
    "|": "|",
    "_": "_",
    "~": "~",
    "/": "/",
    "$": "$",
}


def _check_email(text: str, start: int, end: int) -> Iterator[Span]:
    at = text.index("@", start, end)
    domain = _DOMAIN.match(text, at + 1, at + 255)
    if not domain:
        return
    first = _first_of_local(text, start, at, domain)
    local = text[first:at]
    is_local = 0 < len(local) <= 64 and ".." not in local and local[-1] not in ".'"
    if not is_local or _NO_LOCAL.fullmatch(local) or not re.search(r"\w", local):
        return
    is_service = bool(_NO_DOMAIN.fullmatch(domain[1]))
    if not is_service and not _USER_OF_URL.search(text, max(0, first - 80), first):
        yield first, domain.end()


def _first_of_local(text: str, start: int, at: int, domain: re.Match[str]) -> int:
    """Return where a local part begins within a run of legal characters."""
    local = text[max(start, at - 200) : at]
    opening = _CLOSED_BY.get(text[domain.end() : domain.end() + 1])
    if opening and local[0] != opening:
        local = local[local.rfind(opening) + 1 :]
    elif opening:
        local = local.lstrip(opening)
    if "//" in local or local.count("/") > 1 or local[:1] == "/":
        local = local[local.rfind("/") + 1 :]
    if key := _KEY.match(local):
        local = local[key.end() :]
    local = local.lstrip(".+'-=|&?*`")
    part = _LATIN_END.search(local) or _WIDE_END.search(local)
    if part and (domain[0].isascii() or part[0].isascii()):
        local = part[0].lstrip(".+'-=|&?*`")
    return at - len(local)


def _check_quoted(text: str, start: int, end: int) -> Iterator[Span]:
    at = text.index('"@', start, end) + 1
    domain = _DOMAIN.match(text, at + 1, at + 255)
    is_word = re.match(r"\w", text[start - 1 : start])
    if domain and not is_word and not _NO_DOMAIN.fullmatch(domain[1]) and at - start > 3:
        yield start, domain.end()


def _check_literal(text: str, start: int, end: int) -> Iterator[Span]:
    while text[start] in ".+'-=|&?*`/":
        start += 1
    if text[start] != "@" and not _USER_OF_URL.search(text, max(0, start - 80), start):
        yield start, end


_AT = r"(?: ?[\[({<] ?(?:at|AT|@) ?[\])}>] ?| (?:at|AT) )"
_DOT = r"(?: ?[\[({<] ?(?:dot|DOT|\.|punkt|punto|point) ?[\])}>] ?| (?:dot|DOT) )"
_SPOKEN = re.compile(
    rf"(?P<local>[A-Za-z0-9_+-]{{1,30}}(?:(?:{_DOT}|\.)[A-Za-z0-9_+-]{{1,30}}){{0,3}})(?P<at>{_AT})"
    rf"(?P<host>[A-Za-z0-9-]{{1,40}}(?:(?:{_DOT}|"
    rf"\.)[A-Za-z0-9-]{{1,30}}){{0,4}}(?:(?P<dot>{_DOT})|\.)"
    r"(?P<top>[A-Za-z]{2,14}))(?![A-Za-z0-9_(]|\.\w)"
)
_TOP = re.compile(
    r"(?i)com|org|net|edu|gov|mil|int|info|biz|io|co|me|ai|app|dev|name|museum|design|store|shop|"
    r"online|site|tech|cloud|email|xyz|photography|academy|agency|blog|club|eu|uk|us|ca|au|nz|ie|"
    r"in|"
    r"de|at|ch|fr|be|nl|lu|es|pt|it|gr|se|no|dk|fi|is|pl|cz|sk|hu|ro|bg|hr|si|rs|ru|ua|by|lt|lv|"
    r"ee|tr|"
    r"il|ae|sa|eg|za|ng|ke|cn|tw|hk|jp|kr|sg|my|th|vn|id|ph|pk|br|ar|cl|mx|pe|uy|ve|ir|ma|tn"
)


_BEFORE_PLACE = re.compile(
    r"(?i)is|are|was|were|be|us|me|it|them|him|her|you|look|looking|met|meet|found|find|available|"
    r"site|website|"
    r"page|blog|shop|work|works|working|worked|hosted|visit|online|live|lives|read|more|and|or|"
    r"here|"
    r"store|sold|buy|join|see|go|stay|arrive|people|team|up"
)


def _check_spoken(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield an address with "at" in brackets, or with both "at" and "dot" as words."""
    match = _SPOKEN.match(text, start, min(len(text), end + 90))
    if not match or not _TOP.fullmatch(match["top"]):
        return
    is_bracketed = match["at"].strip() not in ("at", "AT")
    if not is_bracketed and _BEFORE_PLACE.fullmatch(match["local"]):
        return
    if is_bracketed or (
        match["dot"] and match["top"].lower() not in ("in", "at", "is", "no", "it")
    ):
        first = start + (3 if match[0].startswith("at ") else 0)
        yield first, match.end()


_ATEXT = r"[\p{L}\p{M}\p{N}!#$%&'*+/=?^_`{|}~.-]"
# As bytes of UTF-8.
_ATEXT_BYTES = r"A-Za-z0-9!#$%&'*+/=?^_`{|}~.\x80-\xff-"
_WORD_BYTE = r"[A-Za-z0-9\x80-\xff]"
_ANY_TOP = r"[\p{L}\p{N}][\p{L}\p{M}\p{N}.-]*\.[\p{L}]"
_LITERAL = r"@\[(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|IPv6:[0-9A-Fa-f:.]{2,45})\]"
_BRACKET_AT = r"[\[({<] ?(?:at|AT|@) ?[\])}>]"
_LOCAL_WORD = r"[A-Za-z0-9_+-]+(?:(?: ?[\[({<] ?(?:dot|DOT|\.) ?[\])}>] ?|\.)[A-Za-z0-9_+-]+)*"

SCANS = (
    Scan(
        "email",
        rf"{_ATEXT}+@{_ANY_TOP}",
        _check_email,
        (rf"[{_ATEXT_BYTES}]@{_WORD_BYTE}",),
        rf"[@{_ATEXT_BYTES}]",
        FAR,
        sight=256,
        mark="@",
    ),
    Scan(
        "email", r'"[^"\n]{1,64}"@[\p{L}\p{N}]', _check_quoted, (rf'"@{_WORD_BYTE}',), r"[^\n]", 264
    ),
    Scan(
        "email",
        rf"{_ATEXT}+{_LITERAL}",
        _check_literal,
        (r"@\[[0-9I]",),
        rf"[@:\[\]{_ATEXT_BYTES}]",
        FAR,
    ),
    Scan(
        "email",
        rf"{_LOCAL_WORD} ?{_BRACKET_AT}",
        _check_spoken,
        (
            r"[\[({<][aA][tT][ \])}>]",
            r"[\[({<] [aA][tT][ \])}>]",
            r"[A-Za-z0-9_+ -][\[({<]@[ \])}>]",
            r"[\[({<] @[ \])}>]",
        ),
        r"[A-Za-z0-9_+.@ \[({<>})\]-]",
        FAR,
    ),
    Scan(
        "email",
        r"[A-Za-z0-9_+.-]+(?: (?:dot|DOT) [A-Za-z0-9_+-]+)* (?:at|AT) [A-Za-z0-9-]+ (?:dot|DOT) ",
        _check_spoken,
        (" [dD][oO][tT] ",),
        "[A-Za-z0-9_+. -]",
        FAR,
    ),
)
