"""Stage `signatures`: one small row per document, all that deduplication needs to know of its text,
and the keys that documents share which may be copies of one another.

Purpose: the texts are read once, in parallel, part by part; what is compared over all sources are
rows of about 500 bytes, and 12 bytes for each of the 15 keys that they are found by. Trade-off: a
row is a fifth of an average text, but only those that share a key are looked at again. Price: 200
MB of text per second and core (EPYC with AVX-512, prose to code), of which words take 100 ms per
64 MB, shingles and minima 130, the hash of the text 65, keys 10; character shingles 80 MB/s.
"""

import numpy as np
import polars as pl
import xxhash
from numpy.typing import NDArray

from assets.deduped.minhash.meta_fields import (
    column_of,
    field_values,
    finite,
    hash_together,
    numbers_of,
    times_of,
)
from assets.deduped.minhash.minhash import JoinedWords, joined_words, sketch_words
from assets.text.buffers import TextBuffers, code_point_entries, text_buffers
from resources.settings.dedup import DedupConfig

Digests = list[bytes | None]
Kind = tuple[int, int, NDArray[np.uint32], NDArray[np.bool_]]  # number, bands, values, is set
_TEXT, _FIRST_BAND, _FIRST_FIELD = 0, 1, 1000  # the numbers that tell kinds of keys apart


def columns_read(config: DedupConfig) -> list[str]:
    """The columns of `documents` that `signatures` looks at."""
    paths = [*config.fields, *config.within, config.date_field]
    if config.quality_field is not None and config.quality_field.startswith("meta."):
        paths.append(config.quality_field)
    named = [column_of(path) for path in paths if path is not None]
    return list(dict.fromkeys(["doc_id", "text", *named]))


