"""Patterns and validators of phone numbers: international, North American, introduced by a word.

Sources: ITU E.164 (calling codes), North American Numbering Plan.
"""

import re
from collections.abc import Iterator

from assets.filtered.pii.scan import Scan, Span

# ITU-T E.164 assigned country codes except 1, which has its own rule.
_CALLING_CODE = (
    r"(?:7|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|21[1-368]|2[2346]\d|25[0-8]|"
    r"29[01789]|3[57]\d|38[0-35-79]|42[013]|5[09]\d|67[02-9]|68[0-35-9]|69[0-2]|800|808|"
    r"85[02356]|870|88[0-368]|96[0-8]|97[0-7]|99[2-68])"
)
# Area 555 is used in fiction: its exchange may start with any digit, as in (555) 123-4567.
_NANP = (
    r"(?:\(?(?!.11|.9)[2-9]\d\d\)?[-. ]{0,2}(?!.11)[2-9]\d\d|\(?555\)?[-. ]{0,2}\d{3})[-. ]?\d{4}"
)
_EXTENSION = r"(?: ?(?:x|ext\.?|extension) ?\d{1,5}(?!\d))?"
_SEPARATOR = r"(?: ?[-–‑/] ?\(?| ?\(|\) ?[-/]? ?|[. ])"
_NUMBER = rf"\(?\d{{1,12}}(?:{_SEPARATOR}\d{{1,12}}){{0,6}}"
_NO_DIGITS_AFTER = r"(?![A-Za-z0-9_]|[-.]\d)"
_PLUS = re.compile(
    rf"\+\(?(?:1\)?[-. ]?{_NANP}{_EXTENSION}|{_CALLING_CODE}\)?{_SEPARATOR}?{_NUMBER})"
    + _NO_DIGITS_AFTER
)
_AMERICAN = re.compile(rf"(?:\+?1[-. ])?{_NANP}{_EXTENSION}{_NO_DIGITS_AFTER}")
_INTRODUCED = re.compile(rf"(?:\+|00)?{_NUMBER}{_EXTENSION}{_NO_DIGITS_AFTER}")
_DATE = re.compile(
    r"\(?(?:\d{4} ?[-–/] ?\d{4}|\d{4}[-./]\d\d?[-./]\d\d?|\d\d?[-./]\d\d?[-./]\d{4})\)?"
)


def _check_plus(text: str, start: int, end: int) -> Iterator[Span]:
    match = _PLUS.match(text, start, start + 40)
    if not match or re.match(r"(?a)[\w)+.]", text[start - 1 : start]):
        return
    groups = re.findall(r"\d+", match[0])
    digits = "".join(groups)
    is_decimal = match[0].count(".") == 1 and len(groups) == 2
    start -= text[start - 1 : start] == "(" and match[0].count(")") > match[0].count("(")
    if 9 <= len(digits) <= 15 and "00000" not in digits and not is_decimal:
        yield start, match.end()


def _check_american(text: str, start: int, end: int) -> Iterator[Span]:
    number = text[start:end]
    start -= text[start - 1 : start] == "(" and ")" in number
    start -= 2 * bool(re.fullmatch(r"(?<!\d)1[-. ]", text[max(0, start - 2) : start]))
    start -= text[start - 1 : start] == "+"
    match = _AMERICAN.match(text, start, start + 36)
    is_table = bool(re.fullmatch(r"\d+ .*|\d+[-.]\d+ .*", number)) and not re.search(
        "-", number[4:]
    )
    if (
        match
        and not is_table
        and not re.search(r"(?a)\w\Z|[\w+][-.+:]\Z", text[max(0, start - 2) : start])
    ):
        yield start, match.end()


_INTRO_WORD = re.compile(
    r"(?i)t[eé]l|t[eé]l[eé]?(?:f|ph)[a-zéó]*|phones?|fax|faks|mobile?|mobiltelefon|móvil|cell|"
    r"handy|"
    r"whatsapp|tlf|fon|[^\x00-\x7f].*"
)


def _check_introduced(text: str, start: int, end: int) -> Iterator[Span]:
    word = re.compile(r"[^\W\d_]{1,20}").match(text, start)
    if not word or not _INTRO_WORD.fullmatch(word[0]):
        return
    lead = re.search(r"[A-Za-z]{1,12}\Z", text[max(0, start - 12) : start])
    if lead and lead[0].lower() not in ("tele", "cell", "mobile", "smart", "i"):
        return
    place = re.compile(r"[+(]?[\d(]").search(text, start, end)
    match = _INTRODUCED.match(text, place.start(), place.start() + 40) if place else None
    if not match or _DATE.fullmatch(match[0]):
        return
    number = match[0]
    while len(re.findall(r"\d", number)) > 15 and " " in number:
        number = number[: number.rindex(" ")]  # a year or a house number may follow
    num_digits = len(re.findall(r"\d", number))
    if (6 if re.search(r"\d[ /.-]\d", number) else 7) <= num_digits <= 15:
        yield match.start(), match.start() + len(number)


_INTROS = (
    "[Tt]el|TEL|[Pp]hone|PHONE|[Ff]ax|FAX|[Tt]él|[Tt]eléf|[Mm]obil|MOBIL|[Mm]óvil|[Cc]ell|[Hh]andy|"
    "[Ww]hats[Aa]pp|[Tt]lf|[Ff]on|[Тт]ел|电话|電話|전화|[Kk]omórk"
)
_AMERICAN_NUMBER = r"[2-9][0-9]{2}\)?[-. ]{1,2}[1-9][0-9]{2}[-. ][0-9]{4}"
_INTRODUCED_NUMBER = (
    rf"(?:{_INTROS})[a-zéа-я]{{0,7}}(?: [Nn]umber| [Nn]o| [Nn]r)?"
    r"[^0-9A-Za-z_\n<>\[\]{}]{1,6}[0-9][0-9 ()./–-]{5}"
)
_SIGN = r"[\d ().\xe2\x80\x93/-]"  # a byte of [0-9 ().–/-]

SCANS = (
    Scan(
        "phone",
        r"\+\(?[1-9][0-9 ().–/-]{6}",
        _check_plus,
        (rf"+[1-9]{_SIGN}{{6}}", rf"+([1-9]{_SIGN}{{6}}"),
    ),
    Scan(
        "phone",
        _AMERICAN_NUMBER,
        _check_american,
        (r"[-. ][1-9]\d{2}[-. ]\d{4}",),
    ),
    Scan(
        "phone",
        _INTRODUCED_NUMBER,
        _check_introduced,
        (rf"[^0-9A-Za-z_\n<>\[\]{{}}]\d{_SIGN}{{5}}",),
        r"[^\n<>\[\]{}]",
    ),
)
