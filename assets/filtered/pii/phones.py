"""Patterns and validators of phone numbers: international, North American, introduced by a word.

Sources: ITU E.164 (calling codes), North American Numbering Plan.

Numbers without a calling code follow the plans of countries (`read_phone_plans`). In groups with
blanks, one that begins with the trunk prefix 0 is rarely anything else. Others share their form
with amounts (601 234 567) and table rows (22 12 34 56): what is beside them decides.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from assets.filtered.pii.pii_files import read_phone_plans
from assets.filtered.pii.scan import FAR, Scan, Span

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
    "[Ww]hats[Aa]pp|[Tt]lf|[Ff]on|[Тт]ел|电话|電話|전화|[Kk]omórk|手机|手機|携帯|휴대폰|โทร|फोन|मोबाइल|ফোন|মোবাইল|هاتف|موبای|تلفن|فون|"
    "thoại|[Hh][Pp]"
)
_AMERICAN_NUMBER = r"[2-9][0-9]{2}\)?[-. ]{1,2}[1-9][0-9]{2}[-. ][0-9]{4}"
_INTRODUCED_NUMBER = (
    rf"(?:{_INTROS})[a-zéа-я]{{0,7}}(?: [Nn]umber| [Nn]o| [Nn]r)?"
    r"[^0-9A-Za-z_\n<>\[\]{}]{1,6}[0-9][0-9 ()./–-]{5}"
)
_SIGN = r"[\d ().\xe2\x80\x93/-]"  # a byte of [0-9 ().–/-]


@cache
def _plans() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the plans of numbers with a trunk prefix, and without: compiling them takes 0.15 s."""
    with_trunk, without_trunk = map(re.compile, read_phone_plans())
    return with_trunk, without_trunk


