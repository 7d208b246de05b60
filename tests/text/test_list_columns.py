"""Columns of lists made of flat arrays, and their items."""

import subprocess

from prelude import Any, np, pl, pytest, sys

from assets.text.list_columns import as_numpy, list_series


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.uint64, np.int64, np.bool_])
def test_lists_have_the_items_between_their_offsets(dtype: type[np.generic]) -> None:
    values = np.array([1, 0, 1, 1], dtype)

    lists = list_series(values, np.array([0, 3, 3, 4]))

    assert lists.to_list() == [[1, 0, 1], [], [1]]
    assert lists.dtype == pl.List(pl.Series(values).dtype)


def test_lists_of_structs() -> None:
    spans = pl.DataFrame({"doc_id": ["a", "b"], "start": [0, 5]})

    lists = list_series(spans.to_struct().to_arrow(), np.array([0, 2]))

    assert lists.to_list() == [[{"doc_id": "a", "start": 0}, {"doc_id": "b", "start": 5}]]


@pytest.mark.parametrize("values", [[], [7], [1, 2, 65535]])
def test_items_come_back(values: list[int]) -> None:
    items = np.array(values, np.uint16)
    column: Any = list_series(items, np.array([0, len(values)])).to_arrow()

    assert as_numpy(column.values).tolist() == values
    assert as_numpy(column.values).dtype == np.uint16
    assert as_numpy(column.offsets).tolist() == [0, len(values)]
    lists = list_series(np.array([1, 2, 3, 4, 5], np.uint64), np.array([0, 1, 3, 5]))
    rows: Any = lists[1:].to_arrow()
    first, last = as_numpy(rows.offsets)[[0, -1]]
    assert as_numpy(rows.values)[first:last].tolist() == [2, 3, 4, 5]


def test_pandas_is_not_imported() -> None:
    code = """
import sys
import numpy as np
from assets.text.list_columns import as_numpy, list_series
lists = list_series(np.arange(3, dtype=np.uint16), np.array([0, 3]))
as_numpy(lists.to_arrow().values)
list_series(np.zeros(3, np.bool_), np.array([0, 3]))
print("pandas" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
