"""How much planted personal data is found in real text, and how much else is taken for it.

    .venv/bin/python benchmarks/pii_quality.py [folder] [--show N]

Plants labelled values, in the ways people write them, and values that only look alike into
documents where nothing is found before; prints precision and recall per kind, then what is found in
the real text as it is, for the eye to judge, and the speed over it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import string
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa

from assets.filtered.pii.find_pii import find_pii
from benchmarks.pii_grammars import (
    ALNUM,
    EMAIL_CONTEXTS,
    EMAIL_LOOKALIKES,
    PASSWORD_CONTEXTS,
    PASSWORD_LOOKALIKES,
    PHONE_CONTEXTS,
    PLAIN_CONTEXTS,
    TOKEN_CONTEXTS,
    URL_CONTEXTS,
    URL_LOOKALIKES,
    WORD_PASSWORD_CONTEXTS,
    WORDS,
    Maker,
    atext_email,
    fill,
    is_aside,
    other_email,
    password,
    pick,
    spaced_lookalike,
    spaced_phone,
    spoken_email,
    url_context,
    url_password,
    url_token,
)
from resources.settings.filtering.filter_steps import DEFAULT_KINDS, PiiConfig, PiiKind

ROOT = Path(__file__).resolve().parent.parent


def email(rng: random.Random) -> str:
    """An address in one of the forms that people write."""
    return rng.choice([atext_email, atext_email, atext_email, other_email, spoken_email])(rng)


def ip(rng: random.Random) -> str:
    """A public address, three in four of version 4."""
    if rng.random() < 0.25:
        start = rng.choice(["2a00:1450", "2606:4700", "2600:1f18", "2001:4860", "2a02:8109"])
        groups = [f"{rng.randrange(1, 65536):x}" for _ in range(6)]
        tail = [":".join(groups), ":" + ":".join(groups[:2]).join(["", ""]), ":" + groups[0]]
        return f"{start}:{rng.choice(tail)}"
    nets = ["8.8", "52.95", "93.184", "203.80", "185.60", "104.16", "151.101", "77.12", "134.3"]
    return f"{rng.choice(nets)}.{rng.randrange(256)}.{rng.randrange(1, 255)}"


PHONES = """(415) N##-####;212-N##-####;617.N##.####;1-800-N##-####;+1 303 N##-####;+1-416-N##-####
+1 (702) N##-####;+1206N######;(555) ###-####;408 N##-####;+44 20 7### ####;+44 (0)161 4## ####
+447700 9#####;+49 30 @#######;+49 (0)89 / @##### - ##;+4917@########;+33 1 4# ## ## ##
+33 6.1#.##.##.##;+34 91 @## ## ##;+39 06 @### ####;+41 44 @## ## ##;+43/1/@## ## ##-##
+81-3-@###-####;+86 138 #### ####;+91 98### #####;+55 11 9####-####;+7 (495) @##-##-##
+61 2 9### ####
Tel.: 030 / @## ## ##;Telefon 089-@#######;Tel 0@## @######;Tél. : 01 4# ## ## ##;Tél 06.1#.##.##.##
Phone: 020 7### ####;phone number: 07700 9#####;Fax: 0221 @#####-##;tel:+1-201-N##-####
Telefono: 06 @### ####
Mobil: 0171 @######;Mobile: 04## ### ###;Teléfono: 91 @## ## ##;Cell: (305) N##-####
电话：010-6### ####
TEL 03-5###-####;Тел.: 8 (495) @##-##-##;Handy: 0151-@#######;Phone: 415N######
Telephone: 0@## ### ####"""


def phone(rng: random.Random) -> str:
    """A number in a form of its country; the word before it is no part of the value."""
    if rng.random() < 0.6:
        return spaced_phone(rng)
    return fill(rng.choice(PHONES.replace("\n", ";").split(";")), rng)


def ssn(rng: random.Random) -> str:
    """A number that could have been issued."""
    area = rng.choice([rng.randrange(1, 666), rng.randrange(667, 900)])
    return f"{area:03}-{rng.randrange(1, 100):02}-{rng.randrange(1, 10000):04}"


