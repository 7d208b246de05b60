"""Round-trip check: the ids of a document decode to its text.

The tokens of byte-level BPE are bytes, so every document can be compared quickly. Any other
tokenizer has to decode, which is slow: a sample of the documents is compared.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.text.buffers import text_buffers
from assets.tokenized.encode_documents import TokenFormat, sample_of, slices_of
from assets.tokenized.encoders import Encoders, ReferenceEncoder
from assets.tokenized.fill_in_the_middle import Int64s, text_runs
from assets.tokenized.token_spellings import Spellings, spellings_of

DECODED_TOKENS = 1 << 16  # of a document; a list of ten million numbers would take 400 MB


class RoundTrip(NamedTuple):
    """Number of documents compared, and the doc_ids of those that differ."""

    num_compared: int
    failed: list[str]


def round_trip(
    documents: pl.DataFrame, encoded: pl.DataFrame, encoders: Encoders, form: TokenFormat
) -> RoundTrip:
    """Compare documents with the text that their ids decode to.

    All documents that have tokens are compared, or a sample of them.

    In: documents with doc_id and text, `encoded` as `encode_documents` makes it of them.
    """
    if encoded.height < documents.height:
        has_tokens = pl.col("doc_id").is_in(encoded["doc_id"].implode())  # a join takes 90 MB more
        documents = documents.select("doc_id", "text").filter(has_tokens)
    spellings = spellings_of(encoders.reference)
    if spellings is None:
        return compare_sample(documents, encoded, encoders.reference, form)
    is_equal = compare_bytes(documents["text"], encoded["tokens"], spellings, form)
    return RoundTrip(documents.height, documents["doc_id"].filter(~is_equal).to_list())


def compare_bytes(
    texts: pl.Series, tokens: pl.Series, spellings: Spellings, form: TokenFormat
) -> pl.Series:
    """Check, document by document, that the ids between its marks spell its text; Boolean."""
    from assets.tokenized.kernels.decoding import are_decoded

    ids, firsts, ends = runs_of(tokens, form)
    is_equal = [np.zeros(0, np.bool_)]
    for rows in slices_of(texts.str.len_bytes().to_numpy()):
        buffers = text_buffers(texts[rows])
        is_equal.append(are_decoded(ids, (firsts[rows], ends[rows]), spellings, buffers))
    return pl.Series(np.concatenate(is_equal))


def runs_of(tokens: pl.Series, form: TokenFormat) -> tuple[NDArray[Any], Int64s, Int64s]:
    """Return the ids of all documents, and the runs of them that make each text, in its order.

    The runs are their first places and those behind them, int64 [documents, runs of each].
    """
    ids = tokens.explode(empty_as_null=False).to_numpy()
    edges = np.concatenate([[0], np.cumsum(tokens.list.len().to_numpy(), dtype=np.int64)])
    firsts, ends = edges[:-1] + form.num_marks - 1, edges[1:] - 1
    if form.fill is None:
        return ids, firsts[:, None], ends[:, None]
    return ids, *text_runs(ids, firsts, ends, form.fill)


def compare_sample(
    documents: pl.DataFrame, encoded: pl.DataFrame, reference: ReferenceEncoder, form: TokenFormat
) -> RoundTrip:
    """Decode and compare a sample of the documents, the first DECODED_TOKENS of each."""
    sample = sample_of(documents).join(
        encoded.select("doc_id", "tokens"), on="doc_id", maintain_order="left"
    )
    ids, firsts, ends = runs_of(sample["tokens"], form)
    # Of each run, as many of the first DECODED_TOKENS of its document as are in it.
    before = np.cumsum(ends - firsts, axis=1) - (ends - firsts)
    stops = np.minimum(ends, firsts + np.maximum(0, DECODED_TOKENS - before))
    runs = zip(firsts.ravel().tolist(), stops.ravel().tolist(), strict=True)
    decoded_runs = reference.decode([ids[first:stop].tolist() for first, stop in runs])
    by_document = np.array(decoded_runs, object).reshape(firsts.shape).tolist()
    decoded = ["".join(texts) for texts in by_document]
    is_short = (stops < ends).any(axis=1)
    columns = zip(sample["doc_id"], sample["text"], decoded, is_short, strict=True)
    failed = [
        doc_id
        for doc_id, text, decoded_text, is_cut in columns  # a cut may leave part of a character
        if not (text.startswith(decoded_text.rstrip("\ufffd")) if is_cut else text == decoded_text)
    ]
    return RoundTrip(sample.height, failed)
