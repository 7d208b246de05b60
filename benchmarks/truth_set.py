"""Documents of which every pair's similarity is known: real texts, planted copies, hard negatives.

Of each of some real documents: an exact copy, one with other case and white space, copies with 2,
5, 10, 20 and 40 % of the words changed, one between the boilerplate of other pages, two truncated
ones. Hard negatives: one licence header above different texts; the skeleton of a manual page with
sections of others; a page with other numbers and names in its fields. And real pages as they are,
many of which follow a template or repeat another.
The truth is the Jaccard similarity of the sets of word 5-grams, of *all* pairs over 0.3, planted or
not, counted on the words themselves (no hashes) over an inverted index.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from corpus_texts import read_texts
from numpy.typing import NDArray

LEAST_SIMILARITY = 0.3
EDITED_SHARES = (0.02, 0.05, 0.1, 0.2, 0.4)
TEMPLATES, FILLINGS = 40, 10  # of each kind of hard negative
REAL_PAGES = 2500
BASE_CHARACTERS = (300, 20_000)
_UNSPACED = "\u0e00-\u0eff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff"
_PIECE = re.compile(rf"\s*[{_UNSPACED}]|\s*[^\s{_UNSPACED}]+|\s+")  # a word, and what is before it
_SECTION = re.compile(r"(?m)^(?=[A-Z][A-Z ]+$)")
_FIELD = re.compile(r"(?<=[a-z,:=] )[A-Z]\w+|\d+(?:\.\d+)*")
_ROWS_AT_ONCE = 500
Planted = Iterator[tuple[str, str]]  # (kind, text)


@dataclass(frozen=True)
class TruthSet:
    """Documents (doc_id, text, kind String) and their pairs (a, b Int64 rows, a < b, jaccard)."""

    documents: pl.DataFrame
    shingles: Any
    pairs: pl.DataFrame

    def similarity(self, lefts: NDArray[np.int64], rights: NDArray[np.int64]) -> NDArray[Any]:
        """True Jaccard similarity of pairs of rows, float64 [n]; also of those below 0.3."""
        found = [np.empty(0)]
        for start in range(0, len(lefts), 20_000):
            left = self.shingles[lefts[start : start + 20_000]]
            right = self.shingles[rights[start : start + 20_000]]
            shared = np.asarray(left.multiply(right).sum(axis=1)).ravel()
            sizes = np.diff(left.indptr) + np.diff(right.indptr)
            found.append(shared / np.maximum(sizes - shared, 1))
        return np.concatenate(found)


def truth_set(folder: Path, *, bases: int, seed: int) -> TruthSet:
    """A truth set of the documents below `folder`: about 11 documents per base and 3,700 more."""
    rng = random.Random(seed)
    texts = read_texts(folder)["text"]
    pages = texts.filter(texts.str.len_chars().is_between(*BASE_CHARACTERS)).to_list()
    rng.shuffle(pages)
    planted = [("page", page) for page in pages[bases : bases + REAL_PAGES]]
    for base in pages[:bases]:
        planted += copies(base, pages[bases:], rng)
    planted += [*licences(pages, rng), *skeletons(pages, rng), *fields(pages, rng)]
    rng.shuffle(planted)
    documents = pl.DataFrame(
        {
            "doc_id": [f"{row:032x}" for row in range(len(planted))],
            "text": [text for _, text in planted],
            "kind": [kind for kind, _ in planted],
        }
    )
    shingles = shingle_matrix(documents["text"])
    return TruthSet(documents, shingles, similar_pairs(shingles))


def copies(base: str, others: Sequence[str], rng: random.Random) -> Planted:
    """The document itself and what may have become of it elsewhere."""
    pieces = _PIECE.findall(base)
    yield "base", base
    yield "exact", base
    yield "case and space", re.sub(r"\s+", rng.choice([" ", "\n", " \n"]), recased(base, rng))
    for share in EDITED_SHARES:
        yield f"{share:.0%} edited", edited(pieces, share, rng.choice(others), rng)
    top, bottom = (_PIECE.findall(page) for page in others[rng.randrange(20) :][:2])
    width = rng.randrange(20, 120)
    yield "boilerplate", "".join([*top[:width], "\n", *pieces, "\n", *bottom[-width:]])
    for _ in range(2):
        yield "truncated", "".join(pieces[: round(rng.uniform(0.5, 0.95) * len(pieces))])


def recased(text: str, rng: random.Random) -> str:
    """The text in another case."""
    return rng.choice([str.upper, str.lower, str.title, str.swapcase])(text)


def edited(pieces: Sequence[str], share: float, other: str, rng: random.Random) -> str:
    """A share of the words substituted by words of another text, deleted, or put another before."""
    words = _PIECE.findall(other)
    changed = list(pieces)
    for at in rng.sample(range(len(pieces)), round(share * len(pieces))):
        word = " " + rng.choice(words).strip()
        changed[at] = rng.choice([word, word + changed[at], ""])
    return "".join(changed)


def licences(pages: Sequence[str], rng: random.Random) -> Planted:
    """Different texts below one licence header, which is a third to three quarters of each."""
    heads = [page.partition("*/")[0] for page in pages if page.lstrip()[:2] == "/*"]
    heads = sorted({head for head in heads if 400 < len(head) < 4000 and "icense" in head})
    for head in rng.sample(heads, min(TEMPLATES, len(heads))):
        for _ in range(FILLINGS):
            body = rng.choice(pages)[: round(len(head) * rng.uniform(0.3, 2))]
            yield "licence", f"{head}*/\n{body}"


def skeletons(pages: Sequence[str], rng: random.Random) -> Planted:
    """Manual pages of which some sections are another page's."""
    manuals = [sections for page in pages if len(sections := _SECTION.split(page)) > 4]
    for template in rng.sample(manuals, min(TEMPLATES, len(manuals))):
        for _ in range(FILLINGS):
            other = rng.choice(manuals)
            chosen = [rng.choice([own, own, rng.choice(other)]) for own in template]
            yield "skeleton", "".join(chosen)