def luhn_digit(digits: str) -> str:
    """The check digit, by the textbook."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 == 0 else 1)
        total += value - 9 if value > 9 else value
    return str(-total % 10)


def card(rng: random.Random, shift: int = 0) -> str:
    """A card number with (or, shifted, without) a right check digit."""
    prefix, length = rng.choice(
        [
            ("4", 16),
            ("51", 16),
            ("2315", 16),
            ("37", 15),
            ("34", 15),
            ("6011", 16),
            ("3530", 16),
            ("36", 14),
            ("624", 16),
            ("4539", 16),
            ("55", 16),
        ]
    )
    digits = prefix + pick(string.digits, length - len(prefix) - 1, rng)
    digits += str((int(luhn_digit(digits)) + shift) % 10)
    cuts = {16: (4, 8, 12), 15: (4, 10), 14: (4, 10)}[length]
    separator = rng.choice(["", " ", " ", "-"])
    edges = [0, *cuts, length]
    return separator.join(digits[a:b] for a, b in itertools.pairwise(edges))


IBANS = """DE:##################;GB:NWBK##############;FR:####################M##
ES:####################
IT:X######################;NL:ABNA##########;BE:############;CH:#################
AT:################
PL:########################;SE:####################;NO:###########;PT:#####################
IE:AIBK##############;TR:0####0################;RO:BTRL################
CY:########################"""


def iban(rng: random.Random, shift: int = 0) -> str:
    """An account number with (or, shifted, without) right check digits."""
    country, shape = rng.choice(IBANS.replace("\n", ";").split(";")).split(":")
    account = fill(shape.replace("N", "\0").replace("@", ""), rng).replace("\0", "N")
    number = int("".join(str(int(sign, 36)) for sign in account + country + "00"))
    text = f"{country}{98 - number % 97 + shift:02}{account}"
    return text if rng.random() < 0.4 else " ".join(text[i : i + 4] for i in range(0, len(text), 4))


def api_key(rng: random.Random) -> str:
    """A key of a provider or an assignment, whose value is what counts."""
    word = pick(ALNUM + "_-", 400, rng).strip("_-")
    plain, capital = pick(ALNUM, 400, rng), pick(string.ascii_uppercase + "234567", 16, rng)
    jwt = f"eyJ{plain[:33]}.eyJ{plain[40:130]}.{plain[140:183]}"
    return rng.choice(
        [
            "AKIA" + capital,
            "ASIA" + capital,
            "gh" + rng.choice("pousr") + "_" + plain[:36],
            "github_pat_" + plain[:22] + "_" + plain[22:81],
            "glpat-" + plain[:20],
            jwt,
            f"xoxb-{rng.randrange(10**11, 10**12)}-{plain[:24]}",
            "AIza" + plain[:35],
            "sk_live_" + plain[:24],
            "rk_live_" + plain[:24],
            "sk-" + plain[:48],
            "hf_" + plain[:34],
            "sk-proj-" + plain[:3] + word[3:120],
            "sk-ant-api03-" + plain[:3] + word[3:90],
            "npm_" + plain[:36],
            "pypi-AgEIcHlwaS5vcmc" + plain[:140],
            f"SG.{plain[:22]}.{plain[22:65]}",
            "TWILIO_SID: SK" + pick("0123456789abcdef", 32, rng),
            f"AccountKey={plain[:86]}==",
            f'api_key = "{plain[:40]}"',
            f"SECRET_KEY='{plain[:50]}'",
            f'"access_token": "{plain[:64]}"',
            f"API_TOKEN={plain[:40]}",
        ]
    )


def private_key(rng: random.Random) -> str:
    """A PEM block as `openssl` and `ssh-keygen` write it, or as it stands in source code."""
    kind = rng.choice(["RSA ", "", "EC ", "OPENSSH ", "ENCRYPTED ", "DSA "])
    lines = [pick(ALNUM + "+/", 64, rng) for _ in range(rng.randrange(3, 26))] + ["Qw" * 9 + "=="]
    head, tail = (f"-----{word} {kind}PRIVATE " + "KEY-----" for word in ("BEGIN", "END"))
    if rng.random() < 0.2:
        return "\\n".join([head, *lines, tail])
    return "\n".join([head, *lines, tail])


