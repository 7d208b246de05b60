"""National ids are masked where they are asked for, by their check digits and the words near them.

The ids are examples that authorities or manuals publish, or follow the rule and are no one's.
"""

import random
import re

from prelude import pl, pytest
from random_forms import NUMBERS, fill

from assets.filtered.pii.find_pii import find_pii
from assets.filtered.pii.pii_files import read_national_ids
from resources.settings.filtering.filter_steps import DEFAULT_KINDS, KINDS, PiiConfig

# Country, a sentence in a language of the country, valid ids, and one whose check digit is wrong.
IDS = """AU | My TFN is {} thanks | 123 456 782;876543210 | 123 456 783
BE | Mijn rijksregisternummer: {}. | 85.07.30-033.28;17073003384 | 85.07.30-033.29
BE | Numéro national {} | 85 07 30 033 28;85073003328 | 17073003385
BR | CPF nº {}, residente | 390.533.447-05;11144477735 | 390.533.447-06
CA | SIN: {} | 046 454 286;123-456-782 | 046 454 287
CA | numéro d’assurance sociale {} | 046454286;130 692 544 | 123 456 783
CL | cédula de identidad RUT {} | 12.531.909-2;76086428-5 | 12.531.909-3
CN | 身份证号码{}。 | 11010519491231002X;360426199101010071 | 110105194912310021
DE | Steuer-ID {} | 36 574 261 809;86095742719 | 36 574 261 808
ES | con DNI {}, vecino | 12345678Z;54362315-K;12.345.678-Z | 12345678A
ES | NIE: {} | X2482300W;Y1234567X | X2482300X
FI | henkilötunnus {} | 131052-308T;131052A308T | 131052-308U
FR | N° de sécurité sociale : {} | 2 95 10 99 126 111 93;255081416802538 | 2 95 10 99 126 111 94
GB | National Insurance number {} | AB 12 34 56 C;HH123456C | BG 12 34 56 C
IN | मेरा आधार नंबर {} है | 2341 2341 2346;234123412346 | 2341 2341 2347
IT | codice fiscale {}, nato | RCCMNL83S18D969H;RSSMRA85T10A562S | RSSMRA85T10A562T
KR | 주민등록번호 {} | 820701-2409181;9710139019902 | 820701-2409184
MX | CURP {} | BOXW310820HNERXN09;HEGG560427MVZRRL04 | BOXW310820HNERXN08
NL | BSN: {} | 111222333;1112.22.333 | 111222334
NO | fødselsnummer {} | 151086 95088;01010012356 | 151086 95089
PL | PESEL {} | 44051401359;02070803628 | 44051401358
SE | personnummer {} | 811228-9874;198803200016 | 811228-9875
TR | TC Kimlik No: {} | 10000000146;17291716060 | 10000000147
ZA | ID number {} | 7503305044089;800101 5009 087 | 7503305044080"""
ROWS = [row.split(" | ") for row in IDS.splitlines()]
MASK = "<NATIONAL_ID>"


def redacted(texts: list[str], *kinds: str) -> list[str]:
    """Return texts with the ids that are found, and what is found of other kinds, replaced."""
    config = PiiConfig.model_validate({"kinds": kinds or ("national_id",)})
    return find_pii(pl.Series(texts, dtype=pl.String), config)[0].to_list()


@pytest.mark.parametrize(("country", "sentence", "valid", "wrong"), ROWS)
def test_valid_ids_are_masked_and_one_with_a_wrong_check_digit_stays(
    country: str, sentence: str, valid: str, wrong: str
) -> None:
    ids = valid.split(";")
    found = redacted([sentence.format(own) for own in (*ids, wrong)])
    assert found == [*[sentence.format(MASK)] * len(ids), sentence.format(wrong)], country


def test_every_country_of_the_table_has_ids_here() -> None:
    assert {own.country for own in read_national_ids()} == {country for country, *_ in ROWS}


def test_no_other_last_sign_passes() -> None:
    rows = [row for row in ROWS if row[0] != "GB"]  # has none that is checked
    texts = [
        sentence.format(own[:-1] + sign)
        for _, sentence, valid, _ in rows
        for own in valid.split(";")
        for sign in ("0123456789" if own[-1].isdigit() else "ABCDEFGHIJKLMNPQRSTUVWXYZ")
        if sign != own[-1]
    ]
    assert redacted(texts) == texts


