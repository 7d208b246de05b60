"""The keep policy, which decides the document of a cluster that stays, as a ranking."""

from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from resources.settings.dedup import DedupConfig, KeepKey

Ranking = tuple[NDArray[np.int32], NDArray[np.int32]]  # rank of each row, row of each rank

_RULES: dict[KeepKey, Callable[[DedupConfig], pl.Expr]] = {  # the smallest stays, null is last
    "priority": lambda config: _position(config.priority),
    "ingested": lambda _: pl.col("generation"),
    "quality": lambda _: -pl.col("quality").fill_nan(None),
    "cleanest": lambda _: -pl.col("cleanliness"),
    "longest": lambda _: -pl.col("num_chars").cast(pl.Int64),
    "newest": lambda _: -pl.col("date"),
    "oldest": lambda _: pl.col("date"),
}


def _position(priority: tuple[str, ...]) -> pl.Expr:
    """Return the place of a row's source in `priority`; sources not named come last."""
    named = pl.Series(list(dict.fromkeys(priority)), dtype=pl.String)
    positions = pl.Series(range(len(named)), dtype=pl.UInt32)
    return pl.col("source").replace_strict(named, positions, default=len(named))


def ranking(members: pl.DataFrame, by_id: NDArray[np.int32], config: DedupConfig) -> Ranking:
    """Return the rank of each row, 0 the one that stays, and the row of each rank, int32 [n].

    `members` has source, generation, quality, cleanliness, num_chars and date, as far as
    `config.keep` names them; `by_id`, int32 [n], are their rows in the order of doc_ids, the last
    key. Null, and a quality that is not a number, rank last.
    """
    keys = [_RULES[key](config).alias(key) for key in config.keep if _differs(members, key, config)]
    order = by_id
    if keys:
        frame = members.select(*keys, pl.Series("doc_id", _inverse(by_id)))
        sorted_rows = frame.select(pl.arg_sort_by(frame.columns, nulls_last=True)).to_series()
        order = sorted_rows.to_numpy().astype(np.int32)
    return _inverse(order), order


def _inverse(order: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the place of each row in an order."""
    places = np.empty_like(order)
    places[order] = np.arange(len(order), dtype=np.int32)
    return places


def _differs(members: pl.DataFrame, key: KeepKey, config: DedupConfig) -> bool:
    """Return False if a key is known to be the same for all documents: it would cost a sort."""
    if key == "priority":
        return bool(config.priority)
    if key == "ingested":
        return members["generation"].min() != members["generation"].max()
    return True


def order_of_ids(doc_ids: pl.Series) -> NDArray[np.int32]:
    """Return rows in the order of their doc_ids, int32 [n]; ValueError if one occurs twice.

    As numbers of 128 bits they sort several times faster than as strings.
    """
    numbers = doc_ids.str.to_integer(base=16, dtype=pl.UInt128)
    order = numbers.arg_sort()
    ordered = numbers.gather(order)
    repeated = order.filter((ordered == ordered.shift(1)).fill_null(False))
    if len(repeated):
        doc_id = doc_ids[int(repeated[0])]
        raise ValueError(
            f"doc_id {doc_id!r} occurs more than once among the duplicates, so removing "
            "one would remove both. Give each document its own doc_id."
        )
    return order.to_numpy().astype(np.int32)
