"""Stage `signatures`: one small row per document for deduplication, and its candidate keys.

Purpose: texts are read once, in parallel, part by part. The comparison over all sources reads rows
of about 500 bytes and 12 bytes for each of a document's 15 keys. Equal values in two documents of
one group have equal keys; equal keys may be chance.
Trade-off: a row is a fifth of an average text, but only rows that share a key are read again.
"""

from typing import NamedTuple

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
from assets.deduped.minhash.minhash import (
    JoinedWords,
    joined_words,
    sketch_words,
    without_licence,
)
from assets.text.buffers import TextBuffers, code_point_entries, text_buffers
from resources.settings.dedup import DedupConfig

Digests = list[bytes | None]
_TEXT, _FIRST_BAND, _FIRST_FIELD = 0, 1, 1000  # numbers of bands: equal values give other keys


class KeyedValues(NamedTuple):
    """Values that become the keys of n documents."""

    first_band: int  # number of the first of `bands` bands
    bands: int
    values: NDArray[np.uint32]  # [n, bands * rows]
    is_set: NDArray[np.bool_]  # [n]: false for a document without keys


def columns_read(config: DedupConfig) -> list[str]:
    """Return the columns of `documents` that `signatures` reads."""
    paths = [*config.fields, *config.within, config.date_field]
    if config.quality_field is not None and config.quality_field.startswith("meta."):
        paths.append(config.quality_field)
    named = [column_of(path) for path in paths if path is not None]
    return list(dict.fromkeys(["doc_id", "text", *named]))


