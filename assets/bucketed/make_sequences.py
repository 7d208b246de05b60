"""Turn documents into training sequences: one each, packed, concatenated, or decomposed.

`spans` give the documents of a sequence and the tokens of each, in order; cu_seqlens, position ids
and document masks follow from them in every mode. The spans of a document cover each of its tokens
once, except those that an overlap repeats or truncation drops, and both are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.bucketed.bucketed_records import BucketedNumbers
from assets.bucketed.document_chunks import (
    Int64s,
    Segments,
    are_conversations,
    count_long,
    cut_stream,
    fit_conversations,
    powers_of_two,
    split,
    truncate,
    turns_of,
    whole,
)
from assets.bucketed.likeness import near_names
from assets.bucketed.packing import (
    count_sequences,
    number_by_first_segment,
    pack_segments,
    packing_keys,
    sum_tokens,
)
from assets.bucketed.report import Window, count_window
from assets.bucketed.sequences import Filling, count_tokens, gather_sequences
from corpus_loader.permutation import GOLDEN_GAMMA, UInt64s, mix64
from resources.reused_array import NewArray
from resources.settings.buckets import (
    VALIDATION,
    BucketConfig,
    BucketLayout,
    bucket_names,
    stored_lengths,
)

Arranged = tuple[Segments, Int64s, NDArray[np.uint16]]


@dataclass(frozen=True)
class Groups:
    """Groups of a window's documents: those of one group are packed with each other only.

    `names` are those of groups 1, 2, ...; `of_documents`, uint16 [n], the group of each document,
    0 for ordinary training.
    """

    names: tuple[str, ...]
    of_documents: NDArray[np.uint16]


def make_sequences(
    tables: Sequence[pl.DataFrame],
    config: BucketConfig,
    padding: int,
    new_array: NewArray = np.empty,
    groups: Groups | None = None,
    is_left_out: NDArray[np.bool_] | None = None,
) -> tuple[pl.DataFrame, BucketedNumbers]:
    """Make the sequences of a window of documents, sorted by bucket, and count them.

    In: one table or more, doc_id String, tokens List(UInt16 or UInt32). Out: bucket UInt8 (index
    into the names of a `BucketLayout`; UInt16 if these are more than 256), num_tokens UInt32
    (without padding), tokens List (`bucket_length` of them, the token `padding` at the end, and
    behind each document that is padded), spans List(Struct{doc_id, start, length}), start and
    length in tokens of the document; padded_length too if documents are padded. The tokens are in a
    `new_array`. Documents that are left out (bool [n]) are in no sequence.
    """
    num_tokens = count_tokens(tables)
    if is_left_out is not None:
        num_tokens[is_left_out] = 0
    turns, is_whole = turns_of(tables, num_tokens), are_conversations(tables)
    kept = fit_conversations(tables, turns, config) if is_whole else turns.lengths
    groups = groups or Groups((), np.zeros(len(num_tokens), np.uint16))
    of_turns = Groups(groups.names, groups.of_documents[turns.documents])
    names = document_names(tables)
    names = (near_names(tables, names) if config.neighbours else names)[turns.documents]
    segments, arranged, buckets = arrange_groups(kept, names, config, of_turns, is_whole)
    sequence, buckets = number_by_first_segment(arranged, buckets)
    used = sum_tokens(sequence, segments.lengths)
    stored = stored_tokens(used, buckets, config)
    documents, starts = (column[segments.documents] for column in turns[:2])
    in_documents = Segments(documents, starts + segments.starts, segments.lengths)
    filling = Filling(padding, config.pad_documents_to)
    frame = gather_sequences(tables, in_documents, sequence, stored, filling, new_array)
    layout = BucketLayout(config, groups.names)
    index = pl.UInt8 if len(layout.names) <= 256 else pl.UInt16
    frame.insert_column(0, pl.Series("bucket", buckets, dtype=index))
    numbers = count_window(Window(turns.lengths, segments, sequence, used, buckets), layout)
    kept = np.bincount(turns.documents, kept, len(num_tokens)).astype(np.int64)
    if is_whole and (long := count_long(num_tokens, kept)):
        numbers = msgspec.structs.replace(numbers, long_conversations=long)
    if VALIDATION in layout.groups:
        is_held = groups.of_documents == 1 + layout.groups.index(VALIDATION)
        held = int((is_held & (kept > 0)).sum())
        numbers = msgspec.structs.replace(numbers, documents_held_out=held)
    return frame, numbers


def document_names(tables: Sequence[pl.DataFrame]) -> UInt64s:
    """Return the last 64 bits of the ids of all documents, uint64 [n]."""
    last = pl.col("doc_id").str.slice(-16).str.to_integer(base=16, dtype=pl.UInt64)
    names = [table.select(last).to_series().to_numpy() for table in tables]
    return np.concatenate([np.empty(0, np.uint64), *names])


def segment_names(documents: UInt64s, segments: Segments) -> UInt64s:
    """Name segments by the name of their document and their place in it."""
    starts = segments.starts.astype(np.uint64)
    return documents[segments.documents] + mix64(starts * np.uint64(GOLDEN_GAMMA))


def arrange(
    num_tokens: Int64s, names: UInt64s, config: BucketConfig, is_whole: bool = False
) -> Arranged:
    """Cut documents of these lengths; assign a sequence to each segment, a bucket to each sequence.

    If `is_whole`, none is cut: all are at most as long as the longest sequence. `names` are those
    of `document_names`, which decide what is packed together. Returns (segments, int64 [segments],
    uint16 [sequences]). Sequences are numbered from 0 without gaps, in no particular order.
    """
    if config.mode == "buckets":
        segments = whole(num_tokens)
        longer = np.searchsorted(np.array(config.edges), segments.lengths)
        return segments, np.arange(len(longer)), longer.astype(np.uint16)
    if config.mode == "decompose":
        return _decompose(num_tokens, names, config, is_whole)
    if config.mode == "concat" and not is_whole:
        segments, sequence = cut_stream(num_tokens, config.sequence_length)
    else:
        segments, sequence = _pack(num_tokens, names, config, is_whole)
    return segments, sequence, np.zeros(count_sequences(sequence), np.uint16)


def arrange_groups(
    num_tokens: Int64s,
    names: UInt64s,
    config: BucketConfig,
    groups: Groups,
    is_whole: bool = False,
) -> Arranged:
    """`arrange` the documents of each group by themselves; buckets count group after group."""
    arranged: list[tuple[Int64s, ...]] = []
    of_sequences = [np.empty(0, np.uint16)]
    num_sequences, num_buckets = 0, len(bucket_names(config))
    for group in np.unique(groups.of_documents).tolist():
        rows = np.flatnonzero(groups.of_documents == group)
        segments, sequence, buckets = arrange(num_tokens[rows], names[rows], config, is_whole)
        documents = rows[segments.documents]
        arranged.append((documents, *segments[1:], sequence + num_sequences))
        of_sequences.append(buckets + np.uint16(group * num_buckets))
        num_sequences += len(buckets)
    nothing = (np.empty(0, np.int64),) * 4
    columns = [np.concatenate(column) for column in zip(nothing, *arranged, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    *segments_of_all, sequences = (column[order] for column in columns)
    return Segments(*segments_of_all), sequences, np.concatenate(of_sequences)


def _pack(
    num_tokens: Int64s, names: UInt64s, config: BucketConfig, is_whole: bool
) -> tuple[Segments, Int64s]:
    length = config.sequence_length
    if is_whole:
        segments = whole(num_tokens)
    elif config.long_documents == "truncate":
        segments = truncate(num_tokens, length)
    else:
        segments = split(num_tokens, length, config.overlap)
    named = segment_names(names, segments)
    near = names[segments.documents] if config.neighbours else None
    sequence = pack_segments(
        segments.lengths,
        packing_keys(named, config.seed, near),
        length,
        max_segments=config.max_documents,
        multiple=config.pad_documents_to,
        are_near=near is not None,
    )
    return segments, sequence


def _decompose(
    num_tokens: Int64s, names: UInt64s, config: BucketConfig, is_whole: bool
) -> Arranged:
    """Make a sequence of each power of two; pack the rests into sequences of the shortest.

    A document that stays whole is padded to the next power.
    """
    shortest = config.min_length
    if is_whole:
        segments = whole(num_tokens)
    else:
        segments = powers_of_two(num_tokens, config.sequence_length, shortest)
    is_rest = segments.lengths < shortest
    packed = pack_segments(
        segments.lengths[is_rest],
        packing_keys(segment_names(names, segments)[is_rest], config.seed),
        shortest,
        max_segments=config.max_documents,
    )
    num_packed = count_sequences(packed)
    powers = segments.lengths[~is_rest]
    sequence = np.empty(len(is_rest), np.int64)
    sequence[is_rest] = packed
    sequence[~is_rest] = num_packed + np.arange(len(powers))
    buckets = np.zeros(num_packed + len(powers), np.uint16)
    buckets[num_packed:] = np.searchsorted(np.array(stored_lengths(config)), powers)
    return segments, sequence, buckets


def stored_tokens(used: Int64s, buckets: NDArray[np.uint16], config: BucketConfig) -> Int64s:
    """Return the tokens of each sequence with its padding, int64 [m]."""
    lengths = np.array(stored_lengths(config), np.int64)
    return lengths[buckets % len(lengths)] if len(lengths) else used
