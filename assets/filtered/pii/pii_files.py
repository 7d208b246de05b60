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


def _rows_of(name: str) -> list[list[str]]:
    """Return the cells of a table of this package's data, without the names of columns."""
    _, *rows = (DATA / name).read_text("utf-8").splitlines()
    return [row.split("\t") for row in rows]


def read_key_forms() -> tuple[KeyForm, ...]:
    """Read the table of keys."""
    return tuple(KeyForm(*row) for row in _rows_of("key_forms.tsv"))


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
    return tuple(NationalId(*row) for row in _rows_of("national_ids.tsv"))


def read_phone_plans() -> tuple[str, str]:
    """Return the regexes of national numbers with trunk prefixes, and of those without.

    Italy has none, and its lines begin with 0; that of North America, 1, is a calling code, too.
    """
    plans = _rows_of("phone_plans.tsv")
    with_trunk = "|".join(
        f"{trunk or '(?=0)'}(?:{number})" for _, trunk, number in plans if trunk != "1"
    )
    return with_trunk, "|".join(number for _, _, number in plans)