# No group behind the area is a lone digit, except after Hungary's 06.
_GROUPS = re.compile(
    r"(?:8 )?(?:\(\d{2,5}\)|\d{1,5}|\d\(\d{1,4}\)|0\d{5}(?= \d{5}))(?: \d{2,8}){1,4}|"
    r"06 \d \d{3} \d{4}|0\d{1,4} \d+ 0"
)
# Sizes of groups that amounts and rows of numbers do not have, and those of other numbers, too.
_CLEAR = re.compile("13322|14222|3322|2322|3222|344|55|334|1334|254|144|433")
_OPEN = re.compile("333|44|2222|234|244|323|37")
_NEVER_OPEN = re.compile(r"(?:.* )?(?:19|20)\d\d(?: .*)?|0.*|1.*(?<! \d{4} \d{4})")
_BEFORE = re.compile(
    r"(?ai)[\w.+#$€£¥₹₽%/^~<\\§=-]\Z|(?<!\*)\*\Z|[€£¥₹₽$§^≈~<=°×±] \Z|(?<=[^\n])[>*+] \Z|\d[.,]\Z|"
    r"\d ?[-–/+*×=:] ?\Z|(?<![a-z])[a-f0-9]*\d[a-f0-9]*[ \t]+\Z|"
    r"(?:\b(?:isbn(?:-1[03])?|issn|ean|btw|tva|mwst|cif|nif|pesel|siret|ico|dic|upc|imei|imsi|vat|"
    r"siren|siret|ust-?id\w*|nip|regon|krs|nhs|"
    r"iban|bic|account|acct|konto|kto|invoice|order|ticket|patent|serial|item|part|model|sku|id|"
    r"pid|code|reg|"
    r"version|ver|v|rev|vol|volume|no|nr|nbr|num|art|art\.|page|pages|pp|p|s|ref|doi|pmid|isrc|tax|"
    r"steuernummer|case|docket|lat|lon|latitude|longitude|coordinates|gps|usd|eur|gbp|chf|sek|nok|"
    r"dkk|pln|czk|huf|rub|jpy|cny|inr|rs|kr|php|idr|krw|population|about|approximately|nearly|over|"
    r"roughly|total|sum|between|rgba?|hsla?|loss|step|epoch|seed|echo|seek|count|"
    r"size|offset|bytes|mem|irq|review [a-z])\b[.:#]{0,2}"
    r"(?: of| de| no\.?| nr\.?| number| [a-z]{2})?[:.]? ?)\Z"
)
_PHONE_BEFORE = re.compile(
    r"(?i)(?:(?:\b|_)(?:tele)?(?:phone|ph|tel\w{0,6}|tél\w{0,7}|tlf|tfn|tfno|fax|faks|telefax|mob|"
    r"mobile?|móvil|"
    r"celular|cell\w{0,6}|handy|portable|contact|kontakt|call\w{0,3}|ring|dial|text|sms|whatsapp|"
    r"signal|number|hotline|helpline|hotline|appelez|appeler|llam\w+|chiama\w*|ligue|anruf\w*|"
    r"rufen|ruf|booking\w*|reserv\w+|réserv\w+|enquiries|inquiries|bel|puh\w{0,5}|gsm|zadzwoń|zavolejte|ring|t|m|p|h|w|f)\b|тел|моб|звон|фон|τηλ|κιν|"
    r"电话|電話|手机|手機|拨打|致电|热线|联系|전화|휴대폰|연락처|"
    r"โทร|điện thoại|đt|هاتف|جوال|تليفون|טלפון|נייד|फोन|मोबाइल|"
    r"予約|携帯|連絡先)[^\n\d]{0,14}\Z"
)
_LETTER = re.compile(r"[^\W\d_]")
_AFTER = re.compile(
    r"(?ai)[\w%°€£¥₹₽$^+=/\\]|\*(?!\*)|[.,:-]\d|[ \t]*[-–+*×=/^<>] ?\d|"
    r"[ \t]+[a-f0-9]*\d[a-f0-9]*(?![\w:.])|"
    r" ?(?:[€£¥₹₽$%°²³]|(?:eur|euros?|usd|gbp|chf|sek|nok|dkk|pln|zł|zl|czk|kč|kc|huf|ft|rub|руб|"
    r"dollars?|pounds?|yen|yuan|won|rupees?|kr|kroner|kronor|million\w*|billion\w*|millones|mio|"
    r"mrd|"
    r"km|m|cm|mm|kg|g|mg|t|tons?|tonnes?|ha|mi|ft|kb|mb|gb|bytes?|bits?|hz|mhz|kwh?|w|v|l|"
    r"people|persons?|inhabitants?|residents?|einwohner\w*|habitant\w*|abitanti|mieszkańc\w*|"
    r"obyvatel\w*|invånare|innbyggere|indbyggere|жител\w*|years?|jahre|ans|users?|items?|rows?|"
    r"records?|files?|documents?|tokens?|words?|votes?|copies|units?|cells?|atoms?|pixels?|"
    r"shares|points?|times|steps|seconds|minutes|hours|days|n|e|s|o)\b(?![À-ɏ])|m[²³2])"
)
_ROW_BEFORE = re.compile(r"\d[ \t]+\d+[ \t|;,\])}]*\n[ \t|(\[{]*\Z")
_ROW_AFTER = re.compile(r"[ \t|;,\])}]*\n[ \t|(\[{]*\d+[ \t]+\d")
_SPACED_DATE = re.compile(r"\d\d? \d\d? (?:19|20)\d\d\b.*|(?:19|20)\d\d [01]?\d [0-3]\d\b.*")


