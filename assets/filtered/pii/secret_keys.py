"""Patterns and validators of API keys, private keys, and secrets in the user part of URLs.

An API key has a published form (data/key_forms.tsv), is a cookie, or is assigned to a name such as
"token"; a private key is a PEM block; of `scheme://user:secret@host` the secret counts, and a user
that is a token. The user stays.
Sources: RFC 7468 (PEM), RFC 7519 (JWT), RFC 3986 (3.2.1), RFC 7617 and 6750 (headers), RFC 6265
(cookies), and the key formats that providers publish.
"""

import math
import re
import string
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

from assets.filtered.pii.pii_files import KeyForm, read_key_forms
from assets.filtered.pii.scan import FAR, Scan, Span
from assets.filtered.pii.secret_words import is_placeholder

_FORMS = read_key_forms()
_MOST = 16  # characters after a prefix that the search for candidates reads
_NUM_SCANS = 4  # the automaton of all forms in one is too large to be fast


def key_pattern(form: KeyForm) -> str:
    """Return the regex of a form, whose only group is the key."""
    low, _, high = form.length.partition("-")
    end = "" if high else rf"(?![\w{form.alphabet}])"  # of a range, what is too long is cut
    body = rf"[{form.alphabet}]{{{low},{high or low}}}(?<!\.){end}"
    return f"{form.prefix}({body})" if form.prefix[-1] in " \"'/:=" else f"({form.prefix}{body})"


def key_start(form: KeyForm) -> str:
    """Return the clue of a form, which is the start of each of its keys."""
    low = int(form.length.partition("-")[0])
    return f"{form.prefix}[{form.alphabet}]{{{min(low, _MOST)}}}"


# In the order of the table: the first form that matches counts.
_KEY = re.compile("|".join(map(key_pattern, _FORMS)), re.ASCII)
# Separate: with an alternative that matches inside its run, each match reads the whole run.
_TOKEN_START = r"eyJ[A-Za-z0-9_-]{8}[A-Za-z0-9_-]*\.eyJ"
_TOKEN = re.compile(r"eyJ[\w-]{8,5000}\.eyJ[\w-]{8,20000}\.[\w-]{8,5000}", re.ASCII)


_KEY_SIGNS = frozenset(string.ascii_letters + string.digits + "_")
_WORDS = re.compile(r"[a-z]+(?:[-_][a-z]+)+")


def _check_key(text: str, start: int, end: int) -> Iterator[Span]:
    match = _KEY.match(text, start)
    if not match or not match.lastindex or (text[start].isalnum() and _follows_key(text, start)):
        return
    first, last = match.span(match.lastindex)
    check = _FORMS[match.lastindex - 1].check
    if not _is_stand_in(match[0]) and _passes(check, match[match.lastindex], text, start):
        yield first, last


def _check_token(text: str, start: int, end: int) -> Iterator[Span]:
    match = _TOKEN.match(text, start)
    if match and not _follows_key(text, start) and not _is_stand_in(match[0]):
        yield match.span()


def _follows_key(text: str, start: int) -> bool:
    return start > 0 and text[start - 1] in _KEY_SIGNS


_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def _passes(check: str, key: str, text: str, start: int) -> bool:
    """Check what a form asks for beyond prefix, alphabet and length."""
    match check.partition(":"):
        case "", _, _:
            return True
        case "digit", _, _:
            return any(map(str.isdigit, key))
        case "uuid", _, _:
            return bool(_UUID.fullmatch(key[-36:]))
        case "random", _, _:
            return is_random(key.replace(".", ""))
        case "pair", _, _:
            return _is_pair(key)
        case "near", _, words:
            return bool(re.search(words, text[max(0, start - 100) : start].lower()))
        case _:
            raise ValueError(f"key_forms.tsv has the check {check!r}, which nothing defines")


