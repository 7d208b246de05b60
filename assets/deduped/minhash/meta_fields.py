"""Fields of documents by name: columns, and values of the JSON column `meta`."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import xxhash
from numpy.typing import NDArray

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_META = "meta."


def column_of(path: str) -> str:
    """Return the column that holds a field: `meta` for meta.<name>, else the field's name."""
    return "meta" if path.startswith(_META) else path


def field_values(documents: pl.DataFrame, path: str) -> pl.Series:
    """Return the values of a column or of meta.<name>, String; null if absent or JSON null.

    A dot within `meta` leads into an object, or belongs to the name if there is no such object.
    Numbers, lists and objects are returned as JSON; integers beyond 64 bits lose their last digits.
    Raises ValueError if there is no such column or it is not text.
    """
    name = column_of(path)
    if documents.schema.get(name) != pl.String:
        texts = [column for column, dtype in documents.schema.items() if dtype == pl.String]
        raise ValueError(
            f"dedup: no field {path!r}: documents have no text column {name!r}. "
            f"Name one of {', '.join(texts)}, or meta.<name>."
        )
    if name == path:
        return documents[name]
    inner = path.removeprefix(_META)
    paths = dict.fromkeys([tuple(inner.split(".")), (inner,)])
    matches = [pl.col("meta").str.json_path_match(_json_path(names)) for names in paths]
    return documents.select(pl.coalesce(matches)).to_series()


def _json_path(names: Iterable[str]) -> str:
    """Return the JSONPath of nested names."""
    return "$" + "".join("['" + name.replace("'", r"\'") + "']" for name in names)


def finite(numbers: pl.Series) -> pl.Series:
    """Replace NaN and the infinities, which have no place in a ranking, by null."""
    return pl.select(pl.when(numbers.is_finite()).then(numbers)).to_series()


def numbers_of(values: pl.Series) -> pl.Series:
    """Parse texts as Float64; null for anything but a finite number."""
    return finite(values.str.strip_chars().cast(pl.Float64, strict=False))


def times_of(values: pl.Series) -> pl.Series:
    """Parse texts as points in time, Int64; null for anything else than a number or a date.

    A number (2024, 20240131) is rounded down. An ISO 8601 date becomes microseconds since 1970, in
    UTC unless it names a zone; a month (2024-05) counts as its first day.
    """
    whole = values.str.strip_chars().cast(pl.Int64, strict=False)
    numbers = whole.fill_null(numbers_of(values).floor().cast(pl.Int64, strict=False))
    rest = pl.select(pl.when(numbers.is_null()).then(values)).to_series()
    # A Python loop: Polars has no parser for all forms of ISO 8601.
    times = pl.Series([_microseconds(text) for text in rest], dtype=pl.Int64)
    return numbers.fill_null(times)


def _microseconds(text: str | None) -> int | None:
    """Return an ISO 8601 date in microseconds since 1970, None for any other text."""
    if text is None:
        return None
    try:
        text = text.strip()
        moment = datetime.fromisoformat(text if len(text) > 7 else f"{text}-01")
    except ValueError:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def hash_together(columns: list[pl.Series]) -> NDArray[np.uint64]:
    """Return one XXH3-64 per row of several String columns, uint64 [n]; null is a value."""
    # The length before each value tells ("a", "bc") from ("ab", "c"); null has none, unlike "".
    parts = [
        pl.when(column.is_null())
        .then(pl.lit("-"))
        .otherwise(pl.concat_str(column.str.len_bytes(), pl.lit(":"), column))
        for column in columns
    ]
    joined = pl.select(pl.concat_str(parts).cast(pl.Binary)).to_series()
    hashes = {value: xxhash.xxh3_64_intdigest(value) for value in joined.unique()}
    return np.array([hashes[value] for value in joined], np.uint64)
