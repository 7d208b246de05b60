"""Documents for training that share much of their text with one that is held out.

Purpose: a held-out document whose text is in training measures memory. A document is left out if
more than `MOST_SHARE` of its distinct n-grams of 13 words are in one held-out document. N-grams
that more than `MOST_DOCUMENTS` documents have (a licence, the frame of a page) do not count.
Words are those of deduplication; a text of fewer than 13 words is one n-gram.
How: 64 hashes of a document, evenly spaced in their order, are a random sample of its n-grams, its
*sketch*. (The 64 smallest would be the same n-grams of a passage in every document that has it.) A
document for training is a *candidate* if an n-gram of its sketch is held out; one that shares over
20 % is none with a probability of 0.8^64 = 6e-7. Candidates are then compared n-gram by n-gram, by
hashes of 64 bits.
Trade-off: which documents have an n-gram is known of held-out documents and of candidates, of
others by their sketches. An n-gram that is a small part of all but a few of them can count.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from assets.deduped.minhash.minhash import shingle_sets
from resources.numbers_between import numbers_between
from resources.settings.dedup import DedupConfig

MOST_SHARE = 0.2
MOST_DOCUMENTS = 20
SKETCH_SIZE = 64
NGRAMS = DedupConfig(ngram=13)
NO_OCCURRENCES = pl.DataFrame(schema={"hash": pl.UInt64, "part": pl.UInt32, "doc_id": pl.String})


def sketch(documents: pl.DataFrame) -> pl.DataFrame:
    """Return hashes of n-grams of documents: all of those held out, `SKETCH_SIZE` of the others.

    In: doc_id, text String, is_held Boolean. Out: doc_id, is_held, hashes List(UInt64), distinct
    and sorted. Documents without words are missing.
    """
    hashes, offsets = shingle_sets(documents["text"], NGRAMS)
    all_of = np.diff(offsets)
    sizes = np.where(documents["is_held"].to_numpy(), all_of, np.minimum(all_of, SKETCH_SIZE))
    rows = np.repeat(np.arange(documents.height), sizes)
    numbers = numbers_between(np.zeros_like(sizes), sizes)
    places = offsets[rows] + numbers * all_of[rows] // sizes[rows]
    drawn = pl.DataFrame({"row": rows, "hashes": hashes[places]})
    found = drawn.group_by("row", maintain_order=True).agg("hashes")
    return documents.select("doc_id", "is_held")[found["row"]].with_columns(found["hashes"])


def occurrences(part: int, sketches: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each hash of the sketches of a part: hash, part, doc_id."""
    number = pl.lit(part, pl.UInt32).alias("part")
    return sketches.select(pl.col("hashes").alias("hash"), number, "doc_id").explode("hash")


def first_occurrences(part: int, sketches: pl.DataFrame, hashes: pl.Series) -> pl.DataFrame:
    """Return the occurrences of some hashes, distinct ones, in the sketches of a part.

    Of each those in the first documents, one more than may have it: with more it does not count.
    """
    found = occurrences(part, sketches).filter(pl.col("hash").is_in(hashes.implode()))
    return found.group_by("hash", maintain_order=True).head(MOST_DOCUMENTS + 1)


def without_common(ngrams: pl.DataFrame, *known: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of n-grams that few of the documents in all tables have (doc_id, hash)."""
    every = pl.concat([table.select("doc_id", "hash") for table in (ngrams, *known)])
    documents = every.group_by("hash").agg(pl.n_unique("doc_id").alias("documents"))
    common = documents.filter(pl.col("documents") > MOST_DOCUMENTS)
    return ngrams.join(common, on="hash", how="anti")


def find_candidates(held: pl.DataFrame, found: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return part and doc_id of each candidate, sorted.

    In: n-grams of what is held out, and in each part those of its sketches that are held out.
    """
    counted = without_common(pl.concat([NO_OCCURRENCES, *found]))
    trained = counted.join(held.select(pl.col("doc_id").unique()), on="doc_id", how="anti")
    return trained.select("part", "doc_id").unique().sort("part", "doc_id")


def worst_shares(
    ngrams: pl.DataFrame, held: pl.DataFrame, known: Iterable[pl.DataFrame]
) -> pl.DataFrame:
    """Return the pair with the largest share of each candidate, the first of those that are alike.

    In: all n-grams of candidates and of what is held out; those of candidates in the sketches of
    each part. Out: part, doc_id, held_doc_id, share Float64, sorted by doc_id.
    """
    counted = without_common(ngrams, *known)
    sizes = counted.group_by("doc_id").agg(num_ngrams=pl.len())
    shared = counted.join(held.select("hash", held_doc_id="doc_id"), on="hash")
    pairs = shared.group_by("part", "doc_id", "held_doc_id").agg(shared=pl.len())
    shares = pairs.join(sizes, on="doc_id").select(
        "part", "doc_id", "held_doc_id", share=pl.col("shared") / pl.col("num_ngrams")
    )
    ordered = shares.sort("doc_id", "share", "held_doc_id", descending=[False, True, False])
    return ordered.unique("doc_id", keep="first", maintain_order=True)
