"""Patterns and validators of API keys, private keys, and secrets in the user part of URLs.

An API key has a known form or is assigned to a name such as "token"; a private key is a PEM block;
of `scheme://user:secret@host` the secret counts, and a user that is a token. The user stays.
Sources: RFC 7468 (PEM), RFC 7519 (JWT), RFC 3986 (3.2.1), and the key formats that providers
publish.
"""

import math
import re
import string
from collections import Counter
from collections.abc import Iterator

from assets.filtered.pii.scan import FAR, Scan, Span
from assets.filtered.pii.secret_words import is_placeholder

_SPECIFIC_KEY = re.compile(
    r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])|gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_\w{30,255}|"
    r"glpat-[\w-]{20,255}|xox[abprs]-[A-Za-z0-9-]{10,255}|AIza[\w-]{35}(?![\w-])|"
    r"[sr]k_live_[A-Za-z0-9]{16,255}|sk-(?:proj|ant|svcacct|admin)-[\w-]{20,255}|"
    r"sk-[A-Za-z0-9]{32,255}|hf_[A-Za-z0-9]{30,64}|npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])|"
    r"pypi-[\w-]{50,500}|SG\.[\w-]{16,64}\.[\w-]{32,64}|SK[0-9a-f]{32}(?![0-9A-Za-z])|"
    r"dop_v1_[0-9a-f]{64}(?!\w)|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}(?!\w)|"
    r"(?:gsk|lin_api|figd|sbp|glsa|dckr_pat|whsec)_(?=[A-Za-z_-]{0,255}\d)[\w-]{27,255}|"
    r"(?:xapp|GOCSPX|NRAK|PMAK|pplx|xai|xkeysib|gl(?:ptt|dt|rt|soat|ft))-[\w-]{20,255}|"
    r"hv[sbr]\.[\w-]{24,255}|ya29\.[\w-]{30,500}|\d{8,10}:AA[\w-]{33}(?![\w-])|"
    r"eyJ[\w-]{8,5000}\.eyJ[\w-]{8,20000}\.[\w-]{8,5000}",
    re.ASCII,
)
# Several patterns are faster than one: with all literals together the prefilter has too many.
_KEY_STARTS = (
    r"A[KS]IA[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{35}",
    r"gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{30}|npm_[A-Za-z0-9]{36}|"
    r"hf_[A-Za-z0-9]{30}|[sr]k_live_[A-Za-z0-9]{16}",
    r"(?:glpat|xox[abprs]|sk-(?:proj|ant|svcacct|admin)|sk|pypi)-[A-Za-z0-9_-]{10}",
    r"SG\.[A-Za-z0-9_-]{16}|SK[0-9a-f]{32}|hv[sbr]\.[A-Za-z0-9_-]{24}|ya29\.[A-Za-z0-9_-]{30}",
    r"(?:dop_v1|gsk|glsa|dckr_pat|whsec|lin_api|figd|sbp|shp(?:at|ca|pa|ss))_[A-Za-z0-9_-]{27}",
    r"(?:xapp|GOCSPX|NRAK|PMAK|pplx|xai|xkeysib|gl(?:ptt|dt|rt|soat|ft))-[A-Za-z0-9_-]{20}",
    r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}",
)
# Clues of these patterns, in their order.
_KEY_CLUES = (
    ("A[KS]IA[A-Z0-9]{16}", "AIza"),
    ("gh[pousr]_[A-Za-z0-9]{36}", "github_pat_", "npm_", "hf_[A-Za-z0-9]{30}", "[sr]k_live_"),
    ("glpat-", "xox[abprs]-", "sk-[A-Za-z0-9_-]{10}", "pypi-"),
    (r"SG\.[A-Za-z0-9_-]{16}", "SK[0-9a-f]{32}", r"hv[sbr]\.[A-Za-z0-9_-]{24}", r"ya29\."),
    (
        *("dop_v1_", "gsk_", "glsa_", "dckr_pat_", "whsec_", "lin_api_", "figd_", "sbp_"),
        "shp[acps][tas]_",
    ),
    (
        *("xapp-", "GOCSPX-", "NRAK-", "PMAK-", "pplx-", "xai-", "xkeysib-"),
        *("glptt-", "gl[dr]t-", "glsoat-", "glft-"),
    ),
    (r"\d{8}:AA",),
)
# Separate: with an alternative that matches inside its run, each match reads the whole run.
_TOKEN_START = r"eyJ[A-Za-z0-9_-]{8}[A-Za-z0-9_-]*\.eyJ"


