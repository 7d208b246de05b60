"""Documents to token ids, as Arrow buffers throughout."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from assets.transforms.encoders import load_encoder
from assets.transforms.tokenizer import token_dtype


def append_end_of_document(
    ids: np.ndarray[Any, Any], offsets: np.ndarray[Any, Any], end_id: int, dtype: pl.DataType
) -> pl.Series:
    """A List series of each document's ids followed by the end-of-document id."""
    numpy_dtype = np.uint16 if dtype == pl.UInt16 else np.uint32
    new_offsets = offsets + np.arange(offsets.size)
    values = np.empty(ids.size + offsets.size - 1, numpy_dtype)
    is_end = np.zeros(values.size, bool)
    is_end[new_offsets[1:] - 1] = True
    values[~is_end] = ids
    values[is_end] = end_id
    lists = pa.LargeListArray.from_arrays(pa.array(new_offsets, pa.int64()), pa.array(values))
    return pl.Series("tokens", lists, dtype=pl.List(dtype))


def encode_documents(
    documents: pl.DataFrame, tokenizer_json: str, end_of_document: str
) -> pl.DataFrame:
    """Token ids of each document, its end-of-document id last.

    In: doc_id String, text String. Out, same order: doc_id, tokens List(UInt16 or UInt32).
    """
    encoder, end_id, vocab_size = load_encoder(tokenizer_json, end_of_document)
    ids, offsets = encoder.encode(documents["text"].to_list())
    tokens = append_end_of_document(ids, offsets, end_id, token_dtype(vocab_size))
    return pl.DataFrame({"doc_id": documents["doc_id"], "tokens": tokens})
