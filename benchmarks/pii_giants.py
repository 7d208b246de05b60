"""Masking of documents that are one long list of personal data: speed and memory per kind.

    python benchmarks/pii_giants.py [--megabytes 50] [kinds ...]

Prints MB/s of UTF-8 text per CPU second and the peak memory of a fresh process that masks one
document of N MB: one item per line, all in one line, and all without a gap. The items are valid
ones (public addresses, check digits that fit), so that each is found and replaced, or none if
there are more than 10,000 (`--megabytes 0.1` has fewer); some repeat one item, which may be none.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import resource
import string
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

os.environ.setdefault("POLARS_MAX_THREADS", "1")
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import_module("pipeline_defs")  # what it tells Polars' allocator must come before polars

import polars as pl  # noqa: E402

_LETTERS = string.ascii_letters + string.digits


def _email(dice: random.Random) -> str:
    return f"{dice.choice('abcdefg')}{dice.randrange(10**6)}.smith@mail{dice.randrange(999)}.org"


def _ip(dice: random.Random) -> str:
    return ".".join(str(dice.randrange(51, 99)) for _ in range(4))


def _phone(dice: random.Random) -> str:
    return f"+1 (212) {dice.randrange(212, 999)}-{dice.randrange(1000, 9999)}"


def _card(dice: random.Random) -> str:
    digits = f"4{dice.randrange(10**14):014}"
    last = next(n for n in map(str, range(10)) if _fits_luhn(digits + n))
    return f"{digits[:4]} {digits[4:8]} {digits[8:12]} {digits[12:]}{last}"


def _fits_luhn(digits: str) -> bool:
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(doubled) + sum(map(int, digits[::-2]))) % 10 == 0


def _iban(dice: random.Random) -> str:
    number = f"{dice.randrange(10**18):018}"
    return f"DE{98 - int(number + '131400') % 97:02}{number}"


def _key(dice: random.Random) -> str:
    return "ghp_" + "".join(dice.choices(_LETTERS, k=36))


def _assigned_key(dice: random.Random) -> str:
    return "token=" + "".join(dice.choices(_LETTERS, k=40))


def _password(dice: random.Random) -> str:
    return "password=" + "".join(dice.choices(_LETTERS, k=10))


def _told_password(dice: random.Random) -> str:
    return "my password is " + "".join(dice.choices(_LETTERS, k=8))


def _tight_email(dice: random.Random) -> str:
    return f"{dice.choice(_LETTERS)}=a{dice.randrange(100)}@{dice.choice('abc')}.org"


def _pairs_of_digits(dice: random.Random) -> str:
    return " ".join(str(dice.randrange(11, 99)) for _ in range(5))


def _letters(dice: random.Random, size: int) -> str:
    return "".join(dice.choices(_LETTERS, k=size))


def _quoted_password(dice: random.Random) -> str:
    return f"password: '{_letters(dice, 10)}'"


def _password_before(dice: random.Random) -> str:
    return f"use {_letters(dice, 9)} as the password"


def _word_password(dice: random.Random) -> str:
    return "password " + "".join(dice.choices(string.ascii_lowercase, k=6))


def _triples_of_digits(dice: random.Random) -> str:
    return " ".join(str(dice.randrange(111, 999)) for _ in range(3)) + " a"


def _small_ip(dice: random.Random) -> str:
    return "ip " + ".".join(str(dice.randrange(1, 50)) for _ in range(4))


def _ip6(dice: random.Random) -> str:
    return f"2a00:{dice.randrange(65_536):x}::{dice.randrange(1, 65_536):x}"


def _ssn(dice: random.Random) -> str:
    return f"{dice.randrange(100, 600)}-{dice.randrange(10, 99)}-{dice.randrange(1000, 9999)}"


def _wrong_card(dice: random.Random) -> str:
    return f"{dice.randrange(10**12, 10**13)}"


def _url_secret(dice: random.Random) -> str:
    return f"http://{_letters(dice, 4)}:{_letters(dice, 5)}@a.de"


def _dsn(dice: random.Random) -> str:
    return f"{_letters(dice, 2)}:{_letters(dice, 3)}@tcp("


def _introduced_phone(dice: random.Random) -> str:
    return f"tel:{dice.randrange(10**6, 10**7)}"


def _command(dice: random.Random) -> str:
    command = dice.choice(("mysql -u root -p", "curl -u user:", "sshpass -p ", "redis-cli -a "))
    return command + _letters(dice, 8)


def _uuid_key(dice: random.Random) -> str:
    groups = ("".join(dice.choices("0123456789abcdef", k=size)) for size in (8, 4, 4, 4, 12))
    return "api_key=" + "-".join(groups)


def _odd_password(dice: random.Random) -> str:
    return "password=" + "".join(dice.choices(string.ascii_letters + string.punctuation, k=12))


def _wide_email(dice: random.Random) -> str:
    local, host = ("".join(dice.choices("äöüßéñабвгдежз", k=6)) for _ in range(2))
    return f"{local}{dice.randrange(99)}@{host}.{dice.choice(('de', 'org', 'рф'))}"


def _name_password(dice: random.Random) -> str:
    return f"password={dice.choice(_NAMES)}{dice.randrange(10, 10_000)}"


def _told_name_password(dice: random.Random) -> str:
    return f"password {dice.choice(_NAMES)}{dice.randrange(10, 10_000)}"


def _technical_password(dice: random.Random) -> str:
    return f"password={dice.choice(_TECHNICAL)}{_letters(dice, 10)}"


def _told_technical_password(dice: random.Random) -> str:
    return f"password is {dice.choice(_TECHNICAL)}{_letters(dice, 10)}"


def _technical_key(dice: random.Random) -> str:
    return f"token={dice.choice(_TECHNICAL)}{_letters(dice, 40)}"


def _nine_letters(dice: random.Random) -> str:
    return _letters(dice, 9)


def _between(
    before: str, item: Callable[[random.Random], str], after: str
) -> Callable[[random.Random], str]:
    return lambda dice: f"{before}{item(dice)}{after}"


def _email_of(letters: str, top: str) -> Callable[[random.Random], str]:
    def item(dice: random.Random) -> str:
        local, host = ("".join(dice.choices(letters, k=4)) for _ in range(2))
        return f"{local}{dice.randrange(99)}@{host}{dice.randrange(99)}.{top}"

    return item


def _always(item: str) -> Callable[[random.Random], str]:
    return lambda dice: item


# What values begin with that may be names: of secrets, and technical ones.
_NAMES = ("mypass", "admin", "secret", "passwd", "token", "user", "Password", "test")
_TECHNICAL = ("md5-", "sha256-", "v2-", "base64-", "utf8_", "pass12-")
# What is before and after a value, in scripts of three bytes a letter.
_TOLD_IN = {
    "chinese": (("密码：", "。"), ("邮箱", "，")),
    "japanese": (("パスワードは", "です。"), ("メールは", "まで。")),
    "korean": (("비밀번호는 ", "입니다."), ("메일은 ", "입니다.")),
    "thai": (("รหัสผ่าน: ", " ครับ"), ("อีเมล", "ครับ")),
    "hindi": (("पासवर्ड: ", "।"), ("ईमेल ", "।")),
}
# Texts that repeat one thing, of which each needs its check.
REPEATED = {
    "same small ip": "1.2.3.4",
    "same resolver": "8.8.8.8",
    "password is": "password is",
    "password=": "password=",
    "密码：": "密码：",
    "(a@b.co": "(a@b.co",
    "a=b@c.org": "a=b@c.org",
    "same password": "password: 'abc12!'",
    "same quoted email": '"a b"@example.org',
    "same no email": "joe@ex.png",
    "same ssn": "123-45-6789",
    "same phone": "01 23 45 67 89",
    "same url": "http://a:b@c.de",
}
KINDS: dict[str, Callable[[random.Random], str]] = {
    **{name: _always(item) for name, item in REPEATED.items()},
    "email": _email,
    "ip": _ip,
    "phone": _phone,
    "credit_card": _card,
    "iban": _iban,
    "api_key": _key,
    "api_key assigned": _assigned_key,
    "password": _password,
    "told password": _told_password,
    "tight email": _tight_email,
    "pairs of digits": _pairs_of_digits,
    "triples of digits": _triples_of_digits,
    "quoted password": _quoted_password,
    "password before": _password_before,
    "word password": _word_password,
    "small ip": _small_ip,
    "ip6": _ip6,
    "ssn": _ssn,
    "wrong card": _wrong_card,
    "url secret": _url_secret,
    "dsn": _dsn,
    "introduced phone": _introduced_phone,
    "command": _command,
    "uuid key": _uuid_key,
    "odd password": _odd_password,
    "wide email": _wide_email,
    "name password": _name_password,
    "told name": _told_name_password,
    "technical": _technical_password,
    "told technical": _told_technical_password,
    "technical key": _technical_key,
    **{
        f"password {name}": _between(told[0], _nine_letters, told[1])
        for name, (told, _) in _TOLD_IN.items()
    },
    **{
        f"email {name}": _between(before, _email, after)
        for name, (_, (before, after)) in _TOLD_IN.items()
    },
    "email of chinese": _email_of("张伟李娜王芳", "中国"),
    "email of hindi": _email_of("कखगघच", "भारत"),
    "ip chinese": _between("地址", _ip, "。"),
    "url chinese": _between("地址", _url_secret, "。"),
    "command chinese": _between("运行", _command, "，"),
}


def main() -> None:
    """Measure each kind and layout in a process of its own, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], default=[])
    parser.add_argument("--megabytes", type=float, default=50)
    arguments = parser.parse_args()
    print(f"{'kind':18} {'layout':8} {'MB/s':>6} {'peak MB':>8} {'found':>10}")
    for kind in arguments.kinds or KINDS:
        for layout, gap in (("lines", "\n"), ("one line", " "), ("no gap", "")):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                speed, peak, found = pool.apply(_measure, (kind, gap, arguments.megabytes))
            print(f"{kind:18} {layout:8} {speed:6.1f} {peak:8,.0f} {found:10,}", flush=True)


def _measure(kind: str, gap: str, megabytes: float) -> tuple[float, float, int]:
    """Return MB per CPU second, peak memory in MB and the number of spans."""
    from assets.filtered.pii.find_pii import find_pii
    from resources.settings.filtering.filter_steps import PiiConfig

    dice = random.Random(1)
    sample = gap.join(KINDS[kind](dice) for _ in range(20_000)) + gap
    lines = "\n".join(KINDS[kind](dice) for _ in range(100))
    find_pii(pl.Series([sample[:2_000], lines]), PiiConfig())  # loads the kernels
    size = int(megabytes * 1e6)
    text = (sample * (size // len(sample) + 1)).encode()[:size].decode(errors="ignore")
    texts = pl.Series([text])
    before = time.process_time()
    _, counts = find_pii(texts, PiiConfig())
    taken = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return len(text.encode()) / 1e6 / taken, peak, counts["pii_total"].item()


if __name__ == "__main__":
    main()
