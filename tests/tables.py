"""Cases of a test as a table of text: a header with its parameters, then a line for each case.

    @cases('''
    line                  | sentences
    One. Two!             | 2
    "Ends in a blank. "   | 1
    ''')

A cell that Python can read is that value, any other is text. A line that starts with a bar goes on
with the case before it, one that starts with # is a comment.
"""

import re
from textwrap import dedent
from typing import Any

import pytest


def cases(table: str, **names: Any) -> pytest.MarkDecorator:
    """The parametrization of a table; `names` are what its cells may refer to."""
    header, *found = rows(table, **names)
    assert {len(row) for row in found} == {len(header)}, f"cells are missing: {table}"
    is_one = len(header) == 1
    return pytest.mark.parametrize(",".join(header), [row[0] for row in found] if is_one else found)


def rows(table: str, **names: Any) -> list[tuple[Any, ...]]:
    """The values of a table without a header."""
    return [tuple(value(cell, names) for cell in cells(line)) for line in table_lines(table)]


def table_lines(table: str) -> list[str]:
    text = dedent(table).strip("\n").replace("\n|", " |")
    return [line for line in text.split("\n") if not line.startswith("#")]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r" \|(?: |$)", line)]


def value(cell: str, names: dict[str, Any]) -> Any:
    try:
        return eval(cell, {"__builtins__": {}}, names)
    except (AttributeError, NameError, SyntaxError, TypeError):
        return cell