def signatures(
    documents: pl.DataFrame, config: DedupConfig, scores: pl.DataFrame | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the signature table and the keys of documents: doc_id, text String, config's columns.

    The table has one row per document in the same order: doc_id; num_chars UInt32 (code points);
    num_words UInt32; text_hash Binary: XXH3-128, 16 bytes big-endian, of the text in the form that
    `exact_text` names; field_00, field_01, ... Binary: XXH3-128 of the stripped value of each of
    `fields`; group UInt64: XXH3-64 of the values of `within`, 0 without; quality Float64; date
    Int64; signature Array(UInt32, bands * rows). A null text counts as empty. Null are the
    text_hash of a blank text (so that blank texts never form a cluster), a field without a value or
    with a blank one, the signature of a text without words, and all that the config turns off.

    The keys are sorted: key UInt64, row UInt32, one per text_hash, field and band that is not null.
    `scores` has doc_id and the column of `quality_field`. Raises ValueError if a column is missing.
    """
    texts = documents["text"].fill_null("")
    num_words, text_hashes, values = _sign_texts(texts, config)
    fields = [_hash_values(field_values(documents, path)) for path in config.fields]
    groups = _groups(documents, config)
    is_sketched = (num_words > 0) & config.near
    table = pl.DataFrame(
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
    by_text = _keyed_hashes(_TEXT, text_hashes)
    by_band = KeyedValues(_FIRST_BAND, config.bands, values, is_sketched)
    by_field = [_keyed_hashes(band, hashes) for band, hashes in enumerate(fields, _FIRST_FIELD)]
    return table, _sorted_keys([by_text, by_band, *by_field], groups)


def _sign_texts(
    texts: pl.Series, config: DedupConfig
) -> tuple[NDArray[np.uint32], pl.Series, NDArray[np.uint32]]:
    """Return num_words, text_hash and signature values, 2**32 - 1 for texts without words."""
    data, offsets = text_buffers(texts)
    num_words = np.empty(len(texts), np.uint32)
    values = np.full((len(texts), config.num_values), 2**32 - 1, np.uint32)
    hashes: Digests = []
    compared = without_licence(texts)
    for rows, words in joined_words(text_buffers(compared), config):
        num_words[rows] = np.diff(words[2])
        if config.near:
            values[rows] = sketch_words(words, config)
        if config.exact:
            block = data, offsets[rows.start : rows.stop + 1]
            hashes += _text_hashes(block, words if compared is texts else None, config)
    return num_words, pl.Series(hashes or [None] * len(texts), dtype=pl.Binary), values


def _text_hashes(texts: TextBuffers, words: JoinedWords | None, config: DedupConfig) -> Digests:
    """Return the digests of a block of texts in the form to compare; None for blank texts.

    words: theirs, if they are joined already.
    """
    from assets.text.kernels.words import fold_whitespace, join_words

    folded, folded_offsets = fold_whitespace(*texts, code_point_entries())
    if config.exact_text == "whole":
        (data, offsets), is_blank = texts, np.diff(folded_offsets) == 0
        return _digests(data, offsets[:-1], np.where(is_blank, offsets[:-1], offsets[1:]))
    hashes = _digests(folded, folded_offsets[:-1], folded_offsets[1:])
    if config.exact_text == "whitespace":
        return hashes
    if words is None:  # some lack those of a licence header
        words = join_words(*texts, code_point_entries(config.lowercase, config.punctuation))
    joined, starts, word_offsets = words
    starts = starts[word_offsets]
    of_words = _digests(joined, starts[:-1], np.maximum(starts[1:] - 1, starts[:-1]))
    # Texts without words are compared in full: "?!" is not a copy of "...".
    return [by_words or whole for by_words, whole in zip(of_words, hashes, strict=True)]


def _digests(
    data: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64]
) -> Digests:
    """Hash data[starts[i] : stops[i]] by XXH3-128; None where that is empty."""
    view = data.data
    # A Python loop: 2 % of this stage for texts of 3 kB.
    return [
        xxhash.xxh3_128_digest(view[start:stop]) if stop > start else None
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
    ]


def _hash_values(values: pl.Series) -> pl.Series:
    """Hash the values of a field, Binary; null for missing and blank values."""
    data, offsets = text_buffers(values.fill_null("").str.strip_chars())
    return pl.Series(_digests(data, offsets[:-1], offsets[1:]), dtype=pl.Binary)


def _groups(documents: pl.DataFrame, config: DedupConfig) -> NDArray[np.uint64]:
    """Return the hash of each document's values of `within`, uint64 [n]; 0 without."""
    if not config.within:
        return np.zeros(documents.height, np.uint64)
    return hash_together([field_values(documents, path) for path in config.within])


def _qualities(
    documents: pl.DataFrame, config: DedupConfig, scores: pl.DataFrame | None
) -> pl.Series:
    """Return `quality_field` of each document, Float64; null where absent or not finite."""
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
    qualities = scores.select("doc_id", pl.col(field).cast(pl.Float64))
    joined = documents.select("doc_id").join(
        qualities, on="doc_id", how="left", validate="m:1", maintain_order="left"
    )
    return finite(joined[field])


def _dates(documents: pl.DataFrame, config: DedupConfig) -> pl.Series:
    """Return `date_field` of each document, Int64; null where absent."""
    if config.date_field is None:
        return pl.Series([None] * documents.height, dtype=pl.Int64)
    return times_of(field_values(documents, config.date_field))


def _keyed_hashes(band: int, hashes: pl.Series) -> KeyedValues:
    """Return 16-byte hashes as the four values of one band; null hashes give no key."""
    data, _ = text_buffers(hashes.fill_null(bytes(16)))
    values = data.view("<u4").reshape(-1, 4)
    return KeyedValues(band, 1, values, hashes.is_not_null().to_numpy())


def _sorted_keys(keyed: list[KeyedValues], groups: NDArray[np.uint64]) -> pl.DataFrame:
    """Return the keys of n documents of groups, uint64 [n], as key UInt64, row UInt32; sorted."""
    from assets.deduped.kernels.minhash_sketch import hash_bands
    from assets.deduped.kernels.sorted_runs import sort_by_key

    keys = np.hstack([hash_bands(of.values, of.bands, of.first_band, groups) for of in keyed])
    is_set = np.hstack([np.repeat(of.is_set[:, None], of.bands, axis=1) for of in keyed])
    rows = np.nonzero(is_set)[0].astype(np.uint64)
    sorted_keys, sorted_rows = sort_by_key(keys[is_set], rows, 0)
    return pl.DataFrame({"key": sorted_keys, "row": sorted_rows.astype(np.uint32)})