def _is_pair(key: str) -> bool:
    """Check that base64 has a user and a password, as RFC 7617 has it."""
    with suppress(ValueError):
        user, _, password = b64decode(key + "==").partition(b":")
        is_user = user.isascii() and user.decode().isprintable()
        return is_user and len(password) > 2 and not is_placeholder(password.decode("latin-1"))
    return False


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
_HASH = re.compile(rf"[0-9a-fA-F]+|{_UUID.pattern}|sha\d+[-=].*")
_KEY_VALUE = re.compile(r"[A-Za-z0-9+/_.~-]{16,512}={0,2}(?![A-Za-z0-9+/_.~(-])")
_CREDENTIAL = re.compile(
    r"(?i)(?:(?:api|access|auth|client|session|private|refresh|bearer)[-_ ]?(?:key|token|secret)|"
    r"secret_(?:key|token))(?!\w*_(?:id|hash|sha|digest))"
)


def _check_assigned_key(text: str, start: int, end: int) -> Iterator[Span]:
    first = max(text.rfind(sign, start, end) for sign in "\"'= :\n\t;") + 1
    match = _KEY_VALUE.match(text, first)
    if not match:
        return
    key = match[0]
    num_digits = sum(sign.isdigit() for sign in key)
    is_name = re.search(r"[a-z]{12}|[A-Z]{14}|[./_-][A-Za-z]*[./_-][A-Za-z]*[./_-]", key)
    if num_digits < 1 or (is_name and not _UUID.fullmatch(key)):
        return
    # A hash or a short word is a key only where its name can say nothing else.
    if _HASH.fullmatch(key) or len(key) < 32:
        is_key = _CREDENTIAL.search(text, max(0, start - 8), end) and is_random(key)
    else:
        is_key = num_digits >= 2 and entropy(key) >= MIN_KEY_ENTROPY
    if is_key and not _is_stand_in(key):
        yield first, match.end()


def entropy(word: str) -> float:
    """Return Shannon's entropy of the characters of a non-empty word, in bits per character."""
    shares = [count / len(word) for count in Counter(word).values()]
    return -sum(share * math.log2(share) for share in shares)


def _check_account_key(text: str, start: int, end: int) -> Iterator[Span]:
    match = re.compile(r"[A-Za-z0-9+/]{80,100}={0,2}").match(text, start + len("AccountKey="))
    if match:
        yield match.span()


_COOKIE = re.compile(r"[\w.-]{1,60}=([^\s;,\"'<>]{16,4000})")


def _check_cookie(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the values of a header's cookies that are no words."""
    stop = text.find("\n", end, end + 5_000)
    for cookie in _COOKIE.finditer(text, start, stop if stop >= 0 else end + 5_000):
        if is_random(cookie[1].replace(".", "")):
            yield cookie.span(1)


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
    r"[A-Za-z0-9+/_.~-]{16}"
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
    elif is_random(user):
        yield first, first + len(user)


def is_random(word: str) -> bool:
    """Check that a word is as long and as mixed as a token, and no word that stands for one."""
    num_digits = sum(sign.isdigit() for sign in word)
    is_plain = is_placeholder(word) or not re.fullmatch(r"[\w+/=~%-]{16,4096}", word, re.ASCII)
    is_mixed = bool(re.search(r"[A-Z].*[a-z].*[A-Z]|[a-z].*[A-Z].*[a-z]", word))
    is_long = num_digits >= 2 or (is_mixed and len(word) > 19)
    return not is_plain and entropy(word) >= 3 and is_long


def _check_dsn(text: str, start: int, end: int) -> Iterator[Span]:
    secret = re.search(r":([^\s:\"'`/]{3,100})@", text[start:end])
    if secret and not is_placeholder(secret[1]):
        yield start + secret.start(1), start + secret.end(1)


_USER = r"://[^\s/<>\"@]+@"
_DSN = r"[A-Za-z0-9_.-]{1,32}:[^\s:\"'`/@]{1,100}@(?:tcp|unix)\("


SCANS = (
    *(
        Scan("api_key", "|".join(starts), _check_key, starts, sight=5_000)
        for starts in (tuple(map(key_start, _FORMS[i::_NUM_SCANS])) for i in range(_NUM_SCANS))
    ),
    Scan(
        "api_key",
        _TOKEN_START,
        _check_token,
        (r"\.eyJ",),
        "[A-Za-z0-9_.-]",
        FAR,
        sight=32_000,
    ),
    Scan(
        "api_key",
        "[Cc]ookie[\"']?:",
        _check_cookie,
        ("[cC]ookie[\"':]",),
        sight=5_000,
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