def test_what_other_numbers_look_like_asks_for_a_word() -> None:
    named = {own.country for own in read_national_ids() if not own.alone}
    texts = [f"the value {own} here" for country, _, valid, _ in ROWS if country in named
             for own in valid.split(";")]  # fmt: skip
    assert len(named) == 12
    assert redacted(texts) == texts


def test_ids_are_found_at_every_edge_and_beside_others() -> None:
    texts = ["11010519491231002x", "CPF\t390.533.447-05;PESEL=44051401359\n", "é131052-308T.",
             "BSN 111222333, SIN 046 454 286", "x11010519491231002X 131052-308T-1"]  # fmt: skip
    assert redacted(texts) == [
        MASK, f"CPF\t{MASK};PESEL={MASK}\n", f"é{MASK}.", f"BSN {MASK}, SIN {MASK}", texts[-1],
    ]  # fmt: skip


def test_an_id_counts_before_a_telephone_number() -> None:
    texts = ["Mobile or SIN: 046 454 286", "mail a@b.io"]
    assert redacted(texts, *KINDS) == [f"Mobile or SIN: {MASK}", "mail <EMAIL>"]


def test_ids_are_an_option() -> None:
    texts = ["CPF nº 390.533.447-05", "codice fiscale RSSMRA85T10A562S"]
    assert redacted(texts, *DEFAULT_KINDS) == texts
    assert set(KINDS) - set(DEFAULT_KINDS) == {"national_id"}
    # What fingerprints are made of is as it was before there was the option.
    assert PiiConfig() == PiiConfig(kinds=DEFAULT_KINDS)
    assert "national_id" not in PiiConfig().model_dump_json()
    own = PiiConfig.model_validate(
        {"kinds": ["national_id"], "placeholders": {"national_id": "[ID]"}}
    )
    assert find_pii(pl.Series(texts[:1]), own)[0].item() == "CPF nº [ID]"


LOOKALIKES = """{d*4}-{d*3}-{d*3} and {d*3}-{d*3}-{d*3}
call 0{d*2}-{d*4}-{d*4}, +49 30 {d*6}, ({d*3}) {d*3}-{d*4}
17{d*8} 17{d*11} 20{d*2}0{d*1}1{d*1}{d*6}
20{d*2}-0{d*1}-1{d*1}T1{d*1}:{d*2}:{d*2}Z
id: {d*9}, user_id={d*11}, "id": {d*13}
{u*3}-{d*6}-{u*2} {d*6}-{d*3}{u*1}
{d*8}{u*1} {u*1}{d*8} {u*2}{d*6}{u*1}
{d*2}.{d*3}.{d*3} EUR, {d*3}.{d*3}.{d*3} tokens
{d*3} {d*3} {d*3} people in {d*4} {d*4} {d*4}
{d*2} {d*2} {d*2} {d*2} {d*2}
SKU {u*6}{d*2}{u*1}{d*2}{u*1}{d*3}{u*1}
IMEI {d*15}, ICCID 89{d*17}, card {d*16}
the PESEL of {d*4}, a BSN with {d*2} digits, SIN({d*2})
0.{d*16} {d*12} {d*18}"""


def test_of_3000_numbers_that_look_alike_at_most_one_is_touched() -> None:
    rng = random.Random(21)
    forms = [*NUMBERS.splitlines(), *LOOKALIKES.splitlines()]
    texts = [fill(form, rng) for form in forms for _ in range(1 + 3_000 // len(forms))]
    changed = [text for text, after in zip(texts, redacted(texts), strict=True) if text != after]
    assert len(texts) >= 3_000
    assert len(changed) <= 1, changed


def test_the_words_of_a_form_begin_and_end_as_words() -> None:
    assert redacted(["casino 046 454 286", "SINGLE 046 454 286", "CASIN 046 454 286"]) == [
        "casino 046 454 286", "SINGLE 046 454 286", "CASIN 046 454 286",
    ]  # fmt: skip
    assert all(re.compile(own.alone or own.after) for own in read_national_ids())