MAKERS: dict[PiiKind, Maker] = {
    "email": email, "ip": ip, "phone": phone, "ssn": ssn, "credit_card": card, "iban": iban,
    "url_secret": url_password, "password": password, "api_key": api_key,
    "private_key": private_key,
}  # fmt: skip
CARRIERS = ["{}", "({})", "{}.", "{},", "see {} for more", "- {}", '"{}"', "write to {}; then"]
CARRIERS += [
    "| {} |",
    "{}",
    "Kontakt {} oder",
    "联系{}。",
    "id: {}",
    "<td>{}</td>",
    "x,{},y",
    "`{}`",
]
CARRIERS += [
    "[{}]",
    "{} (x)",
    "Jane: {}",
    "**{}**",
    "'{}'",
    "[INFO] {} done",
    "データ {} を",
    "от {} до",
    "a;{};b",
]
CONTEXTS: dict[PiiKind, list[str]] = {kind: CARRIERS for kind in DEFAULT_KINDS} | {
    "email": EMAIL_CONTEXTS, "phone": PLAIN_CONTEXTS + PHONE_CONTEXTS, "private_key": ["{}"],
    "url_secret": URL_CONTEXTS, "password": PASSWORD_CONTEXTS,
}  # fmt: skip
# Words alone are passwords only where the form says so, and tokens stand without a user.
OTHERS: dict[PiiKind, tuple[Maker, list[str]]] = {
    "url_secret": (url_token, TOKEN_CONTEXTS),
    "password": (lambda rng: rng.choice(WORDS) + rng.choice(WORDS), WORD_PASSWORD_CONTEXTS),
}