def signatures(
    documents: pl.DataFrame, config: DedupConfig, scores: pl.DataFrame | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(facts, keys) of documents: doc_id String, text String, and what the config names.

    facts, one row per document in the same order: doc_id; num_chars UInt32 (code points); num_words
    UInt32; text_hash Binary, 16 bytes: XXH3-128 (big-endian) of the text as `exact_text` says;
    field_00, field_01, ... Binary: XXH3-128 of the value of each of `fields`, white space around it
    removed; group UInt64: XXH3-64 of the values of `within`, 0 without; quality Float64; date
    Int64; and signature Array(UInt32, bands * rows). A null text counts as empty. Null are the
    text_hash of a blank text (so that blank texts never become one cluster), the field of a
    document without a value or with a blank one, the signature of a text without words, and
    what the config turns off.

    keys, sorted: key UInt64, row UInt32: one per text_hash, field and band that is not null. What
    is equal in two documents of one group has an equal key; an equal key may be chance.

    `scores` has doc_id and the column that `quality_field` names. ValueError: a column is missing.
    """
    texts = documents["text"].fill_null("")
    num_words, text_hashes, values = _text_facts(texts, config)
    fields = [_hash_values(field_values(documents, path)) for path in config.fields]
    groups = _groups(documents, config)
    is_sketched = (num_words > 0) & config.near
    facts = pl.DataFrame(
        {
            "doc_id": documents["doc_id"],
            "num_chars": texts.str.len_chars().cast(pl.UInt32),
            "num_words": num_words,
            "text_hash": text_hashes,
            **{f"field_{number:02}": hashes for number, hashes in enumerate(fields)},
            "group": groups,
            "quality": _qualities(documents, config, scores),
            "date": _dates(documents, config),
            "signature": pl.Series(values, dtype=pl.Array(pl.UInt32, config.num_values)),
        }
    ).with_columns(signature=pl.when(pl.Series(is_sketched)).then("signature"))
    kinds = [
        (_TEXT, 1, _words_of(text_hashes), text_hashes.is_not_null().to_numpy()),
        (_FIRST_BAND, config.bands, values, is_sketched),
        *(
            (number, 1, _words_of(hashes), hashes.is_not_null().to_numpy())
            for number, hashes in enumerate(fields, _FIRST_FIELD)
        ),
    ]
    return facts, _sorted_keys(kinds, groups)


def _text_facts(
    texts: pl.Series, config: DedupConfig
) -> tuple[NDArray[np.uint32], pl.Series, NDArray[np.uint32]]:
    """num_words, text_hash and values of the signatures, 2**32 - 1 where there are none."""
    data, offsets = text_buffers(texts)
    num_words = np.empty(len(texts), np.uint32)
    values = np.full((len(texts), config.num_values), 2**32 - 1, np.uint32)
    hashes: Digests = []
    for rows, words in joined_words((data, offsets), config):
        num_words[rows] = np.diff(words[2])
        if config.near:
            values[rows] = sketch_words(words, config)
        if config.exact:
            hashes += _text_hashes((data, offsets[rows.start : rows.stop + 1]), words, config)
    return num_words, pl.Series(hashes or [None] * len(texts), dtype=pl.Binary), values


def _text_hashes(texts: TextBuffers, words: JoinedWords, config: DedupConfig) -> Digests:
    """Digests of a block of texts; None for blank ones."""
    from assets.text.kernels.words import fold_whitespace

    folded, folded_offsets = fold_whitespace(*texts, code_point_entries())
    if config.exact_text == "whole":
        (data, offsets), is_blank = texts, np.diff(folded_offsets) == 0
        return _digests(data, offsets[:-1], np.where(is_blank, offsets[:-1], offsets[1:]))
    hashes = _digests(folded, folded_offsets[:-1], folded_offsets[1:])
    if config.exact_text == "whitespace":
        return hashes
    joined, starts, word_offsets = words
    starts = starts[word_offsets]
    of_words = _digests(joined, starts[:-1], np.maximum(starts[1:] - 1, starts[:-1]))
    # Texts without words are compared as they are: "?!" is not a copy of "...".
    return [by_words or whole for by_words, whole in zip(of_words, hashes, strict=True)]


def _digests(
    data: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64]
) -> Digests:
    """XXH3-128 of data[starts[i] : stops[i]]; None where that is empty."""
    view = data.data
    # A Python loop: 0.5 microseconds per document, 2 % of this stage for texts of 3 kB.
    return [
        xxhash.xxh3_128_digest(view[start:stop]) if stop > start else None
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
    ]


def _hash_values(values: pl.Series) -> pl.Series:
    """Digests of a field's values, null for those that are missing or blank."""
    data, offsets = text_buffers(values.fill_null("").str.strip_chars())
    return pl.Series(_digests(data, offsets[:-1], offsets[1:]), dtype=pl.Binary)


def _groups(documents: pl.DataFrame, config: DedupConfig) -> NDArray[np.uint64]:
    if not config.within:
        return np.zeros(documents.height, np.uint64)
    return hash_together([field_values(documents, path) for path in config.within])


def _qualities(
    documents: pl.DataFrame, config: DedupConfig, scores: pl.DataFrame | None
) -> pl.Series:
    field = config.quality_field
    if field is None:
        return pl.Series([None] * documents.height, dtype=pl.Float64)
    if field.startswith("meta."):
        return numbers_of(field_values(documents, field))
    if scores is None or field not in scores.columns:
        given = "none" if scores is None else ", ".join(set(scores.columns) - {"doc_id"})
        raise ValueError(
            f"dedup.quality_field: no score {field!r} (scores given: {given}). "
            "Name one of the columns of `filtered`'s decisions, or meta.<name>."
        )
    found = scores.select("doc_id", pl.col(field).cast(pl.Float64))
    joined = documents.select("doc_id").join(
        found, on="doc_id", how="left", validate="m:1", maintain_order="left"
    )
    return finite(joined[field])


def _dates(documents: pl.DataFrame, config: DedupConfig) -> pl.Series:
    if config.date_field is None:
        return pl.Series([None] * documents.height, dtype=pl.Int64)
    return times_of(field_values(documents, config.date_field))


def _words_of(hashes: pl.Series) -> NDArray[np.uint32]:
    """16-byte hashes as uint32 [n, 4]; zeros for null."""
    data, _ = text_buffers(hashes.fill_null(bytes(16)))
    return data.view("<u4").reshape(-1, 4)


def _sorted_keys(kinds: list[Kind], groups: NDArray[np.uint64]) -> pl.DataFrame:
    """key UInt64, row UInt32, in order."""
    from assets.deduped.kernels.minhash_sketch import hash_bands
    from assets.deduped.kernels.sorted_runs import sort_entries

    keys = np.hstack(
        [hash_bands(values, bands, first, groups) for first, bands, values, _ in kinds]
    )
    is_set = np.hstack([np.repeat(which[:, None], bands, 1) for _, bands, _, which in kinds])
    rows = np.nonzero(is_set)[0].astype(np.uint64)
    sorted_keys, sorted_rows = sort_entries(keys[is_set], rows, 0)
    return pl.DataFrame({"key": sorted_keys, "row": sorted_rows.astype(np.uint32)})
