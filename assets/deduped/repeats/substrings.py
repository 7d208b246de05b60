"""Find runs of at least N words that occur elsewhere too, in any amount of text, and cut them.

Lee et al. (arXiv 2107.06499) cut spans of 50 tokens or more that two documents share, found in a
suffix array over BPE tokens. Here a token is a word as `minhash.py` cuts and lower-cases it: runs
are found regardless of case, spacing, punctuation and tokenizer.
Definition: a run of N words is *repeated* if an equal run begins in an earlier document, or in the
same one at least N words before (without `keep_first`: also if in a later one, or N words after).
Exactly the words of repeated runs are cut. So the first occurrence of a run stays, except for words
in it that also belong to another run that occurs earlier.
Method: winnowing. The *pick* of a run of N words is the least hash of the shorter runs of k words
in it. Equal runs have equal picks, so that a run whose pick occurs once in the corpus is not
repeated. The remaining runs are compared by 128-bit hashes of their N words. Parts exchange only
hashes, through tables cut by the first bits; texts and places stay in their part. No repeat is
missed. A false one takes two different runs with the same 128 bits: a probability of 1e-15 among
1e12 runs, unless they are made to collide. `benchmarks/substrings.py` compares it with hashes of
all runs and with a suffix array: all three find the same words.
A span is cut from the start of its first word to the end of its last one; punctuation around it
stays.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.deduped.repeats.repeated_lines import CHANGE_SCHEMA, replace_texts
from assets.text.buffers import blocks, code_point_entries, text_buffers
from resources.settings.repeats import SubstringsConfig

RUN = ("hash", "second_hash")  # 128 bits that stand for all words of a run
RUNS_SCHEMA = pl.Schema(
    {"text": pl.UInt32, "word": pl.UInt32, "hash": pl.UInt64, "second_hash": pl.UInt64}
)
Hashes = NDArray[np.uint64]
Places = NDArray[np.int64]


class Block(NamedTuple):
    """A few hundred texts: number of the first, words before each, hashes and picks."""

    first_text: int
    word_offsets: NDArray[np.int64]  # [texts + 1]
    hashes: NDArray[np.uint64]  # [2, words]: of the run of `pick_words` words that begins there
    picks: NDArray[np.int64]  # [words]: where the pick of the run that begins there is, or -1


def hashed_blocks(texts: pl.Series, config: SubstringsConfig) -> Iterator[Block]:
    """Yield hashes and picks of texts without nulls, one block in memory at a time."""
    from assets.deduped.kernels.word_runs import extend_runs, hash_words, winnow
    from assets.text.kernels.words import join_words

    data, offsets = text_buffers(texts)
    width = config.min_words - config.pick_words + 1
    for rows, block in blocks(offsets):
        joined, starts, word_offsets = join_words(data, block, code_point_entries())
        hashes = hash_words(joined, starts)
        for lane in hashes:
            extend_runs(lane, 1, config.pick_words)
        picks = winnow(hashes[0], word_offsets, config.min_words, width)
        yield Block(rows.start, word_offsets, hashes, picks)


def fingerprints(texts: pl.Series, config: SubstringsConfig, salt: int) -> pl.DataFrame:
    """Return the hash UInt64 of each pick, sorted, each once, and count UInt32 of its places.

    Texts are compared with those of the same `salt`, uint64.
    """
    picked = [np.empty(0, np.uint64)]
    for block in hashed_blocks(texts, config):
        picks = block.picks[block.picks >= 0]
        picked.append(block.hashes[0, picks[_begins(picks)]])
    hashes, counts = np.unique(np.concatenate(picked) ^ np.uint64(salt), return_counts=True)
    return pl.DataFrame({"hash": hashes, "count": counts.astype(np.uint32)})


def candidate_runs(
    texts: pl.Series, shared: pl.Series, config: SubstringsConfig, salt: int
) -> pl.DataFrame:
    """Return all runs of N words whose pick is among `shared`, UInt64: they may be repeated.

    Columns: text and word UInt32 at which the run begins; hash and second_hash UInt64 of its words.
    In the order of texts and words.
    """
    from assets.deduped.kernels.word_runs import extend_runs

    known = np.sort(shared.to_numpy() ^ np.uint64(salt))
    runs = [pl.DataFrame(schema=RUNS_SCHEMA)]
    for block in hashed_blocks(texts, config):
        starts = np.flatnonzero(block.picks >= 0)
        starts = starts[_is_among(block.hashes[0, block.picks[starts]], known)]
        if not len(starts):
            continue
        for lane in block.hashes:
            extend_runs(lane, config.pick_words, config.min_words)
        text = np.searchsorted(block.word_offsets, starts, side="right") - 1
        columns = (
            text + block.first_text,
            starts - block.word_offsets[text],
            block.hashes[0, starts] ^ np.uint64(salt),
            block.hashes[1, starts],
        )
        runs.append(pl.DataFrame(dict(zip(RUNS_SCHEMA, columns, strict=True))).cast(RUNS_SCHEMA))
    return pl.concat(runs)


def _is_among(values: Hashes, known: Hashes) -> NDArray[np.bool_]:
    """Mark values, bool [n], that are in a sorted array; equal neighbours are looked up once."""
    begins = _begins(values)
    looked_up = values[begins]
    places = np.searchsorted(known, looked_up)
    is_known = np.append(known, np.uint64(0))[places] == looked_up
    return np.repeat(is_known & (places < len(known)), np.diff(begins, append=len(values)))


def _begins(values: NDArray[Any]) -> Places:
    """Return the places of values that differ from the one before."""
    return np.flatnonzero(np.append(True, values[1:] != values[:-1])[: len(values)])


def distinct_runs(runs: pl.DataFrame) -> pl.DataFrame:
    """Return hash and second_hash UInt64 of a part's runs, each pair once, sorted by hash."""
    if runs.is_empty():
        return runs[RUN]
    first = _first_equal(hashes_of(runs))
    is_first = pl.Series(first == np.arange(len(first)))
    return runs.select(RUN).filter(is_first).sort(RUN)