def _check_spaced(text: str, start: int, end: int) -> Iterator[Span]:
    if end - start > 40:
        return
    start, end = _whole_groups(text, start, end)
    number = text[start:end]
    num_digits = sum(map(str.isdigit, number))
    before, after = text[max(0, start - 28) : start], text[end : end + 28]
    if not 8 <= num_digits <= 13 or _AFTER.match(after):
        return
    if _SPACED_DATE.fullmatch(number) or _is_sequence(number):
        return
    digits = re.sub(r"\D", "", number)
    with_trunk, without_trunk = _plans()
    is_trunk = with_trunk.fullmatch(digits)
    if not _GROUPS.fullmatch(number) or not (is_trunk or without_trunk.fullmatch(digits)):
        return
    is_long = num_digits > 8 or number.startswith("0800 ")
    sizes = "".join(str(len(group)) for group in re.findall(r"\d+", number))
    is_open = not ((is_long and (is_trunk or "(" in number)) or _CLEAR.fullmatch(sizes))
    if is_open and (not _OPEN.fullmatch(sizes) or _NEVER_OPEN.fullmatch(number)):
        return
    if is_open and (_ROW_AFTER.match(after) or _ROW_BEFORE.search(before)):
        return
    # The names of a phone have letters, and a list of numbers has none: 30 µs a number.
    line = before.rfind("\n") + 1  # none of the words is before it
    is_named = bool(_LETTER.search(before, line) and _PHONE_BEFORE.search(before, line))
    if is_named or not (
        (is_open and _is_among_numbers(text, start, end)) or _BEFORE.search(before, line)
    ):
        yield start, end


def _is_among_numbers(text: str, start: int, end: int) -> bool:
    """Check for a list, a table or a formula: several numbers are near."""
    before, after = text[max(0, start - 60) : start], text[end : end + 60]
    in_brackets = re.search(r"[\[{]\Z", before) and re.match(r"[\]}]", after)
    follows_number = re.search(r"\d ?[;,|] ?\Z", before)
    # Days, months and numbers drawn are small: "25 12 03 11".
    is_small = all(len(group) == 2 and int(group) <= 31 for group in text[start:end].split())
    is_poor = len(set(text[start:end].split())) < min(3, text.count(" ", start, end) + 1)
    return bool(
        is_poor
        or is_small
        or in_brackets
        or follows_number
        or len(re.findall(r"(?<!\w)\d+", before + " " + after)) > 3
    )


def _whole_groups(text: str, start: int, end: int) -> Span:
    """Cut a time, a date or a bracket that runs into the groups off their ends."""
    number = text[start:end]
    if text[start] == "(" and (")" not in number or number[1] == "("):
        start += 1
    # A bracket that opens at the end belongs to what follows: "020 7999 5489 (24h)".
    if (bracket := number.rfind(" (")) > 0 and ")" not in number[bracket:]:
        end = start + bracket
    if (
        " " in text[start:end]
        and re.match(r"[:.,/-]", text[max(0, start - 1) : start])
        and text[start - 2 : start - 1].isdigit()
    ):
        start = text.index(" ", start, end) + 1
    if " " in text[start:end] and re.match(r"[:.,/–-]\d", text[end : end + 2]):
        end = text.rindex(" ", start, end)
    return start, end


def _is_sequence(number: str) -> bool:
    """Check that two groups in a row are equal, or all grow by one step, as in "01 02 03 04"."""
    groups = [int(group) for group in re.findall(r"\d+", number)]
    steps = {after - before for before, after in pairwise(groups)}
    is_even = len(groups) > 2 and len(steps) == 1 and steps < {0, 1, 2, 5, 10, 11, 100, 111}
    return is_even or steps == {0} or set(number) <= set("01 ()")


# Local forms with other signs than blanks, in any digits: a trunk prefix, an area in brackets or a
# word before it tells a number of a country's plan from others.
_SHAPE = re.compile(
    r"(?:8[ -]?)?(?:\(\d{2,6}\)[ -]?|\d{2,6}(?: ?[-./–] ?| ))\d{2,8}(?:[-./– ]\d{2,8}){0,4}|"
    r"\d{8,12}"
)
_NO_PHONE = re.compile(rf"{_DATE.pattern}|\d{{3}}-\d\d-\d{{4}}")  # the form of SSNs
_CALLED = re.compile(
    r"(?i)(?:\b(?:(?:tele)?phone|tel\w{0,6}|tél\w{0,7}|tlf|fax|faks|mob\w{0,6}|móvil|celular|cell|"
    r"handy|whatsapp|sms|hotline|call|hubungi|telp|hp|appel\w*|llám\w*|liga|ligue|anruf\w*|ruf\w*|"
    r"chiam\w*|simu|gọi|ara)\b|тел|моб|звон|电话|電話|手机|携帯|전화|휴대폰|โทร|điện thoại|đt|"
    r"هاتف|جوال|تليفون|تلفن|موبایل|موبائل|فون|फोन|मोबाइल|ফোন|মোবাইল|ဖုန်း|ስልክ)[^\n\d]{0,24}\Z"
)


