"""Output that several verbs share: tables, JSON, and text that is safe on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import UnsetType
from rich.console import Console
from rich.table import Table

from corpus_loader.places.url_secrets import masked
from resources.store.records import to_json

PIPE_WIDTH = 180  # columns, where the output is no terminal
# C0 controls as their pictures; C1, zero-width and bidirectional controls (UAX 9) as one sign.
PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {127: 0x2421}
HIDDEN = [*range(0x80, 0xA0), 0x61C, *range(0x200B, 0x2010), *range(0x2028, 0x202F)]
SIGNS = PICTURES | dict.fromkeys([*HIDDEN, *range(0x2060, 0x2070), 0xFEFF], 0xFFFD)
JOINERS = (0x200C, 0x200D)  # Persian and emoji need them, and they hide nothing
ONE_LINE = {code: sign for code, sign in SIGNS.items() if code not in JOINERS}
ONE_LINE |= {ord("\n"): 0x240A, ord("\t"): 0x2409}
MANY_LINES = {code: sign for code, sign in ONE_LINE.items() if code not in (9, 10)}


def one_line(text: str) -> str:
    """Return a text of a document as one line for a terminal, without secrets in its URLs."""
    return masked(text).translate(ONE_LINE)


def new_table(title: str, names: Sequence[str], numbers: Sequence[str]) -> Table:
    """Make an empty table: text columns on the left, numbers right-aligned."""
    table = Table(title=title, title_justify="left")
    for name in names:
        table.add_column(name)
    for name in numbers:
        table.add_column(name, justify="right")
    return table


def percentages(shares: Sequence[float] | UnsetType) -> str:
    """Return shares as text, "80.0%, 20.0%"; nothing for none."""
    return ", ".join(f"{share:.1%}" for share in shares or ())


def table_console(width: int = PIPE_WIDTH) -> Console:
    """Make a console for tables: `width` columns where the output is no terminal."""
    return Console(width=None if sys.stdout.isatty() else width)


def print_json(value: object) -> None:
    """Print a value as canonical JSON: keys sorted, those of structs too."""
    sys.stdout.write(to_json(msgspec.to_builtins(value)).decode())


def masked_values(value: object) -> object:
    """Return a value for JSON with the secrets in its URLs masked."""
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, Mapping):
        return {key: masked_values(each) for key, each in value.items()}
    return [masked_values(each) for each in value] if isinstance(value, list) else value
