"""Published forms of keys, telephone numbers and national ids, as tables."""

from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).parent.parent / "data"


class KeyForm(NamedTuple):
    """A row of data/key_forms.tsv: the form in which a vendor's keys are published.

    prefix    a clue (see `candidates`) that every key begins with; one that ends in a blank or a
              sign names the place of the key, and stays
    alphabet  what a class of a regex has, for the characters after it
    length    how many: "36", or "20-255"
    check     what else must hold (see `passes_check`), or nothing
    """

    vendor: str
    prefix: str
    alphabet: str
    length: str
    check: str


def read_key_forms() -> tuple[KeyForm, ...]:
    """Read the table of keys."""
    _, *rows = (DATA / "key_forms.tsv").read_text("utf-8").splitlines()
    return tuple(KeyForm(*row.split("\t")) for row in rows)


class NationalId(NamedTuple):
    """A row of data/national_ids.tsv: how a country writes an id.

    check  the rule of its check digits (see `national_ids`)
    alone  regex of a form that is hardly anything else, or nothing
    after  regex of a form that counts after one of `words` (a regex, too), or nothing
    """

    country: str
    name: str
    check: str
    alone: str
    after: str
    words: str


def read_national_ids() -> tuple[NationalId, ...]:
    """Read the table of national ids."""
    _, *rows = (DATA / "national_ids.tsv").read_text("utf-8").splitlines()
    return tuple(NationalId(*row.split("\t")) for row in rows)


def read_phone_plans() -> tuple[str, str]:
    """Return the regexes of national numbers with trunk prefixes, and of those without.

    Italy has none, and its lines begin with 0; that of North America, 1, is a calling code, too.
    """
    _, *rows = (DATA / "phone_plans.tsv").read_text("utf-8").splitlines()
    plans = [row.split("\t") for row in rows]
    with_trunk = "|".join(
        f"{trunk or '(?=0)'}(?:{number})" for _, trunk, number in plans if trunk != "1"
    )
    return with_trunk, "|".join(number for _, _, number in plans)