def _check_local(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the longest numbers that begin and end at blanks."""
    while start < end:
        stops = [end, *(i for i in range(end - 1, start, -1) if text[i] == " ")]
        stop = next((stop for stop in stops if _is_local(text, start, stop)), 0)
        if stop:
            yield start, stop
        start = text.find(" ", stop or start, end) + 1 or end


def _is_local(text: str, start: int, end: int) -> bool:
    if not _SHAPE.fullmatch(text, start, end) or _AFTER.match(text, end):
        return False
    number = text[start:end]
    digits = "".join(str(int(sign)) for sign in number if sign.isdecimal())
    if not 8 <= len(digits) <= 12:
        return False
    with_trunk, without_trunk = _plans()
    has_trunk = bool(with_trunk.fullmatch(digits))
    is_national = has_trunk or without_trunk.fullmatch(digits)
    is_open = number.isdecimal() or not (has_trunk or "(" in number)
    is_decimal = "." in number and (is_open or re.fullmatch(r"\d+\.\d+", number))
    if not is_national or is_decimal or _NO_PHONE.fullmatch(number) or _is_sequence(number):
        return False
    before = text[max(0, start - 40) : start]
    if re.search(r"(?a)[\w+.,:/-]\Z|\d[-–/] \Z", before):
        return False
    if _CALLED.search(before):
        return True
    return not (is_open or _BEFORE.search(before))


_DIGITS = "0-9٠-٩۰-۹०-९০-৯๐-๙၀-၉"
_NATIVE = (r"\xd9[\xa0-\xa9]", r"\xdb[\xb0-\xb9]", r"\xe0\xa5[\xa6-\xaf]", r"\xe0\xa7[\xa6-\xaf]",
           r"\xe0\xb9[\x90-\x99]", r"\xe1\x81[\x80-\x89]")  # fmt: skip


SCANS = (
    Scan(
        "phone",
        rf"[({_DIGITS}][{_DIGITS}() ./–-]{{8,26}}[{_DIGITS}]",
        _check_local,
        (
            *(
                r"[-/)]\d{5}",
                r"\d{3}-\d{4}",
                r"\d{3}[-.]\d{3}[-.]\d{2}",
                r"[ ).-]\d{3}-\d{2}-\d{2}",
            ),
            *(r"\d{2}[-.]\d{2}[-.]\d{2}[-.]\d{2}", *(3 * digit for digit in _NATIVE)),
        ),
        r"[0-9() ./\x80-\xff-]",
        FAR,
    ),
    Scan(
        "phone",
        r"\+\(?[1-9][0-9 ().–/-]{6}",
        _check_plus,
        (rf"+[1-9]{_SIGN}{{6}}", rf"+([1-9]{_SIGN}{{6}}"),
    ),
    Scan("phone", _AMERICAN_NUMBER, _check_american, (r"[-. ][1-9]\d{2}[-. ]\d{4}",)),
    Scan(
        "phone",
        _INTRODUCED_NUMBER,
        _check_introduced,
        (rf"[^0-9A-Za-z_\n<>\[\]{{}}]\d{_SIGN}{{5}}",),
        r"[^\n<>\[\]{}]",
    ),
    Scan(
        "phone",
        r"[0-9(][0-9() ]{6,}[0-9]",
        _check_spaced,
        (r"[\d)] \d\d[ \d]{2}",),
        "[0-9() ]",
        FAR,
    ),
)
