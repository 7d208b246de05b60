"""Patterns and check digits of the national ids of data/national_ids.tsv: an option.

Each rule is its authority's: the source stands at the check. A form that other numbers share counts
only after a word for it. Korean ids of October 2020 and later have no check digit, and are missed.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

from assets.filtered.pii.identity_numbers import passes_luhn
from assets.filtered.pii.pii_files import read_national_ids
from assets.filtered.pii.scan import FAR, Scan, Span


def _dot(signs: Iterable[int], weights: Iterable[int]) -> int:
    return sum(sign * weight for sign, weight in zip(signs, weights, strict=False))


def _sums_to(rest: int, modulus: int, *rows: Sequence[int]) -> Callable[[str], bool]:
    """Check by sums of the signs, weighted from the last one on; X and K are 10."""

    def check(value: str) -> bool:
        signs = [10 if sign in "XK" else int(sign) for sign in reversed(value)]
        return all(_dot(signs, row) % modulus == rest for row in rows)

    return check


def _aadhaar(value: str) -> bool:
    """UIDAI: the rule of J. Verhoeff, Error Detecting Decimal Codes, 1969."""
    check = 0
    for place, sign in enumerate(reversed(value)):
        digit = int(sign)
        for _ in range(place % 8):
            digit = int("1576283094"[digit])
        # The product of two elements of the dihedral group D5, of which 5 to 9 are reflections.
        is_turned = check > 4
        check = (check - digit if is_turned else check + digit) % 5 + 5 * (is_turned != (digit > 4))
    return check == 0


def _belgian(value: str) -> bool:
    """Royal Decree of 3 April 1984: 97 less the rest; a 2 goes before those born from 2000 on."""
    return 97 - int(value[9:]) in (int(value[:9]) % 97, int("2" + value[:9]) % 97)


def _codice_fiscale(value: str) -> bool:
    """Ministerial decree of 23 December 1976: values of signs at odd and at even places."""
    places = [int(sign) if sign.isdigit() else ord(sign) - ord("A") for sign in value]
    odd = b"\1\0\5\7\11\15\17\21\23\25\2\4\22\24\13\3\6\10\14\16\20\12\26\31\30\27"
    return (sum(odd[own] for own in places[:15:2]) + sum(places[1:15:2])) % 26 == places[15]


def _cpf(value: str) -> bool:
    """Receita Federal: two digits modulo 11, of which 10 is written as 0."""
    return all(
        _dot(map(int, value), range(size + 1, 1, -1)) * 10 % 11 % 10 == int(value[size])
        for size in (9, 10)
    )


def _curp(value: str) -> bool:
    """RENAPO, Instructivo normativo para la asignación de la CURP."""
    signs = map("0123456789ABCDEFGHIJKLMNÑOPQRSTUVWXYZ".index, value)
    return _dot(signs, range(18, 0, -1)) % 10 == 0


def _dni(value: str) -> bool:
    """Royal Decree 1553/2005: the letter is the number modulo 23; X, Y, Z of a NIE are 0, 1, 2."""
    number = value[:-1].translate(str.maketrans("XYZ", "012"))
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == value[-1]


def _hetu(value: str) -> bool:
    """Digital and Population Data Services Agency: the birth date and number modulo 31."""
    return "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(value[:6] + value[-4:-1]) % 31] == value[-1]


def _nir(value: str) -> bool:
    """INSEE: 97 less the rest; 2A and 2B of Corsica are 19 and 18."""
    number = value[:13].replace("2A", "19").replace("2B", "18")
    return 97 - int(number) % 97 == int(value[13:])


def _rrn(value: str) -> bool:
    """Ministry of the Interior and Safety: modulo 11, of which 10 and 11 are written as 0 and 1."""
    total = _dot(map(int, value), (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5))
    return (11 - total % 11) % 10 == int(value[12])


def _steuer_id(value: str) -> bool:
    """Steueridentifikationsnummerverordnung: ISO 7064, MOD 11,10; one digit comes 2 or 3 times."""
    rest = 10
    for sign in value[:10]:
        rest = ((rest + int(sign)) % 10 or 10) * 2 % 11
    repeats = sorted(map(value[:10].count, set(value[:10])))
    return (11 - rest) % 10 == int(value[10]) and repeats[-2] == 1 < repeats[-1] < 4


def _tckn(value: str) -> bool:
    """Nüfus ve Vatandaşlık İşleri: two digits modulo 10."""
    odd, even = (sum(map(int, value[first:9:2])) for first in (0, 1))
    total = sum(map(int, value[:10]))
    return (7 * odd - even) % 10 == int(value[9]) and total % 10 == int(value[10])


_CHECKS: dict[str, Callable[[str], bool]] = {
    "aadhaar": _aadhaar,
    "any": bool,  # of the form and a word
    "belgian": _belgian,
    "bsn": _sums_to(0, 11, (-1, *range(2, 10))),  # Besluit burgerservicenummer
    "chinese": _sums_to(1, 11, [2**place for place in range(18)]),  # GB 11643: ISO 7064, MOD 11-2
    "codice_fiscale": _codice_fiscale,
    "cpf": _cpf,
    "curp": _curp,
    "dni": _dni,
    "hetu": _hetu,
    "luhn": passes_luhn,
    "nir": _nir,
    "norwegian": _sums_to(  # Skatteetaten
        0, 11, (0, 1, 2, 5, 4, 9, 8, 1, 6, 7, 3), (1, 2, 3, 4, 5, 6, 7, 2, 3, 4, 5)
    ),
    "pesel": _sums_to(0, 10, (1, 3, 1, 9, 7, 3, 1, 9, 7, 3, 1)),  # Act of 24 September 2010
    "rrn": _rrn,
    "rut": _sums_to(0, 11, (1, 2, 3, 4, 5, 6, 7, 2, 3)),  # Servicio de Impuestos Internos
    "steuer_id": _steuer_id,
    "swedish": lambda value: passes_luhn(value[-10:]),  # Skatteverket, SKV 704: without the century
    "tckn": _tckn,
    "tfn": _sums_to(0, 11, (10, 9, 6, 8, 5, 7, 3, 4, 1)),  # Australian Taxation Office
}
_AFTER_WORD = r"(?i)(?<![^\W\d_])(?:WORDS)(?![^\W\d_])[^\d\n]{0,30}\Z"


@cache  # 9 ms, for those who ask for the kind
def _forms() -> list[tuple[re.Pattern[str], Callable[[str], bool], str]]:
    return [
        (re.compile(rf"(?a)(?<![\w.+-])(?:{form})(?!\w|[.-]\d)"), _CHECKS[own.check], word)
        for own in read_national_ids()
        for form, word in ((own.alone, ""), (own.after, _AFTER_WORD.replace("WORDS", own.words)))
        if form
    ]


def _check_national_id(text: str, start: int, end: int) -> Iterator[Span]:
    for form, passes, word in _forms():
        for found in form.finditer(text, start, end + 1):
            value = re.sub(r"[^0-9A-Z]", "", found[0].upper())
            before = text[max(0, found.start() - 60) : found.start()]
            if len(set(value)) > 1 and passes(value) and re.search(word, before):
                yield found.span()


SCANS = (
    Scan(
        "national_id",
        "[0-9A-Z][0-9A-Z ./+-]{7,}",
        _check_national_id,
        (
            r"\d{6}",
            r"\d{3}[ .-]\d{3}",
            r"\d{4}[ .-]\d{2}",
            r"\d{2}[ .]\d{2}[ .]\d{2}",
            r"\d{2}[A-Z]\d{2}[A-Z]",
        ),
        "[0-9A-Z ./+-]",
        FAR,
    ),
)
