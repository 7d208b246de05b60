"""Fit conversations into sequences: whole, or cut behind an answer, and never within a turn.

A segment that begins in an answer has lost the question, and one that ends before the answer
teaches nothing. So a conversation that is longer than a sequence keeps its first turns up to the
last answer that fits, or is left out (`buckets.long_conversations`). Every row then has a token to
learn, since every conversation has one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from assets.bucketed.document_chunks import Int64s
from resources.settings.buckets import BucketConfig

LEFT_OUT, CUT = "left_out", "cut_between_turns"


def are_conversations(tables: Sequence[pl.DataFrame]) -> bool:
    """Return True if the documents of all tables are conversations, which have loss masks."""
    return bool(tables) and "loss_mask" in tables[0].columns


def fit_conversations(
    tables: Sequence[pl.DataFrame], num_tokens: Int64s, config: BucketConfig
) -> Int64s:
    """Return the first tokens of each conversation that are kept, int64 [n]; 0: it is left out.

    In: tables with doc_id and loss_mask, and the tokens of each document of all tables. Raises
    ValueError if one is too long, and `long_conversations` is `error`.
    """
    kept = num_tokens.copy()
    if config.mode == "buckets":  # a bucket for longer sequences takes them whole
        return kept
    length, first = config.sequence_length, 0
    for table in tables:
        rows = np.flatnonzero(num_tokens[first : first + table.height] > length)
        if rows.size and config.long_conversations == "error":
            raise ValueError(
                f"{rows.size:,} conversations have more than {length:,} tokens "
                f"(buckets.sequence_length), the first {table['doc_id'][int(rows[0])]}. Raise that "
                "one, or set buckets.long_conversations to cut_turns or drop"
            )
        for row in rows.tolist():  # 10 us each, and only of those that are too long
            is_cut = config.long_conversations == "cut_turns"
            flags = table["loss_mask"][row].to_numpy() if is_cut else np.zeros(0, np.bool_)
            kept[first + row] = last_answer_end(flags, length)
        first += table.height
    return kept


def last_answer_end(flags: np.ndarray[tuple[int], np.dtype[np.bool_]], length: int) -> int:
    """Return the end of the last run of learned tokens within `length` tokens; 0 if none is.

    The first token is not counted: nothing predicts it.
    """
    is_end = flags[:length] & ~np.append(flags[1 : length + 1], np.False_)[:length]
    ends = np.flatnonzero(is_end) + 1
    return int(ends[-1]) if ends.size and flags[1 : ends[-1]].any() else 0


def count_long(num_tokens: Int64s, kept: Int64s) -> dict[str, int]:
    """Count the conversations that are left out, and those that are cut; {} if there are none."""
    counts = {
        LEFT_OUT: int(((kept == 0) & (num_tokens > 0)).sum()),
        CUT: int(((kept > 0) & (kept < num_tokens)).sum()),
    }
    return {name: count for name, count in counts.items() if count}