def hashes_of(table: pl.DataFrame) -> Hashes:
    """Return both hashes of a table's runs, uint64 [2, n]."""
    return np.stack([table[name].to_numpy() for name in RUN])


def _first_equal(hashes: Hashes) -> Places:
    """Return the first place with hashes equal to those of each, int64 [n], of uint64 [2, n]."""
    from assets.deduped.kernels.document_rows import first_equal

    first: Places = first_equal(hashes)
    return first


def _last_equal(first: Places) -> Places:
    """Return the last place that is equal to each, from the first one, int64 [n]."""
    last = np.empty_like(first)
    last[first] = np.arange(len(first))  # NumPy writes in order: the last of equals stays
    return last[first]


def shared_picks(picks: pl.DataFrame) -> pl.DataFrame:
    """Return hash UInt64, sorted, of those of several parts' fingerprints that occur twice or more.

    Complete for all hashes with some prefix, if the tables are: one prefix at a time fits memory.
    """
    first = _first_equal(picks["hash"].to_numpy()[None])
    times = np.bincount(first, picks["count"].to_numpy(), len(first))
    return picks.select("hash").filter(pl.Series(times > 1)).sort("hash")


def shared_runs(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the runs that several parts have, of the `distinct_runs` of parts in ingest order.

    Columns: hash and second_hash UInt64, the numbers UInt32 of the first and the last part that
    have it; sorted by hash. Complete for a prefix, as `shared_picks`.
    """
    part = np.repeat(np.arange(len(parts), dtype=np.uint32), [len(runs) for runs in parts])
    runs = pl.concat(parts)
    first = _first_equal(hashes_of(runs))
    last = _last_equal(first)
    is_shared = pl.Series(last > np.arange(len(runs))) & pl.Series(first == np.arange(len(runs)))
    numbers = {"first": pl.Series(part), "last": pl.Series(part[last])}
    return runs.with_columns(**numbers).filter(is_shared).sort(RUN)


def runs_elsewhere(shared: pl.DataFrame, number: int, keep_first: bool) -> pl.DataFrame:
    """Return those of `shared_runs` that a part before number `number` has.

    Without `keep_first`: that any other part has.
    """
    is_elsewhere = pl.col("first") < number
    return shared.filter(is_elsewhere if keep_first else is_elsewhere | (pl.col("last") > number))


def repeated_words(runs: pl.DataFrame, elsewhere: pl.DataFrame, config: SubstringsConfig) -> Places:
    """Return spans of words to cut, int64 [3, m]: text, first word, last word (exclusive), sorted.

    `runs` as `candidate_runs` returns them; `elsewhere`: those that another part has, as
    `runs_elsewhere` returns them. The spans are disjoint and do not touch.
    """
    hashes, size = hashes_of(runs), config.min_words
    text, word = (runs[name].to_numpy().astype(np.int64) for name in ("text", "word"))
    first = _first_equal(hashes)
    is_repeated = (text[first] < text) | (word[first] + size <= word)
    if not config.keep_first:
        last = _last_equal(first)
        is_repeated |= (text[last] > text) | (word[last] - size >= word)
    known = hashes_of(elsewhere)
    is_repeated |= _first_equal(np.concatenate([known, hashes], axis=1))[len(elsewhere) :] < len(
        elsewhere
    )
    return _merged(text[is_repeated], word[is_repeated], size)


def _merged(texts: Places, words: Places, size: int) -> Places:
    """Merge runs of `size` words that begin at ascending places into spans, int64 [3, m]."""
    is_apart = (texts[1:] != texts[:-1]) | (words[1:] > words[:-1] + size)
    first = np.flatnonzero(np.append(True, is_apart)[: len(texts)])
    last = np.append(first[1:], len(texts))[: len(first)] - 1
    return np.stack([texts[first], words[first], words[last] + size])


def located_spans(documents: pl.DataFrame, spans: Places) -> pl.DataFrame:
    """Locate spans of words, as `repeated_words` returns them, in the bytes of the documents.

    Returns doc_id; start and stop UInt32, byte offsets into the text, of the first word's start and
    the last word's end; num_words UInt32.
    """
    from assets.deduped.kernels.unit_positions import locate_units

    data, offsets = text_buffers(documents["text"])
    first_and_last = np.stack([spans[0], spans[1], spans[0], spans[2] - 1], axis=1).reshape(-1, 2)
    places = locate_units(data, offsets, code_point_entries(), first_and_last, True)
    columns = {
        "start": places[::2, 0],
        "stop": places[1::2, 1],
        "num_words": spans[2] - spans[1],
    }
    numbers = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Int64)).cast(pl.UInt32)
    return numbers.insert_column(0, documents["doc_id"].gather(spans[0]))


NUM_LONGEST = 10
EXCERPT_CHARS = 200
FINDING = {"min_words", "within", "keep_first"}  # what spans depend on; the rest is for cutting


class LongestSpan(msgspec.Struct, frozen=True):
    """A span, with its number of words, and the number of spans of that length in its part."""

    doc_id: str
    excerpt: str
    times: int
    words: int


def cut_spans(
    documents: pl.DataFrame, spans: pl.DataFrame, config: SubstringsConfig
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Cut spans out of documents; return the same rows in the same order, and the changes.

    `spans`: doc_id, start and stop, byte offsets into the text at character boundaries, disjoint
    and ascending within a document; spans of other documents are ignored. The changes have a row
    for each document with a span: doc_id; num_cut and cut_chars UInt32; kept_share Float64, of
    characters; is_rejected Boolean.
    """
    if spans.is_empty():
        return documents, pl.DataFrame(schema=CHANGE_SCHEMA)
    by_document = spans.group_by("doc_id").agg("start", "stop", num_cut=pl.len().cast(pl.UInt32))
    ids = documents.select("doc_id").with_row_index("row")
    with_spans = ids.join(by_document, on="doc_id", maintain_order="left")
    texts = documents["text"].gather(with_spans["row"])
    to_cut = zip(texts, with_spans["start"], with_spans["stop"], strict=True)
    shortened = [cut_text(text, starts, stops) for text, starts, stops in to_cut]
    table = with_spans.select("row", "num_cut", text=pl.Series(shortened, dtype=pl.String))
    return replace_texts(documents, table, config.min_kept_share)


def cut_text(text: str, starts: Iterable[int], stops: Iterable[int]) -> str:
    """Return a text without some spans of its UTF-8 bytes, with a separator in place of each."""
    data = text.encode()
    edges = zip([0, *stops], [*starts, len(data)], strict=True)
    first, *others = (data[start:stop].decode() for start, stop in edges)
    kept = [first]
    for following in others:
        left, right = kept[-1].rstrip(), following.lstrip()
        before, after = kept[-1][len(left) :], following[: len(following) - len(right)]
        kept[-1:] = [left, _separator(left, before, after, right), right]
    return "".join(kept)


def _separator(left: str, before: str, after: str, right: str) -> str:
    """Return what separates two texts after a cut: the white space around the cut, once."""
    if not left or not right:
        return ""
    if lines := max(before.count("\n"), after.count("\n")):
        return "\n" * lines
    return " " if (before and after) or (left[-1].isalnum() and right[0].isalnum()) else ""


def longest_spans(documents: pl.DataFrame, spans: pl.DataFrame) -> list[LongestSpan]:
    """Return a span of each of the NUM_LONGEST greatest lengths in words, the longest first.

    One of each length, since the longest are mostly copies of one another.
    """
    if spans.is_empty():
        return []
    lengths = spans.group_by("num_words").agg(pl.first("doc_id", "start", "stop"), times=pl.len())
    longest = lengths.sort("num_words", descending=True).head(NUM_LONGEST)
    texts = documents.select("doc_id", "text")
    with_text = longest.join(texts, on="doc_id", maintain_order="left")
    columns = with_text.select("doc_id", "text", "start", "stop", "times", "num_words")
    return [
        LongestSpan(doc_id, text.encode()[start:stop].decode()[:EXCERPT_CHARS], times, num_words)
        for doc_id, text, start, stop, times, num_words in columns.iter_rows()
    ]


def finding(config: SubstringsConfig | None) -> dict[str, Any]:
    """Return the config of a manifest: all that spans depend on; {} if not configured."""
    return {} if config is None else config.model_dump(mode="json", include=FINDING)