_KEY_SIGNS = frozenset(string.ascii_letters + string.digits + "_")
_TWILIO = re.compile(r"twilio|api.?key|\bsid\b")
_WORDS = re.compile(r"[a-z]+(?:[-_][a-z]+)+")


def _check_specific_key(text: str, start: int, end: int) -> Iterator[Span]:
    match = _SPECIFIC_KEY.match(text, start)
    if not match or (start and text[start - 1] in _KEY_SIGNS):
        return
    key = match[0]
    if _is_stand_in(key):
        return
    if key[:2] != "SK" or _TWILIO.search(text[max(0, start - 100) : start].lower()):
        yield start, match.end()


def _is_stand_in(key: str) -> bool:
    """Check that a key names itself or is masked, as manuals print them."""
    small = key.lower()
    # One by one: a regex or a loop over them takes longer than the rest of the check.
    if "example" in small or "placeholder" in small or "redacted" in small:
        return True
    if "your-" in small or "your_" in small or "xxxxxxxx" in key:
        return True
    return key.islower() and bool(_WORDS.fullmatch(key))


MIN_KEY_ENTROPY = 3.7  # bits a character; 32 random letters and digits have 4.2 to 4.5
_HASH = re.compile(
    r"[0-9a-fA-F]+|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|sha\d+[-=].*"
)
_KEY_VALUE = re.compile(r"[A-Za-z0-9+/_.~-]{32,512}={0,2}(?![A-Za-z0-9+/_.~(-])")


def _check_assigned_key(text: str, start: int, end: int) -> Iterator[Span]:
    first = max(text.rfind(sign, start, end) for sign in "\"'= :\n\t;") + 1
    match = _KEY_VALUE.match(text, first)
    if not match or _HASH.fullmatch(match[0]):
        return
    num_digits = sum(sign.isdigit() for sign in match[0])
    is_name = re.search(r"[a-z]{12}|[A-Z]{14}|[./_-][A-Za-z]*[./_-][A-Za-z]*[./_-]", match[0])
    if num_digits >= 2 and not is_name and entropy(match[0]) >= MIN_KEY_ENTROPY:
        yield first, match.end()


def entropy(word: str) -> float:
    """Return Shannon's entropy of the characters of a non-empty word, in bits per character."""
    shares = [count / len(word) for count in Counter(word).values()]
    return -sum(share * math.log2(share) for share in shares)


def _check_account_key(text: str, start: int, end: int) -> Iterator[Span]:
    match = re.compile(r"[A-Za-z0-9+/]{80,100}={0,2}").match(text, start + len("AccountKey="))
    if match:
        yield match.span()


MAX_KEY_CHARS = 16_000
_KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
# Possessive: "+" and blanks match in several runs, and backtracking over them is cubic.
_KEY_LINE = re.compile(
    r"\s*+(?:[A-Za-z-]{4,20}: [^\n<>]{0,200}|[\"'+*#>|\s]*+[A-Za-z0-9+/=]*+[\"'+,;\s]*+)"
)
_LINE_ENDS = re.compile(r"(?:\n|\\n|\\r)+")


def _check_private_key(text: str, start: int, end: int) -> Iterator[Span]:
    # Blocks never nest: the next marker bounds the search, so all of them together are one pass.
    stop = text.find("-----", end, end + MAX_KEY_CHARS)
    last = _KEY_END.match(text, stop) if stop >= 0 else None
    body = text[end : stop if stop >= 0 else end + MAX_KEY_CHARS]
    size, has_content = 0, False
    for line in _LINE_ENDS.split(body):
        is_key = _KEY_LINE.fullmatch(line) and (last or not line or len(line.strip()) >= 16)
        if not is_key:
            break
        size, has_content = size + 1, has_content or len(line.strip()) > 3
    else:
        if last and has_content:
            yield start, last.end()
            return
    if not last and has_content:
        yield start, end + _size_of_lines(body, size)


