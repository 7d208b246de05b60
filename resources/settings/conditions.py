"""Conditions on named columns of a document, in SQL, as Polars reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import polars as pl

EXAMPLES = {"number": [0.0, 1.0, 5.0, None], "label": ["", "a", "b", None]}
TYPES = {"number": pl.Float64, "label": pl.String}
Columns = Mapping[str, Literal["number", "label"]]


def check_condition(condition: str, columns: Columns) -> None:
    """Raise ValueError unless this is a condition in SQL on some of the columns.

    No row is computed: a process that loads settings forks workers, and the threads of Polars do
    not survive a fork. `check_rows` tries the condition.
    """
    schema = {name: TYPES[kind] for name, kind in columns.items()}
    try:
        met = pl.sql_expr(condition)
        unknown = sorted({*met.meta.root_names()} - {*columns})
        if unknown:
            raise ValueError(
                f"{condition!r}: no column {unknown[0]!r}; there are {', '.join(columns)}. Write "
                "texts in single quotes"
            )
        types = pl.LazyFrame(schema=schema).select(met.alias("is_met")).collect_schema()
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{condition!r} is no condition in SQL: {error}") from None
    if types["is_met"] != pl.Boolean:
        raise ValueError(f"{condition!r} is neither true nor false. Compare a column: score < 2")


def check_rows(condition: str, columns: Columns) -> None:
    """Raise ValueError unless a condition can be computed, for each row by itself."""
    rows = pl.DataFrame({name: EXAMPLES[kind] for name, kind in columns.items()}, strict=False)
    rows = rows.cast({name: TYPES[kind] for name, kind in columns.items()})
    try:
        together = is_met(rows, condition)
        one_by_one = pl.concat([is_met(rows[i : i + 1], condition) for i in range(rows.height)])
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{condition!r} cannot be computed: {error}") from None
    if not together.equals(one_by_one):
        raise ValueError(
            f"{condition!r} depends on other documents. Compare the columns of one document only, "
            "such as score < 2"
        )


def is_met(rows: pl.DataFrame, condition: str) -> pl.Series:
    """Return which rows meet a condition, Boolean; those do not where it is unknown (null)."""
    return rows.select(pl.sql_expr(condition).fill_null(False).alias("is_met"))["is_met"]
