"""Conditions on named columns of a document, in SQL, as Polars reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import polars as pl

EXAMPLES = {"number": [0.0, 1.0, 5.0, None], "label": ["", "a", "b", None]}
ColumnType = Literal["number", "label"]
Columns = Mapping[str, ColumnType]


def schema_of(columns: Columns) -> dict[str, Any]:
    """Return the dtype of each column: numbers are Float64, labels String."""
    import polars as pl

    types = {"number": pl.Float64, "label": pl.String}
    return {name: types[kind] for name, kind in columns.items()}


def check_condition(condition: str, columns: Columns) -> None:
    """Raise ValueError unless this is an expression in SQL on some of the columns.

    It is parsed only: a process that loads settings forks workers, and the threads that Polars
    starts, for a schema too, do not survive a fork. `check_rows` tries the condition.
    """
    import polars as pl

    try:
        unknown = sorted({*pl.sql_expr(condition).meta.root_names()} - {*columns})
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{condition!r} is no condition in SQL: {error}") from None
    if unknown:
        raise ValueError(
            f"{condition!r}: no column {unknown[0]!r}; there are {', '.join(columns)}. Write texts "
            "in single quotes"
        )


def check_rows(condition: str, columns: Columns) -> None:
    """Raise ValueError unless a condition can be computed, for each row by itself."""
    import polars as pl

    examples = {name: EXAMPLES[kind] for name, kind in columns.items()}
    rows = pl.DataFrame(examples, schema_of(columns))
    try:
        if (found := rows.select(pl.sql_expr(condition).alias("is_met"))).dtypes != [pl.Boolean]:
            kind = found.dtypes[0]
            raise ValueError(f"{condition!r} is {kind}, neither true nor false: compare a column")
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
    import polars as pl

    return rows.select(pl.sql_expr(condition).fill_null(False).alias("is_met"))["is_met"]
