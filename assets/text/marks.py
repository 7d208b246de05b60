"""Marks of documents: what is kept of a text or an id to find it again, and not to read it.

A mark is 20 bytes: a check of 32 bits, by which a search turns nearly all places down, and 16 bytes
of a sha256, which decide. There are marks of

* ids: of the 16 bytes of a doc_id;
* texts: of the words of a whole text; the check is their length;
* passages: of 64 bytes of words, one in every 256. Any copy of 320 bytes of a text's words, about
  55 English words, holds a whole one.

Of a changed copy no passage may be whole, but most runs of five words are. Of these a request has
32 bits of a hash each, of at most 128 and one in four: too few bits to confirm a guess (some 2^45
runs of five words are likely), and too few runs to go from one to the next. Numbers are left out,
so that those of lines and pages make no difference.

The words are those of the form of a text (`text_form`); requests of earlier versions have marks of
the words of the text as it was, so a text is searched for in both. Words are lower-case, with a
blank after each and nothing else between them, so that white space, punctuation and line breaks
make no difference. Passages do not overlap and have gaps of 192 bytes: who knows one cannot guess
his way into the next, and 64 bytes of prose are some 70 bits that a search would have to try. A
mark confirms a text that one has already; it gives none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.text.buffers import blocks, code_point_entries, text_buffers
from assets.text.text_form import text_form

MARK_BYTES = 20
DIGEST_BYTES = 16
STRIDE_BYTES = 256
FEW_PASSAGES = 4  # of fewer, a copy has all
COPIED_PERCENT = 70  # of the passages of a longer text, which a copy has at least
COMMON_PERCENT = 33  # of the runs of five words of a text, which a changed copy has at least
RUN_BYTES = 4
LEAST_RUNS, MOST_RUNS = 8, 128  # of a text that are kept
FIRST_PLACES = 1 << 10  # of a search; a block with more is searched again

Bytes = NDArray[np.uint8]


class Words(NamedTuple):
    """Words of some texts: text i is row rows[i] and has joined[edges[i]:edges[i + 1]].

    Its words begin at starts[offsets[i]:offsets[i + 1]].
    """

    rows: NDArray[np.int64]
    joined: Bytes
    edges: NDArray[np.int64]
    starts: NDArray[np.int64]
    offsets: NDArray[np.int64]


class Found(NamedTuple):
    """A mark that was found: the row, the number of its owner, and the digest."""

    row: int
    owner: int
    digest: bytes


@dataclass(frozen=True)
class Marks:
    """Marks to search for: sorted checks, bits of their prefixes, and the owner of each digest."""

    checks: NDArray[np.uint32]
    bits: Bytes
    owners: dict[bytes, int]

    def __bool__(self) -> bool:
        return bool(self.owners)


@dataclass(frozen=True)
class Copies:
    """Texts whose copies are searched for, alone or within more, by the marks of their passages.

    marks   those of all passages
    texts   texts that have a passage, by its digest
    needed  number of passages that a copy of each text has
    owners  owner of each text
    """

    marks: Marks
    texts: dict[bytes, list[int]]
    needed: tuple[int, ...]
    owners: tuple[int, ...]

    def owners_among(self, digests: Iterable[bytes]) -> set[int]:
        """Return the owners of the texts of which some passages (each once) are a copy."""
        counts = Counter(text for digest in digests for text in self.texts.get(digest, ()))
        return {self.owners[text] for text, n in counts.items() if n >= self.needed[text]}


def copies_of(
    owned: Iterable[tuple[int, bytes]], size: int = MARK_BYTES, percent: int = COPIED_PERCENT
) -> Copies:
    """Return the texts of some owners to search for; each is given by its passages, end to end.

    `size` is that of a passage in bytes, and `percent` of them are a copy.
    """
    owned = [(owner, passages) for owner, passages in owned if passages]
    texts: dict[bytes, list[int]] = {}
    needed = []
    for number, (_, passages) in enumerate(owned):
        digests = {digest(mark) for mark in single(passages, size)}
        for each in digests:
            texts.setdefault(each, []).append(number)
        is_short = len(digests) < FEW_PASSAGES
        needed.append(len(digests) if is_short else -(-percent * len(digests) // 100))
    return Copies(marks_of(owned, size), texts, tuple(needed), tuple(owner for owner, _ in owned))


def single(marks: bytes, size: int = MARK_BYTES) -> Iterator[bytes]:
    """Yield each of some marks that are end to end."""
    for start in range(0, len(marks), size):
        yield marks[start : start + size]


def digest(mark: bytes) -> bytes:
    """Return the digest in a mark; that of a run of words is all of it."""
    return mark[-DIGEST_BYTES:]


def marks_of(owned: Iterable[tuple[int, bytes]], size: int = MARK_BYTES) -> Marks:
    """Return the marks that some owners have, to search for; the first owner of a mark counts."""
    from assets.text.kernels.marked_places import FILTER_BITS

    owners: dict[bytes, int] = {}
    checks = []
    for owner, marks in owned:
        for mark in single(marks, size):
            checks.append(int.from_bytes(mark[:4], "little"))
            owners.setdefault(digest(mark), owner)
    sorted_checks = np.unique(np.array(checks, np.uint32))
    is_prefix = np.zeros(1 << FILTER_BITS, np.bool_)
    is_prefix[sorted_checks >> np.uint32(32 - FILTER_BITS)] = True
    return Marks(sorted_checks, np.packbits(is_prefix, bitorder="little"), owners)


def mark(check: int, content: bytes) -> bytes:
    """Return the mark of some content."""
    return int(check).to_bytes(4, "little") + digest_of(content)


def digest_of(content: bytes) -> bytes:
    """Return the digest of a mark."""
    return sha256(content).digest()[:DIGEST_BYTES]


def words_of(texts: pl.Series) -> Iterator[Words]:
    """Yield the words of texts (String, no nulls), in runs of 256 texts."""
    from assets.text.kernels.words import join_words

    data, offsets = text_buffers(texts.rechunk())
    for rows, edges in blocks(offsets):
        joined, starts, word_offsets = join_words(data, edges, code_point_entries())
        numbers = np.arange(rows.start, rows.stop)
        yield Words(numbers, joined, starts[word_offsets], starts, word_offsets)


def compared_words(texts: pl.Series) -> Iterator[Words]:
    """Yield the words of texts as they are, and those of their forms where these differ."""
    yield from words_of(texts)
    forms = text_form(texts)
    rows = (forms != texts).arg_true()
    for words in words_of(forms.gather(rows)):
        yield words._replace(rows=rows.to_numpy()[words.rows].astype(np.int64))


def text_marks(texts: pl.Series) -> list[bytes]:
    """Return the mark of each text, of its form; none of a text without words."""
    return [
        mark(stop - start, words.joined[start:stop].tobytes()) if stop > start else b""
        for words in words_of(text_form(texts))
        for start, stop in zip(words.edges[:-1].tolist(), words.edges[1:].tolist(), strict=True)
    ]


def passage_marks(texts: pl.Series) -> list[bytes]:
    """Return the marks of the passages of each text, end to end; none of a short text."""
    from assets.text.kernels.marked_places import PASSAGE_BYTES, passage_checks

    marks = []
    for words in words_of(text_form(texts)):
        for start, stop in zip(words.edges[:-1].tolist(), words.edges[1:].tolist(), strict=True):
            starts = np.arange(start, stop - PASSAGE_BYTES + 1, STRIDE_BYTES)
            checks = passage_checks(words.joined, starts).tolist()
            passages = (words.joined[at : at + PASSAGE_BYTES].tobytes() for at in starts.tolist())
            marks.append(b"".join(map(mark, checks, passages)))
    return marks


def id_marks(doc_ids: Sequence[str]) -> list[bytes]:
    """Return the mark of each doc_id."""
    from assets.text.kernels.marked_places import ID_BYTES, id_checks

    ids = bytes.fromhex("".join(doc_ids))
    checks = id_checks(np.frombuffer(ids, np.uint8)).tolist()
    return [mark(check, ids[ID_BYTES * i : ID_BYTES * (i + 1)]) for i, check in enumerate(checks)]


def find_texts(texts: pl.Series, marks: Marks) -> list[Found]:
    """Find the texts (String, no nulls) whose words have a mark."""
    found = []
    for words in compared_words(texts) if marks else ():
        lengths = np.diff(words.edges)
        for text in np.flatnonzero(np.isin(lengths, marks.checks) & (lengths > 0)).tolist():
            content = words.joined[words.edges[text] : words.edges[text + 1]]
            found += owned(marks, int(words.rows[text]), content.tobytes())
    return found


def find_passages(texts: pl.Series, marks: Marks) -> list[Found]:
    """Find the marked passages in texts (String, no nulls)."""
    from assets.text.kernels import marked_places

    found = []
    for words in compared_words(texts) if marks else ():
        sought = words.joined, words.edges, marks.checks, marks.bits
        places, count = marked_places.find_passages(*sought, FIRST_PLACES)
        if count > len(places):
            places, _ = marked_places.find_passages(*sought, count)
        rows = np.searchsorted(words.edges, places, side="right") - 1
        for row, place in zip(rows.tolist(), places.tolist(), strict=True):
            passage = words.joined[place : place + marked_places.PASSAGE_BYTES]
            found += owned(marks, int(words.rows[row]), passage.tobytes())
    return found


def run_marks(texts: pl.Series) -> list[bytes]:
    """Return hashes of runs of five words of each text, end to end; none of a short text."""
    marks = []
    for words in words_of(text_form(texts)):
        checks, edges = _runs_of(words)
        for start, stop in pairwise(edges.tolist()):
            kept = np.unique(checks[start:stop])[:MOST_RUNS].astype("<u4")
            marks.append(kept.tobytes() if len(kept) >= LEAST_RUNS else b"")
    return marks


def find_runs(texts: pl.Series, marks: Marks) -> list[Found]:
    """Find the hashes of runs of five words in texts (String, no nulls)."""
    found = []
    for words in words_of(text_form(texts)) if marks else ():
        checks, edges = _runs_of(words)
        places = np.flatnonzero(np.isin(checks, marks.checks))
        rows = words.rows[np.searchsorted(edges, places, side="right") - 1]
        for row, check in zip(rows.tolist(), checks[places].tolist(), strict=True):
            own = check.to_bytes(RUN_BYTES, "little")
            found.append(Found(row, marks.owners[own], own))
    return found


def _runs_of(words: Words) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    from assets.text.kernels.marked_places import hash_runs

    checks, edges = hash_runs(words.joined, words.starts, words.offsets)
    return checks, edges


def copied_rows(found: Iterable[Found], copies: Copies) -> dict[int, set[int]]:
    """Return the owners of texts that are copied, by the row that has enough of their passages."""
    digests: dict[int, set[bytes]] = {}
    for each in found:
        digests.setdefault(each.row, set()).add(each.digest)
    owners = {row: copies.owners_among(of_row) for row, of_row in digests.items()}
    return {row: of_row for row, of_row in owners.items() if of_row}


def find_doc_ids(doc_ids: pl.Series, marks: Marks) -> list[Found]:
    """Find the rows of a column of doc_ids (String, no nulls) that have a mark."""
    from assets.text.kernels.marked_places import ID_BYTES, id_checks

    if not marks or doc_ids.is_empty():
        return []
    ids = bytes.fromhex("".join(doc_ids.to_list()))
    checks = id_checks(np.frombuffer(ids, np.uint8))
    found = []
    for row in np.flatnonzero(np.isin(checks, marks.checks)).tolist():
        found += owned(marks, row, ids[ID_BYTES * row : ID_BYTES * (row + 1)])
    return found


def find_ids(data: Bytes, marks: Marks) -> list[Found]:
    """Find marked ids in bytes, as 16 bytes or as 32 hex digits; the row is the place."""
    from assets.text.kernels import marked_places

    found = []
    for search, size in ((marked_places.find_ids, 16), (marked_places.find_hex_ids, 32)):
        places, count = search(data, marks.checks, marks.bits, FIRST_PLACES)
        if count > len(places):
            places, _ = search(data, marks.checks, marks.bits, count)
        for place in places.tolist():
            content = data[place : place + size].tobytes()
            found += owned(marks, place, bytes.fromhex(content.decode()) if size > 16 else content)
    return found


def owned(marks: Marks, row: int, content: bytes) -> list[Found]:
    """Return the mark of some content, if it is one."""
    digest = digest_of(content)
    owner = marks.owners.get(digest)
    return [] if owner is None else [Found(row, owner, digest)]