def _size_of_lines(body: str, num_lines: int) -> int:
    """Return the characters of the first lines of `body`, without the last line end."""
    ends = [match.start() for match in _LINE_ENDS.finditer(body)] + [len(body)]
    return ends[num_lines - 1]


_ASSIGNED = (
    r"(?i)(?:key|token|secret)[a-z_]{0,12}[\"'`]?\s{0,3}(?:=>|:=|[=:])\s{0,3}[\"'`]?"
    r"[A-Za-z0-9+/_.~-]{32}"
)
# Without regard to case, K is also the Kelvin sign (bytes e2 84 aa), and s the long s (c5 bf).
_ASSIGNED_CLUES = (
    r"[kK\xaa][eE][yY][A-Za-z_\"'`\s=:\x80-\xff]",
    "[tT][oO][kK][eE][nN]",
    r"[tT][oO]\xe2\x84\xaa",
    r"[sS\xbf][eE][cC][rR][eE][tT]",
)
_PEM = r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"


# A password with a raw "@" ends at the last one before the path.
_MORE = re.compile(r"[^\s/<>\"'`?#@,]{0,100}@(?=[\w\[$({%<])")
_HOST = re.compile(r"[\w\[$({%<]")
_PORT = re.compile(r"\d{1,5}(?:[?#].*)?")
_USER_AS_SECRET = ("", "x-oauth-basic", "x")


def _check_url(text: str, start: int, end: int) -> Iterator[Span]:
    first = start + len("://")
    if not re.match(r"[A-Za-z0-9]", text[start - 1 : start]) or not _HOST.match(text, end):
        return
    while end - first < 400 and (more := _MORE.match(text, end)):
        end = more.end()
    user, colon, secret = text[first : end - 1].partition(":")
    if colon and secret not in _USER_AS_SECRET:
        is_known = user == secret or is_placeholder(secret) or len(secret) < 3
        if not is_known and not (_PORT.fullmatch(secret) and re.search(r"[.?#]", user + secret)):
            yield end - 1 - len(secret), end - 1
    elif _is_token(user):
        yield first, first + len(user)


def _is_token(user: str) -> bool:
    num_digits = sum(sign.isdigit() for sign in user)
    is_word = is_placeholder(user) or not re.fullmatch(r"[\w+/=~%-]{16,300}", user, re.ASCII)
    is_mixed = bool(re.search(r"[A-Z].*[a-z].*[A-Z]|[a-z].*[A-Z].*[a-z]", user))
    return not is_word and entropy(user) >= 3 and (num_digits >= 2 or (is_mixed and len(user) > 19))


def _check_dsn(text: str, start: int, end: int) -> Iterator[Span]:
    secret = re.search(r":([^\s:\"'`/]{3,100})@", text[start:end])
    if secret and not is_placeholder(secret[1]):
        yield start + secret.start(1), start + secret.end(1)


_USER = r"://[^\s/<>\"@]+@"
_DSN = r"[A-Za-z0-9_.-]{1,32}:[^\s:\"'`/@]{1,100}@(?:tcp|unix)\("


SCANS = (
    *(
        Scan("api_key", starts, _check_specific_key, clues)
        for starts, clues in zip(_KEY_STARTS, _KEY_CLUES, strict=True)
    ),
    Scan(
        "api_key",
        _TOKEN_START,
        _check_specific_key,
        (r"\.eyJ",),
        "[A-Za-z0-9_.-]",
        FAR,
        sight=32_000,
    ),
    Scan(
        "api_key",
        _ASSIGNED,
        _check_assigned_key,
        _ASSIGNED_CLUES,
        r"[A-Za-z0-9_\"'`\s=:>+/.~\x80-\xff-]",
        96,
    ),
    Scan("api_key", "AccountKey=", _check_account_key, ("AccountKey=",)),
    Scan("private_key", _PEM, _check_private_key, ("PRIVATE KEY",), sight=MAX_KEY_CHARS + 100),
    Scan("url_secret", _USER, _check_url, (r"[^\s/<>\"@]@",), r"[^\s<>\"]", FAR, mark="@"),
    Scan("url_secret", _DSN, _check_dsn, ("@tcp(", "@unix("), r"[^\s\"'`/]", FAR, mark="@"),
)
