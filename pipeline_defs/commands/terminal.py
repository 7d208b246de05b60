"""Output and option types that verbs share: tables, lines, JSON, the wait for a run.

Names and texts are untrusted: nothing in them is markup or moves the cursor.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import ArgumentCollection, Parameter, Token
from msgspec import UnsetType
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from corpus_loader.places.url_secrets import masked
from resources.dagster_home import HOME_VARIABLE, dagster_home, default_home
from resources.errors import UsageError
from resources.runs.run_lock import run_lock, this_holder
from resources.settings.pipeline import CONFIG_VARIABLE, STORE_VARIABLE
from resources.store.records import to_json

PIPE_WIDTH = 180  # columns, where the output is no terminal
MOST_DIGITS = 18
# C0 controls as their pictures; C1, zero-width and bidirectional controls (UAX 9) as one sign.
PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {127: 0x2421}
HIDDEN = [*range(0x80, 0xA0), 0x61C, *range(0x200B, 0x2010), *range(0x2028, 0x202F)]
SIGNS = PICTURES | dict.fromkeys([*HIDDEN, *range(0x2060, 0x2070), 0xFEFF], 0xFFFD)
JOINERS = (0x200C, 0x200D)  # Persian and emoji need them, and they hide nothing
ONE_LINE = {code: sign for code, sign in SIGNS.items() if code not in JOINERS}
ONE_LINE |= {ord("\n"): 0x240A, ord("\t"): 0x2409}
MANY_LINES = {code: sign for code, sign in ONE_LINE.items() if code not in (9, 10)}

Cell = str | int | Sequence[str] | None  # a number gets its commas, a list has a line for each
Row = Sequence[Cell] | str | None  # a text alone is a heading, None ends a section


def one_line(text: str) -> str:
    """Return a text of a document as one line for a terminal, without secrets in its URLs."""
    return masked(text).translate(ONE_LINE)


def say(*lines: str) -> None:
    """Print lines."""
    sys.stdout.write("".join(f"{line.translate(ONE_LINE)}\n" for line in lines))


def warn(line: str) -> None:
    """Print a line to standard error, if there is one to print."""
    sys.stderr.write(f"{line.translate(ONE_LINE)}\n" if line else "")


def as_typed(*words: str) -> str:
    """Return a command of `corpus` as the user can type it: `corpus`, or the path of it.

    Variables that name the corpus are repeated: those of one command are not there for the next.
    """
    path = os.path.join(os.path.dirname(sys.executable), "corpus")
    near = os.path.relpath(path)
    if os.path.realpath(shutil.which("corpus") or "") == os.path.realpath(path):
        path = "corpus"
    elif "/" in near and not near.startswith(".."):
        path = near
    is_own_home = dagster_home().absolute() != default_home()
    names = (CONFIG_VARIABLE, STORE_VARIABLE, *[HOME_VARIABLE] * is_own_home)
    named = {name: os.environ.get(name) for name in names}
    settings = [f"{name}={shlex.quote(value)}" for name, value in named.items() if value]
    return " ".join([*settings, shlex.join([path, *words])])


def print_table(
    title: str, texts: Sequence[str], numbers: Sequence[str], rows: Iterable[Row]
) -> None:
    """Print a table with the columns `texts`, then `numbers` on the right; nothing without rows."""
    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD)
    table.collapse_padding, table.pad_edge = True, False
    for name in texts:
        table.add_column(Text(name))
    for name in numbers:
        table.add_column(Text(name), justify="right")
    indent = ""
    for row in rows:
        if row is None:
            table.add_section()
        elif isinstance(row, str):
            table.add_row(shown(row), style="bold")
            indent = "  "  # of what is below a heading
        else:
            first, *others = map(shown, row)
            table.add_row(Text(indent) + first, *others)
    if table.row_count:
        Console(width=None if sys.stdout.isatty() else PIPE_WIDTH).print(table)


def shown(cell: Cell) -> Text:
    """Return a cell of a table."""
    if isinstance(cell, int):
        return Text(f"{cell:,}")
    lines = [cell] if isinstance(cell, str) else cell or ()
    return Text("\n".join(line.translate(ONE_LINE) for line in lines))


def print_named(console: Console, lines: Mapping[str, str]) -> None:
    """Print each line after its name."""
    for name, line in lines.items():
        console.print(Text.assemble((f"{name}: ", "dim"), line))


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


def percentages(shares: Sequence[float] | UnsetType) -> str:
    """Return shares as text, "80.0%, 20.0%"; nothing for none."""
    return ", ".join(f"{share:.1%}" for share in shares or ())


def write_text(path: Path, content: str) -> None:
    """Write a file that the user named; UsageError if it cannot be written."""
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


def alone_on(root: Path, command: str) -> AbstractContextManager[object]:
    """Hold a store's lock for a command, after the end of a run that works on it."""

    def tell(line: str) -> None:
        sys.stderr.write(f"{line}\n")

    return run_lock(root, this_holder("", command), tell, time.sleep)


def read_natural(_: type, tokens: Sequence[Token]) -> int:
    """Read a whole number below 10^18, which int64 can hold."""
    text = tokens[0].value
    if not text.isdecimal() or len(text) > MOST_DIGITS:
        raise ValueError(f"{text!r:.40} is no whole number from 0 to 10^18")
    return int(text)


def read_positive(_: type, tokens: Sequence[Token]) -> int:
    """Read a whole number above 0."""
    text = tokens[0].value
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{text!r} is no number above 0")
    return int(text)


def check_one_given(arguments: ArgumentCollection) -> None:
    """Refuse a group of options unless exactly one of them is given."""
    given: list[Any] = list(arguments.filter_by(value_set=True))
    if len(given) != 1:
        names = " or ".join(argument.name for argument in arguments)
        given_names = ", ".join(argument.name for argument in given) or "neither"
        raise ValueError(f"give either {names}; given: {given_names}")


Json = Annotated[bool, Parameter(name="--json", help="Print JSON, for programs.")]
Natural = Annotated[int, Parameter(converter=read_natural)]
Positive = Annotated[int, Parameter(converter=read_positive)]
Source = Annotated[str | None, Parameter(help="Only this source.")]
