"""Documents to training sequences: one each, packed, concatenated, or decomposed.

`spans` say which documents a sequence holds and which tokens of each, in order, so that
cu_seqlens, position ids and document masks follow from them in every mode. No token is lost and
none comes from nowhere: the spans of a document cover it once, but for what an overlap repeats and
truncation drops, and both are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.bucketed.document_chunks import (
    Int64s,
    Pieces,
    cut_stream,
    powers_of_two,
    split,
    truncate,
    whole,
)
from assets.bucketed.packing import (
    count_sequences,
    number_by_first_piece,
    pack_and_extend,
    pack_pieces,
    sum_tokens,
)
from assets.bucketed.report import Made, count_window
from assets.bucketed.sequences import count_tokens, gather_sequences
from resources.settings.buckets import BucketConfig, stored_lengths

Arranged = tuple[Pieces, Int64s, NDArray[np.uint8]]


def group_windows(tokens: Sequence[int], window_tokens: int) -> list[slice]:
    """Consecutive parts of together at most `window_tokens` tokens; a larger part is alone."""
    windows: list[slice] = []
    start, total = 0, 0
    for index, count in enumerate(tokens):
        if index > start and total + count > window_tokens:
            windows.append(slice(start, index))
            start, total = index, 0
        total += count
    return [*windows, slice(start, len(tokens))] if tokens else []


def make_sequences(
    tables: Sequence[pl.DataFrame], config: BucketConfig, padding: int
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """The sequences of a window of documents, sorted by bucket, and counts that add up.

    In: one table or more, doc_id String, tokens List(UInt16 or UInt32). Out: bucket UInt8 (index
    into `bucket_names`), num_tokens UInt32 (without padding), tokens List (`stored_length` of
    them, the token `padding` at the end), spans List(Struct{doc_id, start, length}), start and
    length in tokens of the document; for the counts see `count_window`.
    """
    num_tokens = count_tokens(tables)
    pieces, arranged, buckets = arrange(num_tokens, config)
    sequence, buckets = number_by_first_piece(arranged, buckets)
    used = sum_tokens(sequence, pieces.lengths)
    stored = stored_tokens(used, buckets, config)
    made = gather_sequences(tables, pieces, sequence, stored, padding)
    frame = made.insert_column(0, pl.Series("bucket", buckets, dtype=pl.UInt8))
    return frame, count_window(Made(num_tokens, pieces, sequence, used, buckets), config)


def arrange(num_tokens: Int64s, config: BucketConfig) -> Arranged:
    """The pieces of documents of these lengths, the sequence of each, and each sequence's bucket.

    Sequences are numbered from 0 without gaps, in no order.
    """
    if config.mode == "buckets":
        pieces = whole(num_tokens)
        longer = np.searchsorted(np.array(config.edges), pieces.lengths)
        return pieces, np.arange(len(longer)), longer.astype(np.uint8)
    if config.mode == "decompose":
        return _decompose(num_tokens, config)
    if config.mode == "concat":
        pieces, sequence = cut_stream(num_tokens, config.sequence_length)
    else:
        pieces, sequence = _pack(num_tokens, config)
    return pieces, sequence, np.zeros(count_sequences(sequence), np.uint8)


def _pack(num_tokens: Int64s, config: BucketConfig) -> tuple[Pieces, Int64s]:
    length = config.sequence_length
    if config.long_documents == "truncate":
        pieces = truncate(num_tokens, length)
    else:
        pieces = split(num_tokens, length, config.overlap)
    most, seed = config.max_documents, config.seed
    if config.extend_rests:
        return pack_and_extend(pieces, length, max_pieces=most, seed=seed)
    return pieces, pack_pieces(pieces.lengths, length, max_pieces=most, seed=seed)


def _decompose(num_tokens: Int64s, config: BucketConfig) -> Arranged:
    """Powers of two as sequences of their own; rests packed into sequences of the shortest."""
    shortest = config.min_length
    pieces = powers_of_two(num_tokens, config.sequence_length, shortest)
    is_rest = pieces.lengths < shortest
    packed = pack_pieces(
        pieces.lengths[is_rest], shortest, max_pieces=config.max_documents, seed=config.seed
    )
    num_packed = count_sequences(packed)
    powers = pieces.lengths[~is_rest]
    sequence = np.empty(len(is_rest), np.int64)
    sequence[is_rest] = packed
    sequence[~is_rest] = num_packed + np.arange(len(powers))
    buckets = np.zeros(num_packed + len(powers), np.uint8)
    buckets[num_packed:] = np.searchsorted(np.array(stored_lengths(config)), powers)
    return pieces, sequence, buckets


def stored_tokens(used: Int64s, buckets: NDArray[np.uint8], config: BucketConfig) -> Int64s:
    """Tokens of each sequence with its padding, int64 [m]."""
    lengths = np.array(stored_lengths(config), np.int64)
    return lengths[buckets] if len(lengths) else used
