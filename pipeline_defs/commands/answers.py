"""Answers of verbs: the same frames as tables for people and as JSON for programs.

In a table numbers are on the right, shares are percentages, a list has a line for each of its
texts, null is blank, and a column without any value is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

import polars as pl

from pipeline_defs.commands.terminal import Cell, Row, percentages, print_json, print_table, say
from resources.tasks import GLOBAL

SHARES = ("share", "weight")  # last words of columns that hold shares
SMALL_SHARE = 0.01  # has two digits


class TableOf(NamedTuple):
    """A table for people: columns of texts, then of numbers, and rows."""

    texts: list[str]
    numbers: list[str]
    rows: list[Row]


def answer(title: str, frame: pl.DataFrame, nothing: str, *, json: bool) -> None:
    """Print a frame as a table for people, `nothing` if it has no rows; or its rows as JSON."""
    if json:
        print_json(nested(frame))
    elif frame.is_empty():
        say(nothing)
    else:
        print_frame(title, frame)


def answer_lines(lines: Iterable[str], told: Mapping[str, Any], *, json: bool) -> None:
    """Print lines for people; or as JSON what they are of, frames and other values by name."""
    if json:
        frames = {name: nested(of) for name, of in told.items() if isinstance(of, pl.DataFrame)}
        print_json({**told, **frames})
    else:
        say(*lines)


def print_rows(title: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Print rows as `print_frame` does; one may have columns that others have not."""
    print_frame(title, pl.DataFrame([*rows], infer_schema_length=None))


def print_frame(title: str, frame: pl.DataFrame, group: str = "") -> None:
    """Print a frame as a table for people, nothing without rows; see `as_table`."""
    if not frame.is_empty():
        print_table(title, *as_table(frame, group))


def nested(frame: pl.DataFrame, *by: str, of: Iterable[str] = ()) -> Any:
    """Return a frame for JSON: a list of its rows, or objects in objects by the values of columns.

    `of` are names that are there without rows, too. Objects have no null; where one column is left
    they are its values. A list of pairs is an object.
    """
    pairs = [name for name, dtype in frame.schema.items() if dtype == pl.List(pl.Struct)]
    rows = frame.to_dicts()
    for row in rows:
        row |= {name: {one: other for one, other in map(dict.values, row[name])} for name in pairs}
    if not by:
        return rows
    found: dict[str, Any] = {name: {} for name in of}
    rest = [name for name in frame.columns if name not in by]
    for row in rows:
        at, (*outer, last) = found, (row[name] for name in by)
        for key in outer:
            at = at.setdefault(key, {})
        leaf = {name: row[name] for name in rest if row[name] is not None}
        at[last] = leaf if len(rest) > 1 else row[rest[0]]
    return found


def as_table(frame: pl.DataFrame, group: str = "") -> TableOf:
    """Return a frame for people, in sections if a value of its first column is in several rows.

    The values of the column `group` are headings of sections. A row of sums, `all`, stands apart.
    """
    for name in [name for name, dtype in frame.schema.items() if dtype == pl.Struct]:
        frame = frame.unnest(name, separator="_")
    told = [each for each in frame if each.null_count() < len(each) and each.name != group]
    is_number = {s.name: s.dtype.is_numeric() or s.dtype == pl.List(pl.Float64) for s in told}
    names = sorted(is_number, key=is_number.__getitem__)
    first = group or frame.columns[0]
    has_sections = bool(group) or frame[first].n_unique() < frame.height
    rows: list[Row] = []
    before = None
    for row in frame.iter_rows(named=True):
        if row[first] != before and (has_sections or row[first] == GLOBAL):
            rows += [*([None] if rows else []), *([row[first]] if group else [])]
        before = row[first]
        rows.append([cell(name, row[name]) for name in names])
    texts = [name.replace("_", " ") for name in names if not is_number[name]]
    return TableOf(texts, [n.replace("_", "\n") for n in names if is_number[n]], rows)


def cell(name: str, value: Any) -> Cell:
    """Return a value of a column as people read it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and value and isinstance(value[0], float):
        return percentages(value)
    if isinstance(value, float) and name.split("_")[-1] in SHARES:
        return f"{value:.1%}" if value >= SMALL_SHARE or not value else f"{value:.2%}"
    return f"{value:,.2f}" if isinstance(value, float) else cast(Cell, value)
