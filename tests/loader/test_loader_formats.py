"""The loader reads the flat files that the mill writes."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from assets.sharded.formats.base import ShardSchema
from assets.sharded.formats.megatron import MEGATRON
from corpus_loader.flat import MappedFile, read_index, read_spans


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [pl.UInt16, pl.UInt32])
def test_a_shard_is_read_as_it_was_written(tmp_path: Path, dtype: type[pl.DataType]) -> None:
    spans = [
        [{"doc_id": "0a" * 16, "start": 5, "length": 2}],
        [
            {"doc_id": "0b" * 16, "start": 0, "length": 3},
            {"doc_id": "0c" * 16, "start": 1, "length": 1},
        ],
    ]
    rows = [[7, 8], [1, 2, 3, 4]]
    shard = pl.DataFrame({"tokens": rows, "spans": spans}).cast(
        {
            "tokens": pl.List(dtype),
            "spans": pl.List(
                pl.Struct({"doc_id": pl.String, "start": pl.UInt32, "length": pl.UInt32})
            ),
        }
    )
    name = str(dtype()).lower()
    paths = [tmp_path / f"shard-00000.{suffix}" for suffix in MEGATRON.suffixes]
    MEGATRON.write(paths, shard, ShardSchema(name, None, 0, 100, "f" * 64))

    tokens, index_file, spans_file = (MappedFile(path, path.stat().st_size) for path in paths)
    index, documents = read_index(index_file, name, 2), read_spans(spans_file, 2)

    assert tokens.array(0, name, 6).tolist() == [7, 8, 1, 2, 3, 4]
    assert index.lengths.tolist() == [2, 4]
    assert index.pointers.tolist() == [0, 2 * tokens.num_bytes // 6]
    assert documents.row(0).starts.tolist() == [5]
    assert documents.row(1).starts.tolist() == [0, 1]
    assert documents.row(1).lengths.tolist() == [3, 1]
    assert [bytes(doc_id).hex() for doc_id in documents.row(1).doc_ids] == ["0b" * 16, "0c" * 16]