def lookalike(rng: random.Random) -> str:
    """Return what only looks like personal data."""
    if rng.random() < 0.25:
        return spaced_lookalike(rng)
    if rng.random() < 0.5:
        return rng.choice([*URL_LOOKALIKES, *PASSWORD_LOOKALIKES, *EMAIL_LOOKALIKES])
    octets = [rng.randrange(1, 100) for _ in range(4)]
    version = ".".join(map(str, octets))
    hexes = pick("0123456789abcdef", 40, rng)
    imei = "49" + pick("0123456789", 12, rng)
    identifier = f"{hexes[:8]}-{hexes[8:12]}-4{hexes[13:16]}-a{hexes[17:20]}-{hexes[20:32]}"
    return rng.choice(
        [
            f"v{version}",
            f"version {version}",
            f"numpy=={version}",
            f"libfoo-{version}.tar.gz",
            f"{version}.{octets[0]}",
            f"Chrome/{octets[0]}.0.{octets[1]}.{octets[2]}",
            fill("ISBN 978-#-##-######-#", rng),
            fill("ISBN #-###-#####-#", rng),
            fill("978##########", rng),
            fill("ISSN ####-####", rng),
            "@property\ndef size(self)",
            "@app.route('/x')",
            "user@localhost",
            f"commit {hexes}",
            f"md5: {hexes[:32]}",
            f"sha256 = '{hexes}{hexes[:24]}'",
            identifier,
            f'"token": "{identifier}"',
            f"key = '{hexes[:32]}'",
            "127.0.0.1:8000",
            "192.168.1.17",
            "10.0.0.0/8",
            "fe80::1ff:fe23:4567:890a",
            "2001:db8::8a2e:370:7334",
            "::1",
            "172.16.4.9",
            fill("20##-0@-1#", rng),
            fill("1#.0@.20##", rng),
            fill("19##-20##", rng),
            "12:34:56",
            fill("20##-0@-1#T12:34:56.######Z", rng),
            fill("$@,###,###.##", rng),
            fill("@.###.###,## €", rng),
            imei + str((int(luhn_digit(imei)) + 3) % 10),
            fill("x = ### + ### - ####", rng),
            fill("3.1415926535#####", rng),
            fill("-0.################", rng),
            fill("@.#########e-10", rng),
            ":".join(hexes[i : i + 2] for i in range(0, 12, 2)),
            "std::abc::de",
            "a::b::c",
            "dead::beef()",
            "@media (min-width: 600px)",
            "logo@2x.png",
            "icon-12@3x.webp",
            "react@18.2.0",
            "@types/node@20.1",
            "git@github.com:org/repo.git",
            "ssh://git@gitlab.com/a/b",
            "A@B.T",
            "x @ y.mean()",
            fill("000-##-####", rng),
            fill("666-##-####", rng),
            fill("9##-##-####", rng),
            fill("###-00-####", rng),
            card(rng, shift=4),
            iban(rng, shift=-1 if rng.random() < 0.5 else 1),
            fill("order @###########", rng),
            fill("#### #### #### ####  #### ####", rng),
            fill("1########0.123", rng),
            fill("part 1##-0##-####", rng),
            fill("Section @.@.@.@", rng),
            fill("17##########", rng),
            fill("pp. 1##-1##, 20##", rng),
            fill("(20##) 1##-1##", rng),
            "+10 000 000",
            "sk-estimator-doc-link",
            "hf_hub_download_and_cache_everything",
            "risk-adjusted-return-on-capital-2020",
            "cache_key = 'template.cache.page_header.d41d8cd98f00b204e9800998ecf8427e'",
            "AKIA stands for a key",
            "-----BEGIN CERTIFICATE-----",
            "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        ]
    )


def value_of(planted: str, kind: str) -> tuple[int, int]:
    """Return where in `planted` the value itself is, without the word that introduces it."""
    start = 0
    if kind == "phone":
        start = next(i for i, sign in enumerate(planted) if sign in "+(" or sign.isdigit())
    if kind == "api_key":
        words = planted.replace("=", " ", 1).replace('"', " ").replace("'", " ").split()
        start = planted.index(max(words, key=len))
    end = (
        len(planted) if kind in ("email", "password", "url_secret") else len(planted.rstrip("\"'"))
    )
    return start, end


def on_side(side: bool, make: Callable[[], str]) -> str:
    """Make values until one is on the side: aside, or among those to look at."""
    while is_aside(made := make()) != side:
        pass
    return made


def plant_value(kind: PiiKind, side: bool, rng: random.Random) -> tuple[str, str, str]:
    """Return the text before a value, the value, and the text after it."""
    maker, contexts = MAKERS[kind], CONTEXTS[kind]
    if kind in OTHERS and rng.random() < 0.15:
        maker, contexts = OTHERS[kind]
    made = on_side(side, lambda: maker(rng))
    context = on_side(side, lambda: rng.choice(contexts)) if len(contexts) > 1 else contexts[0]
    if kind == "phone" and not made[0].isdigit() and made[0] not in "+(":
        context = "{}"
    if kind == "url_secret":
        context = url_context(context, rng)
    before, after = context.split("{}")
    return before, made, after


def plant(
    texts: list[str], side: bool, rng: random.Random
) -> Iterator[tuple[str, list[tuple[str, int, int]]]]:
    """Yield each text with three values and two lookalikes between its words, of one side."""
    for text in texts:
        text = text[:4000]
        labels: list[tuple[str, int, int]] = []
        parts = text.split(" ")
        places = sorted(rng.sample(range(len(parts)), min(5, len(parts))))
        done, out = 0, ""
        for number, place in enumerate(places):
            # Half of the values begin a line, after whatever ended the one before.
            out += " ".join(parts[done:place]) + rng.choice(" \n")
            done = place
            if number % 5 in (1, 3):
                out += on_side(side, lambda: lookalike(rng)) + "\n"
                continue
            kind = rng.choice(DEFAULT_KINDS)
            before, made, after = plant_value(kind, side, rng)
            if kind == "password":  # settings have lines of their own, prose may go on
                out, after = out[:-1] + "\n", after + "\n"
            if before[:1] in ("-", ">", "|", "*"):
                out = out[:-1] + "\n"
            start, end = value_of(made, kind)
            offset = len(out) + len(before)
            labels.append((kind, offset + start, offset + end))
            out += before + made + after + rng.choice(" \n")
        yield out + " ".join(parts[done:]), labels


def read_texts(folder: Path) -> list[str]:
    """Return the texts of all JSON lines, Parquet, CSV and text files under `folder`."""
    texts: list[str] = []
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".parquet":
            texts += pl.read_parquet(path)["text"].cast(pl.String).to_list()
        elif path.suffix == ".csv" and "text" in (frame := pl.read_csv(path)).columns:
            texts += frame["text"].to_list()
        elif path.suffix == ".txt" and "LICENSES" not in path.parts:
            texts.append(path.read_text())
        elif ".jsonl" in path.name:
            # Arrow reads .gz and .zst by their names.
            with pa.input_stream(str(path)) as opened:
                texts += [json.loads(line)["text"] for line in opened.read().splitlines()]
    return [text for text in texts if text]


def measure(texts: list[str], side: bool, show: int) -> None:
    """Print precision and recall per kind; a span is right if it covers its value."""
    config = PiiConfig(action="tag")
    clean = pl.Series(texts).filter(find_pii(pl.Series(texts), config)[1]["pii_total"] == 0)
    rng = random.Random(7 + side)
    base = [text for text in clean.to_list() if text.count(" ") > 40][:12_000]
    rows = [row for _ in range(1 + 3_000 // len(base)) for row in plant(base, side, rng)]
    _, frame = find_pii(pl.Series([text for text, _ in rows]), config)
    counts: dict[str, Counter[str]] = {
        name: Counter() for name in ("planted", "right", "good", "bad", "exact")
    }
    wrong: list[str] = []
    for (text, labels), spans in zip(rows, frame["pii_spans"].to_list(), strict=True):
        got = {(span["kind"], span["start"], span["end"]) for span in spans}
        wrong += compare(text, set(labels), got, counts)
    print(f"{'kind':12} {'planted':>8} {'recall':>8} {'precision':>10} {'exact':>8}")
    for kind in [*DEFAULT_KINDS, "total"]:
        kinds = DEFAULT_KINDS if kind == "total" else (kind,)
        n, right, good, bad, exact = (sum(c[k] for k in kinds) for c in counts.values())
        print(
            f"{kind:12} {n:8} {right / n:8.4f} {good / max(1, good + bad):10.4f} {exact / n:8.4f}"
        )
    print(*rng.sample(wrong, min(show, len(wrong))), sep="\n")


def compare(
    text: str,
    labels: set[tuple[str, int, int]],
    got: set[tuple[str, int, int]],
    counts: dict[str, Counter[str]],
) -> Iterator[str]:
    """Count the right and wrong spans of a text, and yield a line for each wrong one."""
    counts["exact"].update(kind for kind, _, _ in got & labels)
    for kind, start, end in sorted(labels):
        covers = any(k == kind and s <= start and end <= e for k, s, e in got)
        counts["planted"][kind] += 1
        counts["right"][kind] += covers
        if not covers:
            yield f"missed {kind}: {excerpt(text, start, end)}"
    for kind, start, end in sorted(got):
        is_right = any(s < end and start < e for _, s, e in labels)
        counts["good" if is_right else "bad"][kind] += 1
        if not is_right:
            yield f"false {kind}: {excerpt(text, start, end)}"


def excerpt(text: str, start: int, end: int) -> str:
    """Return a span with what is around it."""
    return f"{text[max(0, start - 35) : start]!r} {text[start:end]!r} {text[end : end + 12]!r}"


def list_real(texts: list[str], show: int) -> None:
    """Print what is found in the texts as they are, and the speed."""
    series = pl.Series(texts)
    start = time.process_time()
    _, frame = find_pii(series, PiiConfig())
    seconds = time.process_time() - start
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    print(f"\nreal text: {megabytes:.0f} MB, {megabytes / seconds:.0f} MB per CPU second")
    rng = random.Random(7)
    for kind in DEFAULT_KINDS:
        print(f"{kind}: {frame[f'pii_{kind}'].sum()}")
        rows = [i for i, count in enumerate(frame[f"pii_{kind}"]) if count]
        for row in rng.sample(rows, min(show, len(rows))):
            span = next(span for span in frame["pii_spans"][row] if span["kind"] == kind)
            text = texts[row]
            print("   ", repr(text[max(0, span["start"] - 30) : span["end"] + 15]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "sample_data")
    parser.add_argument("--show", type=int, default=10, help="mistakes and finds to print")
    parser.add_argument("--show-aside", type=int, default=0, help="the same of those set aside")
    arguments = parser.parse_args()
    documents = read_texts(arguments.folder)
    measure(documents, False, arguments.show)
    print("\nvalues and contexts set aside")
    measure(documents, True, arguments.show_aside)
    list_real(documents, arguments.show)