def fields(pages: Sequence[str], rng: random.Random) -> Planted:
    """A page with other numbers and names in its fields, as product pages of one shop differ."""
    able = [page for page in pages if len(_FIELD.findall(page)) > 20 and len(page) < 4000]
    for template in rng.sample(able, min(TEMPLATES, len(able))):
        for _ in range(FILLINGS):
            values = _FIELD.findall(rng.choice(able))
            yield "fields", _FIELD.sub(lambda _, values=values: rng.choice(values), template)


def shingle_matrix(texts: pl.Series, ngram: int = 5) -> Any:
    """Which text has which word n-gram: a sparse matrix of ones, float32 [texts, n-grams].

    Words are those of `assets/deduped/minhash`; a text shorter than the n-gram has one. Each
    word is numbered, then each pair of a number and the next word, and so on: no hash is involved.
    """
    from scipy.sparse import csr_array

    words, ends = numbered_words(texts, ngram)
    grams = words
    for step in range(1, ngram):
        joined = grams[: len(words) - step].astype(np.int64) << 32 | words[step:]
        grams = np.unique(joined, return_inverse=True)[1]
    rows = np.repeat(np.arange(len(texts)), np.diff(ends))
    places = np.arange(len(words))
    is_inside = places + ngram <= ends[rows + 1]
    both = np.stack([rows[is_inside], grams[places[is_inside]]])
    both = np.unique(both[0] << 32 | both[1])
    ones = np.ones(len(both), np.float32)
    return csr_array((ones, (both >> 32, both & 0xFFFFFFFF)), shape=(len(texts), grams.max() + 1))


def numbered_words(texts: pl.Series, least: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number of each word, int64 [words], and where texts end in them, int64 [n + 1].

    Texts of fewer than `least` words are filled up with word 0, which is none.
    """
    from assets.text.buffers import code_point_entries, text_buffers
    from assets.text.kernels.words import join_words

    joined, starts, ends = join_words(*text_buffers(texts), code_point_entries())
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(joined)]
    words = pa.Array.from_buffers(pa.large_binary(), len(starts) - 1, buffers)
    numbers = words.dictionary_encode().indices.to_numpy().astype(np.int64) + 1
    counts = np.diff(ends)
    missing = np.where(counts > 0, np.maximum(least - counts, 0), 0)
    filled = np.insert(numbers, np.repeat(ends[1:], missing), 0)
    return filled, np.concatenate([[0], np.cumsum(counts + missing)])


def similar_pairs(shingles: Any) -> pl.DataFrame:
    """All pairs of rows (a, b Int64, a < b) with jaccard Float64 of at least 0.3."""
    transposed = shingles.T.tocsr()
    sizes = np.diff(shingles.indptr)
    frames = []
    for start in range(0, shingles.shape[0], _ROWS_AT_ONCE):
        shared = (shingles[start : start + _ROWS_AT_ONCE] @ transposed).tocoo()
        a, b = shared.coords[0].astype(np.int64) + start, shared.coords[1].astype(np.int64)
        jaccard = shared.data / (sizes[a] + sizes[b] - shared.data)
        is_wanted = (a < b) & (jaccard >= LEAST_SIMILARITY)
        frame = pl.DataFrame({"a": a[is_wanted], "b": b[is_wanted], "jaccard": jaccard[is_wanted]})
        frames.append(frame.cast({"jaccard": pl.Float64}))
    return pl.concat(frames).sort("a", "b")
